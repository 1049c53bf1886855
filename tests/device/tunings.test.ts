import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import pronounce from '../../package.json' with { type: 'json' }
import { openDevice } from '../../src/device/open.ts'
import type { Place } from '../../src/device/place.ts'
import { keptTunings, VERSION } from '../../src/device/tunings.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { LinearRule } from '../../src/graph/target.ts'
import { tensor } from '../../src/graph/tensor.ts'
import { linear } from '../../src/kernels/linear.ts'

const rule = (N: number, BM = 32): LinearRule => ({
  ...{ on: 'f32', N, K: 64, variant: 'linear_tiled', order: { SK: 2, BK: 16, RUN: 0 } },
  heights: [{ upTo: 45, tile: { BM, BN: 64, RM: 4, RN: 8 } }, { tile: { BM: 64, BN: 64, RM: 4, RN: 8 } }],
})
const today = () => new Date().toISOString().slice(0, 10)

function memory(text?: string): Place & { text?: string } {
  const place: Place & { text?: string } = {
    read: async () => place.text,
    write: async (text) => void Object.assign(place, { text }),
  }
  return text === undefined ? place : Object.assign(place, { text })
}

/** The tunings of a place, and what they warned of. */
function opened(place: Place) {
  const warnings: string[] = []
  return { tunings: keptTunings({ place, onWarning: (text) => warnings.push(text) }), warnings }
}

test('the version in the key is the package’s', () => expect(VERSION).toBe(pronounce.version))

describe('tunings', () => {
  test('come back as they were kept, for their adapter alone', async () => {
    const place = memory()
    const { tunings, warnings } = opened(place)
    expect(await tunings.of('gpu')).toBe(undefined)
    await tunings.keep('gpu', rule(64))
    await tunings.keep('gpu', rule(128))
    await tunings.keep('other gpu', rule(64, 64))
    const again = opened(place)
    expect(await again.tunings.of('gpu')).toEqual({ date: today(), rules: [rule(64), rule(128)] })
    expect(await again.tunings.of('other gpu')).toEqual({ date: today(), rules: [rule(64, 64)] })
    expect(await again.tunings.of('gpu 580.1')).toBe(undefined)
    expect(await again.tunings.of('constructor')).toBe(undefined)
    expect(Object.keys(await again.tunings.all())).toEqual(['gpu', 'other gpu'])
    expect([...warnings, ...again.warnings]).toEqual([])
  })

  test('a rule replaces that of the same size', async () => {
    const { tunings } = opened(memory())
    await tunings.keep('gpu', rule(64))
    await tunings.keep('gpu', { ...rule(64), on: 'f16' })
    await tunings.keep('gpu', rule(64, 128))
    expect((await tunings.of('gpu'))!.rules).toEqual([{ ...rule(64), on: 'f16' }, rule(64, 128)])
  })

  test('are forgotten', async () => {
    const { tunings } = opened(memory())
    await tunings.keep('gpu', rule(64))
    await tunings.forget()
    expect(await tunings.all()).toEqual({})
  })

  test('of another version are not used, and no reason to warn', async () => {
    const text = JSON.stringify({ version: '0.0.9', tunings: { gpu: { date: '2026-01-01', rules: [rule(64)] } } })
    const { tunings, warnings } = opened(memory(text))
    expect(await tunings.of('gpu')).toBe(undefined)
    expect(warnings).toEqual([])
  })

  const { order, heights, ...rest } = rule(64)
  const kept = (rules: unknown) => JSON.stringify({ version: VERSION, tunings: { gpu: { date: '2026-01-01', rules } } })
  test.each([
    ['half a file', '{"version"'],
    ['nothing', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['another program’s', '{"version":2,"verdicts":{}}'],
    ['no rules', kept({})],
    ['a rule that is null', kept([null])],
    ['a rule without order', kept([{ ...rest, heights }])],
    ['a rule of an unknown variant', kept([{ ...rule(64), variant: 'magic' }])],
    ['a rule of no size', kept([{ ...rule(64), N: -64 }])],
    ['a rule without heights', kept([{ ...rule(64), heights: [] }])],
    ['a rule that ends somewhere', kept([{ ...rule(64), heights: [{ ...heights[1], upTo: 9 }] }])],
    ['heights out of order', kept([{ ...rule(64), heights: [{ ...heights[0], upTo: 99 }, ...heights] }])],
    ['an open height that is not the last', kept([{ ...rule(64), heights: [heights[1], heights[1]] }])],
    ['a constant that is text', kept([{ ...rule(64), order: { ...order, RUN: '0; }' } }])],
    ['a constant of a name that is code', kept([{ ...rule(64), order: { ...order, 'A = 1; const B': 1 } }])],
    ['a tile that is none', kept([{ ...rule(64), heights: [{ tile: [1] }] }])],
  ])('%s is as good as nothing, with a warning', async (_, text) => {
    const { tunings, warnings } = opened(memory(text))
    expect(await tunings.of('gpu')).toBe(undefined)
    expect(warnings).toEqual([expect.stringMatching(/^tuning: what is kept cannot be used \(.+\); run tune again$/)])
    await tunings.keep('gpu', rule(64))
    expect((await tunings.of('gpu'))!.rules).toEqual([rule(64)])
  })

  test('of a place that cannot be read are none, with a warning', async () => {
    const denied = { read: () => Promise.reject(new Error('EACCES')), write: () => Promise.reject(new Error('EACCES')) }
    const { tunings, warnings } = opened(denied)
    expect(await tunings.of('gpu')).toBe(undefined)
    expect(warnings).toEqual([expect.stringContaining('EACCES')])
    await expect(tunings.keep('gpu', rule(64))).rejects.toThrow('EACCES')
  })
})

test('a page keeps them in its storage', async () => {
  const { process } = globalThis
  const stored = new Map<string, string>()
  const localStorage = {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, text: string) => void stored.set(key, text),
  }
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, value: localStorage })
  Object.assign(globalThis, { process: undefined }) // as in a browser
  try {
    const tunings = keptTunings()
    await tunings.keep('gpu', rule(64))
    expect((await keptTunings().of('gpu'))!.rules).toEqual([rule(64)])
  } finally {
    Object.assign(globalThis, { process })
    Reflect.deleteProperty(globalThis, 'localStorage')
  }
  expect([...stored.keys()]).toEqual(['pronounce.tuning'])
})

