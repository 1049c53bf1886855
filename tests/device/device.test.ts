import { afterAll, describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import type { Device, Profile } from '../../src/device/device.ts'
import { decode } from '../../src/device/formats.ts'
import { openDevice } from '../../src/device/open.ts'
import { Graph } from '../../src/graph/graph.ts'
import { counts, gpu, noise } from '../check.ts'
import { ownGpu } from './faulty.ts'
import { broken, chain, toy } from './toy.ts'

const three = counts({ T: 3, S: 1, C: 1, R: 1 })
const x = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9)

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', gpu],
] as const)('%s', (_, open) => {
  test('runs steps in order, changes pools in place and reads outputs back', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 4)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    const { y } = await program.run({ x }, three)
    expect([...y!]).toEqual([...x].map((v) => 6 * v))
    await program.run({ x }, three)
    expect([...decode(await device.read(pool), 'f32')]).toEqual([6, 24, 42, 0]) // (1 + 2) twice, ...
    device.release(pool)
  })

  test('a pool keeps what it holds when it grows', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    await program.run({ x }, three)
    device.grow(pool, 5)
    await program.run({ x: noise(15) }, { ...three, T: 1 })
    const [first, ...rest] = decode(await device.read(pool), 'f32')
    expect(first).toBeCloseTo(3 + 3 * noise(15)[0]!, 5)
    expect(rest).toEqual([12, 21, 0, 0])
    device.release(pool)
  })

  test('traces every value by name', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const traced = await (await device.compile(graph)).trace({ x }, three)
    expect(traced.map((t) => t.name)).toEqual(['twice', 'pool', 'sixfold', 'pool'])
    expect(traced[0]).toMatchObject({ kernel: 'toy', shape: [3, 3], data: x.map((v) => 2 * v) })
    expect(traced[1]!.data).toEqual(Float32Array.of(1, 4, 7))
    device.release(pool)
  })

  test('profiles every dispatch', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    let names: string[] = []
    const onProfile = ({ dispatches, spanMs }: Profile) => {
      names = dispatches.map((d) => `${d.name} ${d.flops} ${d.ms >= 0}`)
      expect(spanMs).toBeGreaterThanOrEqual(dispatches.reduce((sum, { ms }) => sum + ms, 0) - 1e-6)
    }
    await (await device.compile(graph)).run({ x }, three, { onProfile })
    expect(names).toEqual(['twice 9 true', 'sixfold 9 true'])
    device.release(pool)
  })

  test('inputs of any size arrive, run after run, in buffers that are used again', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 4096)
    const graph = new Graph(device.target)
    graph.output('y', toy(graph.input('x', ['T', 64]), pool, 6))
    const program = await device.compile(graph)
    let buffers = 0
    for (const [run, T] of [4096, 5, 2048, 4096, 4096].entries()) {
      const x = noise(64 * T, run)
      const { y } = await program.run({ x }, { ...three, T })
      expect([...y!.subarray(0, 3), y!.at(-1)]).toEqual([...x.subarray(0, 3), x.at(-1)!].map((v) => Math.fround(6 * v)))
      if (run === 3) buffers = device.memory.buffers
    }
    expect(device.memory.buffers).toBe(buffers)
    device.release(pool)
  })

  test.each([
    ['few', 6],
    ['many', 6000],
  ])('an input of %s values is written where the device wants it, perhaps only in part', async (_, T) => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', T)
    const graph = new Graph(device.target)
    graph.output('y', toy(graph.input('x', ['T', 64]), pool, 6))
    const program = await device.compile(graph)
    const values = noise(64 * (T - 1), T)
    const fillOf = (values: Float32Array) => ({
      byteLength: values.byteLength,
      fill: (into: Uint8Array) => into.set(new Uint8Array(values.buffer)),
    })
    const { y } = await program.run({ x: fillOf(values) }, { ...three, T })
    expect(y!.subarray(0, values.length)).toEqual(values.map((v) => 6 * v))
    const long = program.run({ x: fillOf(noise(64 * T + 1)) }, { ...three, T })
    await expect(long).rejects.toMatchObject({ code: 'shape' })
    device.release(pool)
  })

  test('calls made together are answered first in, first out', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    const order: number[] = []
    const runs = [1, 2, 3, 4, 5].map(async (n) => {
      const { y } = await program.run({ x: x.map((v) => v * n) }, three)
      order.push(n)
      return y![0]
    })
    expect(await Promise.all(runs)).toEqual([6, 12, 18, 24, 30])
    expect(order).toEqual([1, 2, 3, 4, 5])
    device.release(pool)
  })

  test('says what is wrong with an input, and goes on', async () => {
    const device = await open()
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    await expect(program.run({}, three)).rejects.toThrow('run: input x is missing')
    await expect(program.run({ x: x.subarray(1) }, three)).rejects.toMatchObject({ code: 'shape' })
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(program.run({ x }, three, { signal })).rejects.toThrow('enough')
    expect((await program.run({ x }, three)).y![8]).toBe(54)
    device.release(pool)
  })

  test('refuses work after dispose', async () => {
    const device = await (_ === 'cpu' ? open() : openDevice('webgpu'))
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    await device.dispose()
    await expect(program.run({ x }, three)).rejects.toMatchObject({ code: 'disposed' })
    expect(device.memory).toMatchObject({ keptBytes: 0, buffers: 0 })
  })
})

