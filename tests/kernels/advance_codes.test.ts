import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import type { Device, Program } from '../../src/device/device.ts'
import { Graph } from '../../src/graph/graph.ts'
import { advanceCodes } from '../../src/kernels/advance_codes.ts'
import { frameInput, frameShape, sampleCodes, samplingInput, samplingShape } from '../../src/kernels/sample_codes.ts'
import { CODEBOOKS, CODES, EOS, MASK } from '../../src/models/zonos/config.ts'
import { type Codes, delayedGrid, framesAfter, gridWidth, lastColumn, undelayed } from '../../src/models/zonos/delay.ts'
import { type Case, gpu, noise, sameOnEveryDevice } from '../check.ts'
import { fixtureJson, fixtureTensors } from '../fixtures.ts'
import { frameOf, plainSampling } from './codes_cases.ts'

const REPORTED = 4
const options = { eos: EOS, mask: MASK, reported: REPORTED }

describe('is the same on every device, the grid too', () => {
  const wanted = 6
  const advance = (column: number, code: number, ended: number, shifted: boolean): Case => ({
    operands: {
      drawn: { shape: [9], format: 'u32', data: Uint32Array.from({ length: 9 }, (_, k) => (k === 0 ? code : 100 + k)) },
      frame: {
        shape: frameShape,
        format: 'u32',
        data: frameInput(frameOf({ column, before: 3, wanted, shifted })),
      },
      grid: {
        shape: ['*', 9],
        format: 'u32',
        data: Uint32Array.from(noise(19 * 9), (v) => Math.floor(500 * (v + 1))),
        kept: true,
      },
      ended: { shape: [1], format: 'u32', data: Uint32Array.of(ended), kept: true },
    },
    op: ({ drawn, frame, grid, ended }) => ({
      report: advanceCodes(drawn!, frame!, grid!, ended!, options),
      grid: grid!,
      ended: ended!,
    }),
    tolerance: 0,
    kernels: ['advance_codes'],
  })
  test.each([
    [4, 7, 0, false],
    [5, EOS, 0, false],
    [9, 7, 5, false],
    [9, EOS, 5, false],
    [9, 7, 9, false], // made again
    [12, 7, 0, true],
    [12, EOS, 0, true],
    [17, 7, 12, false],
    [18, 7, 0, false], // the column that is not there
  ])('column %i, code %i, ended in %i, shifted %s', (column, code, ended, shifted) =>
    sameOnEveryDevice(advance(column, code, ended, shifted)),
  )
})

interface Script {
  readonly max_new_tokens: number
  readonly audio_prefix_codes: number[][] | null
  readonly calls: number
}
const name = 'zonos-transformer-tiny'
const goldens = fixtureTensors(`${name}/expected.safetensors`)
const scripts = fixtureJson<Record<string, Script>>(`${name}/inputs.json`)

/** Draws and writes codes from logits that are given, column by column, as the reference's loop was. */
async function play(device: Device, script: string, shifted = true) {
  const { max_new_tokens: wanted, audio_prefix_codes, calls } = scripts[script]!
  const books = audio_prefix_codes ?? new Array<number[]>(9).fill([])
  const before = books[0]!.length
  const data = Uint16Array.from({ length: before * 9 }, (_, i) => books[i % 9]![Math.floor(i / 9)]!)
  const given: Codes = { frames: before, data }
  const grid = delayedGrid(given, wanted)
  const width = gridWidth(before, wanted)
  const kept = device.keep('grid', ['*', 9], 'u32', width + 1)
  const ended = device.keep('ended', [1], 'u32')
  device.write(kept, new Uint8Array(grid.buffer))
  const program = await compile(device, kept, ended)
  const logits = goldens.get(`${script}.logits`).data
  const columns: number[][] = []
  let e = 0
  let made = 0
  for (let c = before + 1; c <= lastColumn(width, e); c++, made++) {
    const first = c === before + 1
    const frame = frameOf({ column: c, othersEnd: first, ends: !first, before, wanted, shifted })
    const sampling = { ...plainSampling, temperature: 0, penalty: 3, window: first ? 0 : 2 }
    const { report } = await program.run(
      {
        logits: logits.subarray(made * 9 * CODES, (made + 1) * 9 * CODES),
        frame: frameInput(frame),
        sampling: samplingInput(sampling),
      },
      { T: 1, S: 1, C: 1, R: 1 },
    )
    e = report![0]!
    const column = [...report!.slice(REPORTED * 9)]
    if (!first && c < width) columns.push(column)
    if (c < width) grid.set(column, c * 9)
  }
  device.release(kept)
  device.release(ended)
  expect(made, 'calls of the reference').toBe(calls)
  return { columns, codes: undelayed(grid, 0, framesAfter(lastColumn(width, e))) }
}

function compile(device: Device, grid: Parameters<typeof advanceCodes>[2], ended: typeof grid): Promise<Program> {
  const graph = new Graph({ ...device.target, software: true })
  const logits = graph.input('logits', ['R', CODEBOOKS * CODES])
  const frame = graph.input('frame', frameShape, 'u32')
  const sampling = graph.input('sampling', samplingShape)
  const { drawn } = sampleCodes(logits, grid, { frame, sampling })
  graph.output('report', advanceCodes(drawn, frame, grid, ended, options))
  return device.compile(graph)
}

/** The fixture's logits but for the eight greatest of each book are set to -100 here, which changes no choice. */
const scriptNames = Object.keys(scripts).filter((key) => key.startsWith('script_'))
describe.each(scriptNames)('%s', (script) => {
  test.each(['cpu', 'webgpu'])('columns and codes on %s', async (kind) => {
    const { columns, codes } = await play(kind === 'cpu' ? cpuDevice('test') : await gpu(), script)
    const [want, wantCodes] = [goldens.get(`${script}.columns`), goldens.get(`${script}.codes`)]
    const byBook = Array.from({ length: 9 }, (_, k) => columns.map((column) => column[k]!))
    expect(byBook.flat()).toEqual([...want.data])
    const frames = wantCodes.shape[1]!
    expect(codes.frames).toBe(frames)
    expect(Array.from({ length: 9 * frames }, (_, i) => codes.data[(i % frames) * 9 + Math.floor(i / frames)])).toEqual(
      [...wantCodes.data],
    )
  })
})
test('there are scripts', () => expect(scriptNames.length).toBe(4))

test('aligned writing differs from upstream in the last nine columns alone', async () => {
  const shifted = await play(cpuDevice('test'), 'script_noeos', true)
  const aligned = await play(cpuDevice('test'), 'script_noeos', false)
  const wanted = scripts.script_noeos!.max_new_tokens
  expect(aligned.columns.slice(0, wanted - 1)).toEqual(shifted.columns.slice(0, wanted - 1))
  expect(aligned.columns.slice(wanted - 1)).not.toEqual(shifted.columns.slice(wanted - 1))
})

test('says what does not fit', () => {
  const graph = new Graph(cpuDevice('test').target)
  const u32 = (name: string, shape: readonly number[]) => graph.input(name, shape, 'u32')
  const [drawn, frame, ended] = [u32('drawn', [9]), u32('frame', frameShape), u32('ended', [1])]
  const grid = graph.input('grid', ['*', 9], 'u32')
  expect(() => advanceCodes(u32('few', [8]), frame, grid, ended, options)).toThrow('drawn (few) has shape [8]')
  expect(() => advanceCodes(drawn, frame, graph.input('f', ['*', 9]), ended, options)).toThrow('expected u32')
  expect(() => advanceCodes(drawn, frame, grid, ended, { ...options, reported: 0 })).toThrow('0 columns are reported')
})
