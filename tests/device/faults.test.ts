import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import type { Device, Program } from '../../src/device/device.ts'
import { decode, encode } from '../../src/device/formats.ts'
import { openDevice } from '../../src/device/open.ts'
import { Graph } from '../../src/graph/graph.ts'
import type { Tensor } from '../../src/graph/tensor.ts'
import { counts, noise } from '../check.ts'
import { expectNoUnhandledRejection, onSubmit, ownGpu, scarce, settle } from './faulty.ts'
import { broken, chain, heavy } from './toy.ts'

expectNoUnhandledRejection()

const three = counts({ T: 3 })
const x = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9)
const sixfold = [...x].map((v) => 6 * v)

/** x -> 6x over a pool, compiled. */
async function program(device: Device, rows = 3): Promise<{ pool: Tensor; program: Program }> {
  const pool = device.keep('pool', ['*'], 'f32', rows)
  const graph = new Graph(device.target)
  chain(graph, pool)
  return { pool, program: await device.compile(graph) }
}
const run = async (p: Program, T = 3): Promise<number[]> => {
  const values = new Float32Array(3 * T)
  values.set(x)
  return [...(await p.run({ x: values }, { ...three, T })).y!.subarray(0, 9)]
}
const given = (gpu: GPUDevice): Promise<Device> => openDevice('webgpu', { gpu, precision: 'f32' })

describe('a lost device', () => {
  test('refuses every call, says so once, and frees its ledger', async () => {
    const gpu = await ownGpu()
    const device = await given(gpu)
    const { pool, program: p } = await program(device)
    expect(await run(p)).toEqual(sixfold)
    gpu.destroy()
    expect(await device.lost).toMatch(/^webgpu: the device is lost \(destroyed\): .+; recover\(\) opens it again$/)
    const lost = { name: 'DeviceError', code: 'lost' }
    const calls: (() => Promise<unknown>)[] = [
      () => run(p),
      () => p.trace({ x }, three),
      () => device.flush(),
      () => device.read(pool),
      () => device.compile(new Graph(device.target)),
      async () => device.keep('late', [4], 'f32'),
      async () => device.write(pool, new Uint8Array(4)),
      async () => device.grow(pool, 9),
    ]
    for (const call of calls) await expect(call(), String(call)).rejects.toMatchObject(lost)
    device.release(pool)
    await device.dispose()
    await device.dispose()
    expect(device.memory).toMatchObject({ keptBytes: 0, slotBytes: 0, buffers: 0 })
  })

  test('rejects what is running and what is queued', async () => {
    const gpu = await ownGpu()
    const device = await given(gpu)
    const { program: p } = await program(device)
    const runs = Array.from({ length: 5 }, () => run(p))
    const loading = device.flush()
    gpu.destroy()
    const settled = await Promise.allSettled([...runs, loading])
    expect(settled.map((s) => (s.status === 'rejected' ? s.reason.code : 'answered'))).toEqual(Array(6).fill('lost'))
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
  })

  test('while a run is read back and while a graph compiles', async () => {
    const gpu = await ownGpu()
    const device = await given(onSubmit(gpu, (n) => n === 1 && gpu.destroy()))
    const { program: p } = await program(device)
    await expect(run(p)).rejects.toMatchObject({ code: 'lost' })
    await device.dispose()

    const other = await ownGpu()
    const second = await given(other)
    const compiling = program(second)
    other.destroy()
    await expect(compiling).rejects.toMatchObject({ code: 'lost' })
    await second.dispose()
    expect([device.memory.buffers, second.memory.buffers]).toEqual([0, 0])
  })

  test('is opened again with the same choice and options, a given one by its owner', async () => {
    for (const choice of ['webgpu', 'cpu'] as const) {
      const device = await openDevice(choice, { precision: 'f32' })
      await device.dispose()
      const again = await device.reopen()
      expect(again.report).toEqual(device.report)
      expect(await run((await program(again)).program)).toEqual(sixfold)
      await again.dispose()
    }
    const gpu = await ownGpu()
    const device = await given(gpu)
    await expect(device.reopen()).rejects.toMatchObject({ name: 'DeviceError', code: 'unavailable' })
    await expect(device.reopen()).rejects.toThrow('pass it to recover()')
    await device.dispose()
    gpu.destroy()
  })
})

