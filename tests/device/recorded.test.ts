import { describe, expect, test } from 'vitest'
import { openDevice } from '../../src/device/open.ts'
import { defaultPlace, type Place } from '../../src/device/place.ts'
import type { Probe } from '../../src/device/prove.ts'
import { recordedProgram } from '../../src/device/recorded.ts'
import { rememberedVerdicts } from '../../src/device/verdicts.ts'
import { Graph, graphOf, record } from '../../src/graph/graph.ts'
import type { Kernel } from '../../src/graph/kernel.ts'
import type { Target } from '../../src/graph/target.ts'
import type { Tensor } from '../../src/graph/tensor.ts'
import { counts } from '../check.ts'
import { onSubmit, ownGpu } from './faulty.ts'

const three = counts({ T: 3 })
const x = Float32Array.of(1, 2, 3)

/** y = 2x by this expression over `v`; the fast one is optional. */
const kernel = (name: string, expression: string): Kernel => ({
  name,
  reads: ['x'],
  writes: ['y'],
  optional: name === 'fast',
  shader: [
    `@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> y: array<Y>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { let v = x[id.x]; y[id.x] = ${expression}; }
}`,
  ],
  cost: () => ({ flops: 1, bytes: 8 }),
  cpu({ x, y }, _, { T }) {
    for (let i = 0; i < T; i++) y![i] = 2 * x![i]!
  },
})
const plain = kernel('plain', '2 * v')

const double = (x: Tensor, fast: Kernel): Tensor => {
  const { disabled } = graphOf('double', { x }).target
  const variant = disabled.has('fast') ? plain : fast
  return record(variant, { reads: { x }, writes: { y: { shape: x.shape } }, constants: {}, workgroups: [1, 1, 1] }).y
}
const build = (fast: Kernel) => (target: Target) => {
  const graph = new Graph(target)
  graph.output('y', double(graph.input('x', ['T']), fast))
  return graph
}
const probeOf = (fast: Kernel): Probe => ({
  variant: 'fast',
  counts: three,
  tolerance: 1e-6,
  fits: () => true,
  record(graph) {
    graph.output('y', double(graph.input('x', ['T']), fast))
    return {}
  },
})

function memory(): Place & { text?: string } {
  const place: Place & { text?: string } = {
    read: async () => place.text,
    write: async (text) => {
      place.text = text
    },
  }
  return place
}

/** Opens a device that collects its warnings, and records y = 2x with this fast variant. */
async function setUp(expression: string, place = memory()) {
  const warnings: string[] = []
  const device = await openDevice('webgpu', { precision: 'f32', onWarning: (text) => warnings.push(text) })
  const fast = kernel('fast', expression)
  const options = { probes: [probeOf(fast)], verdicts: rememberedVerdicts(place) }
  const recorded = recordedProgram(device, build(fast), options)
  const answer = async (values = x) => [...(await recorded.run({ x: values }, three)).y!]
  return { device, answer, warnings, recorded, place }
}

describe('an optional variant', () => {
  test('that does what its twin does is used', async () => {
    const { device, answer, warnings } = await setUp('v + v')
    expect(await answer()).toEqual([2, 4, 6])
    expect([...device.target.disabled.keys()]).toEqual([])
    expect(warnings).toEqual([])
    await device.dispose()
  })

  test.each([
    ['gives other numbers in its probe', '2.001 * v', /its probe is off by/],
    ['gives no numbers in its probe', 'bitcast<f32>(0x7fc00000u + u32(v * 0.0))', /its probe is off by/],
    ['does not compile', '2 * nothing', /does not compile/],
  ])('that %s is switched off with one warning, and the request is answered', async (_, expression, reason) => {
    const { device, answer, warnings } = await setUp(expression)
    expect(await answer()).toEqual([2, 4, 6])
    expect(await answer()).toEqual([2, 4, 6])
    expect(device.report.disabled).toEqual([{ variant: 'fast', reason: expect.stringMatching(reason) }])
    expect(device.report.line).toContain('switched off: fast')
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/^fast is switched off: /)
    await device.dispose()
  })

  test('that fails after its probe is switched off then, and the request is answered', async () => {
    // right for the probe's values below 1, not a number for larger ones
    const { device, answer, warnings } = await setUp('select(2 * v, bitcast<f32>(0x7fc00000u + u32(v * 0.0)), v > 2)')
    expect(await answer(Float32Array.of(0.5, 0.25, 1))).toEqual([1, 0.5, 2])
    expect(warnings).toEqual([])
    expect(await answer()).toEqual([2, 4, 6])
    expect(device.report.disabled).toEqual([{ variant: 'fast', reason: 'a run gave numbers that are not finite' }])
    expect(warnings).toHaveLength(1)
    expect(await answer()).toEqual([2, 4, 6])
    await device.dispose()
  })

  test('is not blamed for numbers that the plain kernel does not give either', async () => {
    const { device, answer, warnings } = await setUp('v + v')
    expect(await answer(Float32Array.of(1, Number.NaN, 3))).toEqual([2, Number.NaN, 6])
    expect([...device.target.disabled.keys()]).toEqual([])
    expect(warnings).toEqual([])
    await device.dispose()
  })
})

