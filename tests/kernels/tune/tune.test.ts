import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device, Profile, Program } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import type { Place } from '../../../src/device/place.ts'
import { keptTunings } from '../../../src/device/tunings.ts'
import { DeviceError } from '../../../src/errors.ts'
import type { Graph, Step } from '../../../src/graph/graph.ts'
import { linearCandidates } from '../../../src/kernels/lib/linear_tiles.ts'
import { contest } from '../../../src/kernels/tune/contest.ts'
import { type MatrixProduct, planName } from '../../../src/kernels/tune/product.ts'
import { isCoarse } from '../../../src/kernels/tune/timer.ts'
import { type TuneOptions, type TuneProgress, tune } from '../../../src/kernels/tune/tune.ts'
import type { Tuned } from '../../../src/kernels/tune/tune_product.ts'
import { plainPlan } from '../../../src/kernels/linear.ts'

/** Barriers compile slowly on software drivers, so few tiles are let fit: of 32 rows, in either order. */
const store: MatrixProduct = { name: 'in', N: 64, K: 16, use: 'store' }
const swiglu: MatrixProduct = { name: 'gate up', N: 32, K: 16, use: 'swiglu' }
const parts: MatrixProduct = { name: 'out', N: 24, K: 24, use: 'parts' }
const few = { invocations: 64, workgroupBytes: 6500 }
const heights = [5, 40]

function memory(): Place & { text?: string } {
  const place: Place & { text?: string } = {
    read: async () => place.text,
    write: async (text) => void Object.assign(place, { text }),
  }
  return place
}

let device: Device
beforeAll(async () => {
  const opened = await openDevice('webgpu', { precision: 'f32', tuning: 'built-in' })
  const target = { ...opened.target, limits: { ...opened.target.limits, ...few } }
  device = Object.create(opened, { target: { value: target } })
})
afterAll(() => device.dispose())

/** Tunes a software adapter, on a device of which a part is replaced; and what it said meanwhile. */
async function run(products: readonly MatrixProduct[], members: Partial<Device> = {}, options: TuneOptions = {}) {
  const place = memory()
  const [progress, tuned, warnings]: [TuneProgress[], Tuned[], string[]] = [[], [], []]
  const descriptors = Object.entries(members).map(([name, value]) => [name, { value }])
  const own: Device = Object.create(device, Object.fromEntries(descriptors))
  const results = await tune(own, products, {
    ...{ heights, place, software: true, quick: true, ...options },
    onProgress: (p) => progress.push(p),
    onTuned: (t) => tuned.push(t),
    onWarning: (w) => warnings.push(w),
  }).catch((error: unknown) => error)
  const kept = await keptTunings({ place }).of(device.report.adapter)
  return { results, progress, tuned, warnings, rules: kept?.rules ?? [] }
}

/** compile() that lets some steps fail, or their programs' numbers. */
const compiling =
  (when: (step: Step) => boolean, fault: (graph: Graph) => Promise<Program>): Device['compile'] =>
  (graph) =>
    graph.steps.some(when) ? fault(graph) : device.compile(graph)
const ofTile = (MORTON: number) => (step: Step) =>
  step.kernel.name === 'linear_tiled' && step.constants.MORTON === MORTON

describe('a software adapter', () => {
  test('is tuned only where that is asked for', async () => {
    await expect(tune(device, [store])).rejects.toThrow(
      /^tune: the adapter is software \(.+\), .* nothing about GPUs; pass/,
    )
  })
  test('the CPU has nothing to tune', async () => {
    const refused = tune(cpuDevice('test'), [store], { software: true })
    await expect(refused).rejects.toThrow(/^tune: the device is the CPU/)
    await expect(refused).rejects.toBeInstanceOf(DeviceError)
  })
})