describe('out of memory', () => {
  const small = async (budget: { bytes: number }) => {
    const gpu = await ownGpu()
    return { gpu, device: await given(scarce(gpu, budget)) }
  }
  const memory = { name: 'DeviceError', code: 'memory' }

  test('keep: flush and the runs that bind the tensor reject, others answer', async () => {
    const { gpu, device } = await small({ bytes: 2 ** 20 })
    const good = await program(device)
    const bad = await program(device, 2 ** 20)
    await expect(device.flush()).rejects.toMatchObject(memory)
    await expect(device.flush()).rejects.toThrow(
      /^allocate pool, 4194304 bytes: .*not enough memory: .*; use a smaller/,
    )
    await expect(run(bad.program)).rejects.toMatchObject(memory)
    await expect(device.read(bad.pool)).rejects.toMatchObject(memory)
    expect(await run(good.program)).toEqual(sixfold)
    device.release(bad.pool)
    await device.flush()
    await device.dispose()
    gpu.destroy()
  })

  test('grow: one run hears of it, and the pool is as it was', async () => {
    const budget = { bytes: 2 ** 20 }
    const { gpu, device } = await small(budget)
    const { pool, program: p } = await program(device)
    expect(await run(p)).toEqual(sixfold)
    const buffers = device.memory.buffers
    device.grow(pool, 2 ** 19)
    device.grow(pool, 2 ** 20) // before the first is known to fail
    await expect(run(p)).rejects.toMatchObject(memory)
    expect(await run(p)).toEqual(sixfold)
    expect([...decode(await device.read(pool), 'f32')]).toEqual([6, 24, 42]) // two runs
    expect(device.memory.buffers).toBe(buffers)
    budget.bytes = 2 ** 24
    device.grow(pool, 2 ** 19)
    device.grow(pool, 2 ** 20)
    expect(await run(p)).toEqual(sixfold)
    expect([...decode(await device.read(pool), 'f32').subarray(0, 4)]).toEqual([9, 36, 63, 0])
    await settle()
    expect(device.memory.buffers).toBe(buffers + 1) // a readback buffer of that size
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
    gpu.destroy()
  })

  test('slots, readback and timestamps: the run rejects, a smaller one answers', async () => {
    const budget = { bytes: 2 ** 18 }
    const { gpu, device } = await small(budget)
    const { program: p } = await program(device, 2 ** 13)
    await expect(run(p, 2 ** 13)).rejects.toMatchObject(memory)
    await expect(run(p, 2 ** 13)).rejects.toThrow(/^allocate slot \d for 8192 tokens/)
    expect(await run(p)).toEqual(sixfold)
    const left = budget.bytes
    budget.bytes = 1000
    await expect(run(p, 40)).resolves.toBeDefined() // all there already
    await expect(p.run({ x }, three, { onProfile: () => {} })).resolves.toBeDefined()
    budget.bytes = 0
    await expect(p.run({ x }, three, { onProfile: () => {} })).rejects.toThrow(/^allocate timestamps/)
    const bytes = 2 ** 13 * 12 * 3 + 1000 // slots for 8192 tokens, and no more
    budget.bytes = bytes
    await expect(run(p, 2 ** 13)).rejects.toThrow(/^allocate readback/)
    budget.bytes = left
    expect(await run(p, 2 ** 13)).toEqual(sixfold)
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
    gpu.destroy()
  })

  test('the CPU: more than the process can hold', () => {
    const device = cpuDevice('test')
    const pool = device.keep('pool', ['*'], 'f32', 2)
    expect(() => device.grow(pool, 2 ** 45)).toThrow(/^allocate pool, .* not enough memory/)
    expect(device.memory.keptBytes).toBe(8)
  })
})

describe('errors that the GPU raises', () => {
  test('reject the run in flight, and the next one answers', async () => {
    const gpu = await ownGpu()
    let wrong = false
    const refused = onSubmit(gpu, () => wrong && gpu.createBuffer({ size: 4, usage: 0 }))
    const device = await given(refused)
    const { program: p } = await program(device)
    expect(await run(p)).toEqual(sixfold)
    wrong = true
    await expect(run(p)).rejects.toMatchObject({ name: 'DeviceError', code: 'validation' })
    wrong = false
    expect(await run(p)).toEqual(sixfold)
    await device.dispose()
    gpu.destroy()
  })

  test('a write that does not fit is told by flush, by name, until the tensor is released', async () => {
    const device = await openDevice('webgpu', { precision: 'f32' })
    const t = device.keep('small', [4], 'f32')
    device.write(t, encode(noise(8), 'f32'))
    await expect(device.flush()).rejects.toMatchObject({ code: 'validation' })
    await expect(device.flush()).rejects.toThrow(/^write small: /)
    device.release(t)
    await device.flush()
    await device.dispose()
  })

  test('a shader that does not compile leaves the device as it was', async () => {
    const device = await openDevice('webgpu', { precision: 'f32' })
    const { program: p } = await program(device)
    const { buffers, pipelines } = device.memory
    const graph = new Graph(device.target)
    graph.output('y', broken(graph.input('x', ['T', 3]), 'fn main() { let a = nothing; }'))
    const compiled = await Promise.allSettled([device.compile(graph), device.compile(graph), run(p)])
    expect(compiled.map((c) => (c.status === 'rejected' ? c.reason.code : c.value))).toEqual([
      'shader',
      'shader',
      sixfold,
    ])
    expect(device.memory).toMatchObject({ pipelines, keptBytes: 16 })
    expect(device.memory.buffers).toBeGreaterThan(buffers) // of the run
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
  })
})