describe('a device on an adapter that was tuned', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
  const file = join(folder, 'pronounce/tuning.json')
  const { XDG_CACHE_HOME } = process.env
  beforeAll(() => void Object.assign(process.env, { XDG_CACHE_HOME: folder }))
  afterAll(() => {
    if (XDG_CACHE_HOME === undefined) delete process.env.XDG_CACHE_HOME
    else process.env.XDG_CACHE_HOME = XDG_CACHE_HOME
    rmSync(folder, { recursive: true })
  })

  /** Opens it, and says which kernels a product of that size would run, and what was warned of. */
  async function pick(tuning: 'kept' | 'built-in' = 'kept') {
    const warnings: string[] = []
    const onWarning = (text: string) => warnings.push(text)
    const device = await openDevice('webgpu', { precision: 'f32', tuning, onWarning })
    const { report, target } = device
    await device.dispose()
    const graph = new Graph(target)
    const w = tensor({ label: 'w', shape: [72, 64], format: 'f32', place: 'kept' })
    linear(graph.input('x', ['T', 64]), w)
    return { report, target, warnings, steps: graph.steps }
  }

  test('says so, and linear() goes by the rule that is nearest', async () => {
    const before = await pick()
    expect(before.report.tuned).toBe(undefined)
    expect(before.report.line).not.toContain('tuned')
    expect(before.target.tuning).toBe(undefined)

    await keptTunings().keep(before.report.adapter, rule(64))
    await keptTunings().keep(before.report.adapter, rule(4096, 128))
    const { report, target, steps, warnings } = await pick()
    expect(report.tuned).toBe(today())
    expect(report.line).toContain(`; tuned ${today()}`)
    expect(target.tuning).toEqual([rule(64), rule(4096, 128)])
    expect(steps.map(({ kernel }) => kernel.name)).toEqual(['linear_tiled', 'linear_tiled'])
    expect(steps.map(({ constants }) => [constants.SK, constants.BK, constants.BM])).toEqual([
      [1, 16, 32],
      [1, 16, 64],
    ])
    expect(warnings).toEqual([])
  })

  test('takes the built-in plans where it is asked to', async () => {
    const { report, steps } = await pick('built-in')
    expect(report.tuned).toBe(undefined)
    expect(steps.map(({ constants }) => constants.BK)).not.toContain(16)
  })

  test('ignores rules that do not fit it', async () => {
    const { report } = await pick()
    await keptTunings().forget()
    await keptTunings().keep(report.adapter, { ...rule(64), heights: [{ tile: { BM: 4096, BN: 4096, RM: 4, RN: 4 } }] })
    const { steps, target } = await pick()
    expect(target.tuning).toHaveLength(1)
    expect(steps.map(({ constants }) => constants.BM)).not.toContain(4096)
  })

  test('opens all the same where the file is damaged or foreign', async () => {
    for (const text of ['{', '{"version":1}', readFileSync('LICENSE', 'utf8')]) {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
      const { report, warnings, steps } = await pick()
      expect(report.tuned).toBe(undefined)
      expect(warnings).toEqual([expect.stringMatching(/^tuning: what is kept cannot be used/)])
      expect(steps.length).toBeGreaterThan(0)
    }
  })
})
