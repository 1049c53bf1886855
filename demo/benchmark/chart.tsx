import type { BenchmarkRow } from '../engine/benchmark.ts'
import { ms } from '../ui/format.ts'

const ROW = 30
const LABEL = 220
const WIDTH = 760
const BAR = 16

/** Medians as bars, with a line from the least to the most. */
export function Chart({ title, rows }: { title: string; rows: readonly BenchmarkRow[] }) {
  const most = Math.max(...rows.map(({ maxMs }) => maxMs))
  const x = (value: number): number => (value / most) * (WIDTH - LABEL - 90)
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${rows.length * ROW}`}
        role="img"
        aria-label={`${title}; the table has the same numbers`}
      >
        {rows.map((row, i) => (
          <g key={`${row.case} ${row.arm}`} transform={`translate(0 ${i * ROW})`}>
            <text x={LABEL - 10} y={ROW / 2} class="label">
              {row.case} · {row.arm}
            </text>
            <rect class={row.arm} x={LABEL} y={(ROW - BAR) / 2} width={x(row.medianMs)} height={BAR} rx={3} />
            <path class="whisker" d={`M${LABEL + x(row.minMs)} ${ROW / 2}H${LABEL + x(row.maxMs)}`} />
            <text x={LABEL + x(row.maxMs) + 8} y={ROW / 2} class="value">
              {ms(row.medianMs)}
            </text>
          </g>
        ))}
      </svg>
    </figure>
  )
}