test.each([false, true])(
  'a run that failed is made again without optional kernels, unless stateful: %s',
  async (stateful) => {
    const own = await ownGpu()
    let armed = false
    const faulty = onSubmit(own, () => {
      if (armed) own.createBuffer({ size: 16, usage: 0 }) // an error that no scope catches
      armed = false
    })
    const device = await openDevice('webgpu', { gpu: faulty, precision: 'f32', onWarning: () => {} })
    const fast = kernel('fast', 'v + v')
    const options = { probes: [probeOf(fast)], verdicts: rememberedVerdicts(memory()), stateful }
    const recorded = recordedProgram(device, build(fast), options)
    const answer = async () => [...(await recorded.run({ x }, three)).y!]
    expect(await answer()).toEqual([2, 4, 6])
    armed = true
    if (stateful) await expect(answer()).rejects.toMatchObject({ code: 'validation' })
    else expect(await answer()).toEqual([2, 4, 6])
    expect([...device.target.disabled.keys()]).toEqual(['fast'])
    expect(await answer()).toEqual([2, 4, 6])
    await device.dispose()
    own.destroy()
  },
)

describe('verdicts', () => {
  test('are remembered by device and variant', async () => {
    const place = memory()
    await (await setUp('2.001 * v', place)).answer()
    const { device, answer } = await setUp('v + v', place) // mended since, but the verdict stands
    expect(await answer()).toEqual([2, 4, 6])
    expect([...device.target.disabled.keys()]).toEqual(['fast'])
    await device.dispose()
  })

  test('a variant under trial when the process died is not tried again', async () => {
    const place = memory()
    const verdicts = rememberedVerdicts(place)
    await new Promise<void>((begun) => {
      verdicts.once('gpu: fast', () => new Promise(() => begun())) // never ends, as in a process that died
    })
    const later = rememberedVerdicts(place, () => false)
    expect(await later.once('gpu: fast', async () => undefined)).toContain('died')
    expect(await rememberedVerdicts(place, () => true).once('gpu: fast', async () => undefined)).toContain('died')
  })

  test('a trial that another process is making is made here too, and one of this process is shared', async () => {
    const place = memory()
    let trials = 0
    const verdicts = rememberedVerdicts(place)
    const trial = async () => void trials++
    await Promise.all([verdicts.once('gpu: fast', trial), verdicts.once('gpu: fast', trial)])
    expect(trials).toBe(1)
    place.text = JSON.stringify({ version: 2, verdicts: { 'gpu: other': { triedBy: 12345 } } })
    expect(await rememberedVerdicts(place, () => true).once('gpu: other', trial)).toBeUndefined()
    expect(trials).toBe(2)
  })

  test('a trial that could not be made leaves none', async () => {
    const place = memory()
    const verdicts = rememberedVerdicts(place)
    await expect(verdicts.once('gpu: fast', () => Promise.reject(new Error('lost')))).rejects.toThrow('lost')
    expect(await verdicts.once('gpu: fast', async () => undefined)).toBeUndefined()
  })

  test('a place that is damaged or cannot be written costs a trial, no more', async () => {
    const place: Place = { read: async () => '{"version', write: () => Promise.reject(new Error('read-only')) }
    expect(await rememberedVerdicts(place).once('gpu: fast', async () => 'wrong')).toBe('wrong')
    expect(await rememberedVerdicts(place).once('gpu: fast', async () => undefined)).toBeUndefined()
  })

  test('a page whose storage is blocked has no place, and goes on', async () => {
    const { process } = globalThis
    Object.defineProperty(globalThis, 'localStorage', {
      configurable: true,
      get() {
        throw new Error('SecurityError')
      },
    })
    Object.assign(globalThis, { process: undefined }) // as in a browser
    let place: Place
    try {
      place = defaultPlace('verdicts')
    } finally {
      Object.assign(globalThis, { process })
      Reflect.deleteProperty(globalThis, 'localStorage')
    }
    await place.write('kept nowhere')
    expect(await place.read()).toBeUndefined()
  })
})