test.each([[[]], [[0]], [[1.5]], [[Number.NaN]], [[9000]]])('heights %j are refused', async (heights) => {
  await expect(tune(device, [store], { software: true, heights })).rejects.toThrow(/^tune: heights has \[/)
})

describe('tuning', () => {
  const plain = () => ({ ...device.target, disabled: new Map([['linear_tiled', 'the test goes without']]) })

  test('tries every plan that fits', async () => {
    const { tuned } = await run([store])
    const [{ tried, failed }] = tuned as [Tuned]
    expect(tried).toBe(3)
    expect(failed).toEqual([])
  })

  /** A device whose clock tells a thousand times as much of a kernel. */
  const slowed = (kernel: string): Partial<Device> => ({
    async compile(graph) {
      const program = await device.compile(graph)
      const slower = (p: Profile): Profile => {
        return { ...p, dispatches: p.dispatches.map((d) => (d.kernel === kernel ? { ...d, ms: 1000 * d.ms } : d)) }
      }
      const run: Program['run'] = (inputs, counts, { onProfile, ...options } = {}) =>
        program.run(inputs, counts, { ...options, onProfile: onProfile && ((p) => onProfile(slower(p))) })
      return Object.create(program, { run: { value: run } })
    },
  })

  test('finds the plan that is faster than the built-in one', async () => {
    const { tuned, rules } = await run([store], slowed('linear'))
    const [{ rule, builtin, heights: found, slow }] = tuned as [Tuned]
    expect(builtin).toBe(false)
    expect(rule.variant).toBe('linear_tiled')
    expect(rules).toEqual([rule])
    expect(slow).toEqual(['linear'])
    for (const { ms, builtinMs, plan, builtinPlan } of found) {
      expect(ms).toBeLessThan(builtinMs)
      expect(plan).toMatch(/^linear_tiled SK1 BK16 BM/)
      expect(builtinPlan).toMatch(/^linear SK1/)
    }
  })

  test('leaves the built-in plan where nothing is faster, and a variant that is far behind', async () => {
    const { tuned } = await run([store, { ...store, name: 'narrower', N: 48 }], slowed('linear_tiled'))
    expect(tuned.map(({ builtin, rule }) => [builtin, rule.variant])).toEqual([
      [true, 'linear'],
      [true, 'linear'],
    ])
    expect(tuned.map(({ tried, slow }) => [tried, slow])).toEqual([
      [3, ['linear_tiled']],
      [1, []],
    ])
  })

  test('keeps a rule for every product, once for each size, and tells', async () => {
    const products = [store, swiglu, parts, { ...store, name: 'again' }]
    const { results, progress, tuned, warnings, rules } = await run(products, { target: plain() })
    expect(results).toEqual(tuned)
    expect(warnings).toEqual([])
    expect(tuned.map(({ product }) => product)).toEqual([store, swiglu, parts])
    expect(rules).toEqual(tuned.map(({ rule }) => rule))
    for (const { product, rule, heights: found, tried, failed, builtin } of tuned) {
      expect(rule).toMatchObject({ on: 'f32', N: product.N, K: product.K })
      if (product.use !== 'parts') expect(rule.order.SK).toBe(1)
      expect(found.map(({ rows }) => rows)).toEqual(heights)
      for (const { ms, builtinMs, plan, builtinPlan } of found) {
        expect(ms).toBeGreaterThan(0)
        expect(builtinMs).toBeGreaterThan(0)
        expect(builtinPlan).toMatch(/^linear SK1 /)
        if (builtin) expect(plan).toBe(builtinPlan)
      }
      expect(tried).toBe(product.use === 'parts' ? 3 : 1) // sums in one, two and four parts
      expect(failed).toEqual([])
    }
    expect(new Set(progress.map(({ phase }) => phase))).toEqual(new Set(['compiling', 'trying', 'measuring']))
    for (const { index, of, done, total } of progress) {
      expect(of).toBe(3)
      expect(index).toBeLessThan(of)
      expect(done).toBeLessThanOrEqual(total)
    }
    expect(device.memory.keptBytes).toBe(0)
  })

  test('skips plans that do not compile, with the reason', async () => {
    const fault = () => Promise.reject(new DeviceError('shader', 'linear_tiled: no pipeline: registers\nmore'))
    const { tuned, rules } = await run([store], { compile: compiling(ofTile(0), fault) })
    expect(tuned[0]!.failed).toEqual([
      { plan: expect.stringContaining('MORTON0'), reason: 'linear_tiled: no pipeline: registers' },
    ])
    expect(rules).toHaveLength(1)
  })

  test('skips plans that give wrong numbers', async () => {
    const wrong = async (graph: Graph): Promise<Program> => {
      const program = await device.compile(graph)
      const run: Program['run'] = async (...args) => {
        const { y, ...outputs } = await program.run(...args)
        return { ...outputs, ...(y && { y: y.map((v, i) => (i === 7 ? Number.NaN : v)) }) }
      }
      return Object.create(program, { run: { value: run } })
    }
    const race = await contest(Object.create(device, { compile: { value: compiling(ofTile(1), wrong) } }), store, {
      heights,
      warmMs: 0,
    })
    const [wide, ...others] = linearCandidates.filter((plan) => race.fits(plan)).reverse()
    const entered = await race.enter([wide!, ...others, plainPlan])
    await race.check(entered)
    await race.measure(entered)
    race.release()
    const reason = 'its numbers are off by Infinity, at most 0.02'
    expect(entered.map(({ failure }) => failure)).toEqual([reason, undefined, undefined])
    expect(entered[0]!.ms).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])
    expect(entered[1]!.ms.every((ms) => ms > 0 && ms < 1000)).toBe(true)
  })

  test('an abort leaves what was measured before it', async () => {
    const abort = new AbortController()
    const compile = compiling(
      ({ constants }) => constants.OUT === swiglu.N,
      (graph) => {
        abort.abort(new Error('enough'))
        return device.compile(graph)
      },
    )
    const { results, tuned, rules } = await run(
      [store, swiglu, parts],
      { compile, target: plain() },
      { signal: abort.signal },
    )
    expect(results).toEqual(new Error('enough'))
    expect(tuned.map(({ product }) => product)).toEqual([store])
    expect(rules).toEqual([tuned[0]!.rule])
    await device.flush()
    expect(device.memory.keptBytes).toBe(0)
  })

  test('a product that does not fit the device is left as it was, and the others go on', async () => {
    const keep: Device['keep'] = (label, shape, ...rest) => {
      if (shape[0] === swiglu.N) throw new DeviceError('limit', `keep: ${label} has too many bytes`)
      return device.keep(label, shape, ...rest)
    }
    const { tuned, warnings } = await run([swiglu, store], { keep, target: plain() })
    expect(tuned.map(({ product }) => product)).toEqual([store])
    expect(warnings).toEqual([
      expect.stringMatching(/^gate up, 32 x 16, is left as it was: keep: w 0 has too many bytes/),
    ])
  })

  test('says where it cannot keep what it found', async () => {
    const place = { read: async () => undefined, write: () => Promise.reject(new Error('EROFS')) }
    const { tuned, warnings } = await run([store], { target: plain() }, { place })
    expect(tuned).toHaveLength(1)
    expect(warnings).toEqual(['tuning: cannot be kept: EROFS'])
  })

  test('without timestamps goes by the times of whole runs', async () => {
    const features = new Set([...device.target.features].filter((name) => name !== 'timestamp-query'))
    let waited = 0
    const flush = () => {
      waited++
      return device.flush()
    }
    const target = { ...device.target, features }
    const without: Device = Object.create(device, { target: { value: target }, flush: { value: flush } })
    const race = await contest(without, store, { heights, warmMs: 0 })
    expect(race.clock).toBe('runs')
    const entered = await race.enter([plainPlan])
    race.release()
    expect(entered.map(({ name }) => name)).toEqual([planName(plainPlan)])
    expect(waited).toBeGreaterThan(2 * heights.length) // for the GPU: nothing is read back
    expect(entered[0]!.ms.every((ms) => ms > 0 && ms < 1000)).toBe(true)
  })
})

test('timestamps that a browser has rounded are told from others', () => {
  expect(isCoarse([0, 0.1, 0.2, 0])).toBe(true)
  expect(isCoarse([0.065536, 0, 0.131072])).toBe(true)
  expect(isCoarse([0.1, 0.2, 0.01024])).toBe(false)
  expect(isCoarse([0.020512, 0.0215, 0.020576])).toBe(false)
})