describe('webgpu alone', () => {
  const devices: Device[] = []
  afterAll(() => Promise.all(devices.map((d) => d.dispose())))

  test('f16 values are rounded halves', async () => {
    const device = await openDevice('webgpu')
    devices.push(device)
    expect(device.target.operand, 'the test driver has shader-f16').toBe('f16')
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    chain(graph, pool, 'f16')
    const { y } = await (await device.compile(graph)).run({ x: x.map((v) => v + 1 / 4096) }, three)
    expect([...y!]).toEqual([...x].map((v) => 6 * v)) // the excess is below half an ulp of f16
  })

  test('a length never seen adds no pipeline', async () => {
    const device = await gpu()
    const pool = device.keep('pool', ['*'], 'f32', 5000)
    const graph = new Graph(device.target)
    chain(graph, pool)
    const program = await device.compile(graph)
    const before = device.memory.pipelines
    for (const T of [1, 63, 64, 65, 700, 5000]) {
      const values = noise(T * 3, T)
      const { y } = await program.run({ x: values }, { ...three, T })
      expect(y!.at(-1)).toBeCloseTo(6 * values.at(-1)!, 5)
    }
    expect(device.memory.pipelines).toBe(before)
    device.release(pool)
  })

  test('a shader that does not compile is an error with its line', async () => {
    const device = await gpu()
    const graph = new Graph(device.target)
    graph.output('y', broken(graph.input('x', ['T', 3]), 'fn main() { let a = nothing; }'))
    const error = await device.compile(graph).catch((e: unknown) => e)
    expect(error).toMatchObject({ name: 'DeviceError', code: 'shader' })
    expect(String(error)).toMatch(/broken: the shader does not compile\nline \d+: .*nothing/)
  })

  test('more workgroups than the device takes is an error, and the next run answers', async () => {
    const device = await gpu()
    const graph = new Graph(device.target)
    const main = '@compute @workgroup_size(1) fn main() { _ = step.tokens; }'
    graph.output('y', broken(graph.input('x', ['T', 3]), main, [70000, 1, 1]))
    const program = await device.compile(graph)
    await expect(program.run({ x }, three)).rejects.toMatchObject({ code: 'limit' })
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const good = new Graph(device.target)
    chain(good, pool)
    expect((await (await device.compile(good)).run({ x }, three)).y![0]).toBe(6)
    device.release(pool)
  })

  test("a caller's GPUDevice lives on", async () => {
    const own = await ownGpu()
    const device = await openDevice('webgpu', { gpu: own })
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    graph.output('y', toy(graph.input('x', ['T', 3]), pool, 2))
    expect((await (await device.compile(graph)).run({ x }, three)).y![8]).toBe(18)
    await device.dispose()
    await expect(openDevice('cpu', { gpu: own })).rejects.toThrow("'cpu' needs an adapter of no GPU")
    await expect(openDevice('webgpu', { gpu: {} as GPUDevice })).rejects.toMatchObject({ code: 'unavailable' })
    const buffer = own.createBuffer({ size: 4, usage: 8 })
    own.queue.writeBuffer(buffer, 0, new Uint32Array(1))
    await own.queue.onSubmittedWorkDone()
    own.destroy()
  })

  test('what was not asked for is named', async () => {
    const { software, name } = (await gpu()).report
    const nvidia = name.startsWith('nvidia')
    if (nvidia) await (await openDevice('cuda')).dispose()
    else await expect(openDevice('cuda')).rejects.toThrow(`'cuda' needs an adapter of nvidia, found ${name}`)
    if (!name.startsWith('apple')) await expect(openDevice('metal')).rejects.toMatchObject({ code: 'unavailable' })
    await expect(openDevice('tpu' as 'cpu')).rejects.toThrow("there is no 'tpu'")
    const auto = await openDevice('auto')
    expect(auto.kind).toBe(software ? 'cpu' : 'webgpu') // never a software adapter
    const why = software ? `the only WebGPU adapter is software (${name})` : 'the GPU that was found'
    expect(auto.report.line).toContain(why)
    await auto.dispose()
  })
})