describe.each(['cpu', 'webgpu'] as const)('aborts on %s', (kind) => {
  test('in the queue reject at once; those around them answer in order', async () => {
    const device = await openDevice(kind, { precision: 'f32' })
    const { program: p } = await program(device)
    const told: string[] = []
    const tell = (name: string) => (outcome: unknown) => told.push(`${name} ${outcome}`)
    const controller = new AbortController()
    const first = run(p).then(() => tell('first')('answered'))
    const second = p.run({ x }, three, { signal: controller.signal }).catch(tell('second'))
    const third = run(p).then(() => tell('third')('answered'))
    controller.abort('aborted')
    await Promise.all([first, second, third])
    expect(told).toEqual(['second aborted', 'first answered', 'third answered'])
    await device.dispose()
  })

  test('during a run are heard between its parts, and nothing stays taken', async () => {
    const device = await openDevice(kind, { precision: 'f32' })
    const pool = device.keep('pool', ['*'], 'f32', 3)
    const graph = new Graph(device.target)
    graph.output('y', heavy(graph.input('x', ['T', 3]), pool, 12))
    const p = await device.compile(graph)
    const good = [...(await p.run({ x }, three)).y!]
    const { buffers } = device.memory
    for (let ms = 0; ms < 8; ms++) {
      const signal = AbortSignal.timeout(ms)
      const outcome = await p.run({ x: noise(9) }, three, { signal }).catch((error: unknown) => error)
      if (outcome instanceof DOMException) expect(outcome.name).toBe('TimeoutError')
      expect([...(await p.run({ x }, three)).y!]).toEqual(good)
    }
    await settle()
    expect(device.memory.buffers - buffers).toBeLessThanOrEqual(1) // a run begins while an aborted one is read back
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
  })
})

test('an abort after any submit, the last one too, gives its buffers back', async () => {
  const gpu = await ownGpu()
  let hear = (_: number): void => {}
  let submits = 0
  const device = await given(onSubmit(gpu, () => hear(++submits)))
  const pool = device.keep('pool', ['*'], 'f32', 3)
  const graph = new Graph(device.target)
  graph.output('y', heavy(graph.input('x', ['T', 3]), pool, 5))
  const p = await device.compile(graph)
  const { y } = await p.run({ x }, three)
  const all = submits
  expect(all).toBe(5)
  const { buffers } = device.memory
  for (let at = 1; at <= all; at++) {
    const controller = new AbortController()
    submits = 0
    hear = (n) => n === at && controller.abort(`after ${at}`)
    await expect(p.run({ x }, three, { signal: controller.signal })).rejects.toBe(`after ${at}`)
    expect(submits).toBe(at) // nothing more was sent
    await settle()
    expect(device.memory.buffers).toBe(buffers)
    hear = () => {}
    expect((await p.run({ x }, three)).y).toEqual(y)
  }
  await device.dispose()
  gpu.destroy()
})

describe.each(['cpu', 'webgpu'] as const)('dispose on %s', (kind) => {
  test('during work ends it, and nothing can be made afterwards', async () => {
    const device = await openDevice(kind, { precision: 'f32' })
    const { pool, program: p } = await program(device)
    const runs = Array.from({ length: 5 }, () => run(p))
    const disposed = [device.dispose(), device.dispose()]
    const settled = await Promise.allSettled(runs)
    await Promise.all(disposed)
    for (const s of settled) {
      if (s.status === 'rejected') expect(s.reason).toMatchObject({ name: 'DeviceError', code: 'disposed' })
      else expect(s.value).toEqual(sixfold)
    }
    expect(settled.at(-1)!.status).toBe('rejected')
    const code = { code: 'disposed' }
    expect(() => device.keep('late', [4], 'f32')).toThrow(expect.objectContaining(code))
    expect(() => device.write(pool, new Uint8Array(4))).toThrow(expect.objectContaining(code))
    expect(() => device.grow(pool, 9)).toThrow(expect.objectContaining(code))
    await expect(device.flush()).rejects.toMatchObject(code)
    await expect(device.read(pool)).rejects.toMatchObject(code)
    await expect(device.compile(new Graph(device.target))).rejects.toMatchObject(code)
    device.release(pool)
    await settle()
    expect(device.memory).toMatchObject({ keptBytes: 0, slotBytes: 0, buffers: 0 })
  })
})
