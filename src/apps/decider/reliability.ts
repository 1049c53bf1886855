import type { Bin, Metrics } from './metrics.ts'

const SIZE = 320 // of the plot, in pixels
const LEFT = 48
const TOP = 40

/**
 * A reliability diagram as SVG: for every bin of confidence a bar as high as its accuracy, as dark as its share of the
 * questions, and a tick at its mean confidence. A calibrated model's bars end on the diagonal.
 */
export function reliabilitySvg(bins: readonly Bin[], { n, acc, ece }: Metrics, title: string): string {
  const x = (confidence: number): string => (LEFT + SIZE * confidence).toFixed(1)
  const y = (accuracy: number): string => (TOP + SIZE * (1 - accuracy)).toFixed(1)
  const most = Math.max(...bins.map((bin) => bin.n))
  const bars = bins.flatMap(({ low, high, n, accuracy, meanConfidence }) => {
    const about = `${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)} %: ${n} questions, ${(100 * accuracy).toFixed(1)} % right`
    const shade = (0.25 + (0.75 * n) / most).toFixed(2)
    return [
      `<rect x="${x(low)}" y="${y(accuracy)}" width="${(SIZE * (high - low) - 1).toFixed(1)}" ` +
        `height="${(SIZE * accuracy).toFixed(1)}" fill="#2b6cb0" fill-opacity="${shade}"><title>${about}</title></rect>`,
      `<path d="M${x(meanConfidence)} ${y(accuracy)}v-6" stroke="#1a202c"/>`,
    ]
  })
  const labels = [0, 0.25, 0.5, 0.75, 1].flatMap((value) => [
    `<text x="${x(value)}" y="${TOP + SIZE + 16}" text-anchor="middle">${value}</text>`,
    `<text x="${LEFT - 6}" y="${y(value)}" dy="4" text-anchor="end">${value}</text>`,
  ])
  const [width, height] = [LEFT + SIZE + 16, TOP + SIZE + 44]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      'font-family="sans-serif" font-size="11" fill="#1a202c">',
    '<rect width="100%" height="100%" fill="#fff"/>',
    `<text x="${LEFT}" y="16" font-size="13">${escapeXml(title)}</text>`,
    `<text x="${LEFT}" y="32">${n} questions, accuracy ${acc.toFixed(4)}, ECE ${ece.toFixed(4)}</text>`,
    `<path d="M${x(0)} ${y(1)}V${y(0)}H${x(1)}" fill="none" stroke="#718096"/>`,
    ...bars,
    `<path d="M${x(0)} ${y(0)}L${x(1)} ${y(1)}" stroke="#718096" stroke-dasharray="4 4"/>`,
    ...labels,
    `<text x="${x(0.5)}" y="${TOP + SIZE + 34}" text-anchor="middle">confidence</text>`,
    `<text transform="translate(14 ${y(0.5)}) rotate(-90)" text-anchor="middle">accuracy</text>`,
    '</svg>',
    '',
  ].join('\n')
}

const escapeXml = (text: string): string =>
  text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]!)
