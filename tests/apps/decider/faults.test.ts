import { beforeAll, describe, expect, test } from 'vitest'
import type { Decider } from '../../../src/apps/decider/api.ts'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { choice, yesNo } from '../../../src/apps/decider/question.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import type { Device } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import { openSource, type Source } from '../../../src/weights/source.ts'
import { expectClose } from '../../check.ts'
import { expectNoUnhandledRejection, ownGpu, scarce, settle } from '../../device/faulty.ts'

expectNoUnhandledRejection()

const nano = openSource('public/models/decider-nano')
const questions = { team: choice('Which team?', ['billing', 'technical', 'sales']), refund: yesNo('A refund?') }

async function answer(decider: Decider, signal?: AbortSignal): Promise<Float32Array> {
  const { answers } = await decider.decide('My card was charged twice.', questions, { signal })
  return Float32Array.from([...Object.values(answers.team.probabilities), answers.refund.noul])
}
const given = (gpu: GPUDevice): Promise<Device> => openDevice('webgpu', { gpu, precision: 'f32' })
const load = (device: Device, source: Source = nano): Promise<Decider> => loadDecider(source, { device })

/** The nano model, calling `on(n)` before the n-th read, from 1. */
function reading(on: (n: number) => void): { source: Source; reads: () => number } {
  let n = 0
  const source: Source = {
    ...nano,
    read(...range) {
      on(++n)
      return nano.read(...range)
    },
  }
  return { source, reads: () => n }
}

/** The nano model with another text in one of its files. */
function replaced(file: string, text: string): Source {
  const other = openSource({ [file]: new Blob([text]) })
  const of = (path: string): Source => (path === file ? other : nano)
  return {
    ...nano,
    size: (path, signal) => of(path).size(path, signal),
    read: (path, ...range) => of(path).read(path, ...range),
  }
}

let want: Float32Array
let reads: number // of a load
const lost = { name: 'DeviceError', code: 'lost' }

beforeAll(async () => {
  const device = await openDevice('webgpu', { precision: 'f32' })
  const counted = reading(() => {})
  const decider = await load(device, counted.source)
  reads = counted.reads()
  want = await answer(decider)
  await device.dispose()
  expect(reads).toBeGreaterThan(5)
})

describe('a device that is lost', () => {
  test('while the model is loaded: loading rejects, nothing stays, and another device loads it', async () => {
    for (const at of [2, reads - 1, reads]) {
      const gpu = await ownGpu()
      const device = await given(gpu)
      const { source } = reading((n) => n === at && gpu.destroy())
      await expect(load(device, source), `read ${at} of ${reads}`).rejects.toMatchObject(lost)
      expect(device.memory.keptBytes).toBe(0)
      await device.dispose()
      expect(device.memory.buffers).toBe(0)
    }
    await using device = await openDevice('webgpu', { precision: 'f32' })
    expect(await answer(await load(device))).toEqual(want)
  })

  test('while it answers: pending calls reject, recover(device) brings the right next answer', async () => {
    const gpu = await ownGpu()
    const device = await given(gpu)
    const decider = await load(device)
    expect(decider.device).toBe(device)
    const pending = Promise.allSettled([1, 2, 3].map(() => answer(decider)))
    await settle(30) // into the first one's work
    gpu.destroy()
    for (const p of await pending) expect(p).toMatchObject({ status: 'rejected', reason: lost })
    await expect(answer(decider)).rejects.toMatchObject(lost)
    await expect(decider.recover()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(answer(decider)).rejects.toMatchObject({ code: 'unavailable' }) // the model is on no device
    const next = await given(await ownGpu())
    await decider.recover(next)
    expect(decider.device).toBe(next)
    expect(await answer(decider)).toEqual(want)
    await decider.dispose()
    expect([device.memory.keptBytes, next.memory.keptBytes]).toEqual([0, 0])
    await next.flush() // given, so it lives on
    await Promise.all([device.dispose(), next.dispose()])
    expect([device.memory.buffers, next.memory.buffers]).toEqual([0, 0])
  })

  test('while idle: recover() opens the same choice again, twice in a row, and disposes of what it opened', async () => {
    const opened: GPUDevice[] = []
    const { prototype } = GPUAdapter
    const { requestDevice } = prototype
    prototype.requestDevice = async function (...options) {
      opened.push(await requestDevice.apply(this, options))
      return opened.at(-1)!
    }
    try {
      const first = await openDevice('webgpu', { precision: 'f32' })
      const decider = await load(first)
      const devices = [first]
      for (const _ of [1, 2]) {
        opened.at(-1)!.destroy()
        await decider.device.lost
        await expect(answer(decider)).rejects.toMatchObject(lost)
        await decider.recover()
        expect(devices).not.toContain(decider.device)
        devices.push(decider.device)
        expect(decider.device.report).toEqual(first.report)
        expect(await answer(decider)).toEqual(want)
      }
      await decider.dispose()
      await first.dispose() // it is the caller's
      expect(devices.map((d) => d.memory.buffers)).toEqual([0, 0, 0])
    } finally {
      prototype.requestDevice = requestDevice
    }
  })
})

describe('recover on a device that is fine', () => {
  test('moves the model; calls before it are lost, calls meanwhile wait, concurrent ones share a reload', async () => {
    const device = await openDevice('webgpu', { precision: 'f32' })
    const { source, reads: sofar } = reading(() => {})
    const decider = await load(device, source)
    const loads = sofar()
    const before = answer(decider).catch((error: unknown) => error)
    const cpu = cpuDevice('test')
    const moves = [decider.recover(cpu), decider.recover(cpu), decider.recover()]
    const meanwhile = answer(decider)
    expect(await before).toMatchObject(lost)
    await Promise.all(moves)
    expectClose(await meanwhile, want, 1e-4)
    expect(sofar() - loads).toBeLessThanOrEqual(loads)
    expect(decider.device).toBe(cpu)
    expect(device.memory.keptBytes).toBe(0)
    await device.flush()
    await decider.recover(device) // and back
    expect(await answer(decider)).toEqual(want)
    expect(cpu.memory.keptBytes).toBe(0)
    await decider.dispose()
    await expect(decider.recover()).rejects.toMatchObject({ code: 'disposed' })
    await device.dispose()
    expect(device.memory.buffers).toBe(0)
  })

  test('a reload that fails says why to every call until one succeeds', async () => {
    let broken = false
    const { source } = reading(() => {
      if (broken) throw new Error('unplugged')
    })
    await using device = await openDevice('webgpu', { precision: 'f32' })
    const decider = await load(device, source)
    broken = true
    await expect(decider.recover()).rejects.toThrow('unplugged')
    await expect(answer(decider)).rejects.toThrow('unplugged')
    expect(decider.device).toBe(device)
    broken = false
    await decider.recover(device)
    expect(await answer(decider)).toEqual(want)
    await decider.dispose()
    expect(device.memory.keptBytes).toBe(0)
  })
})

test('bad input and bad files are refused by name, and the next answer is right', async () => {
  await using device = await openDevice('webgpu', { precision: 'f32' })
  await using decider = await load(device)
  expect(await answer(decider)).toEqual(want)
  const { keptBytes } = device.memory
  const bad: [() => Promise<unknown>, string, string][] = [
    [() => decider.decide('x', { q: choice('Q', ['a']) }), 'InputError', 'input'],
    [() => decider.decide('x', { q: choice('Q', Array.from({ length: 300 }, String)) }), 'InputError', 'input'],
    [() => decider.decide('x', questions, { temperature: -1 }), 'InputError', 'input'],
    [() => decider.decide('x', { q: yesNo('word '.repeat(40_000)) }), 'InputError', 'too_long'],
    [() => load(device, openSource({ 'config.json': new Blob(['{']) })), 'WeightsError', 'format'],
    [() => load(device, openSource('no/such/folder')), 'WeightsError', 'missing'],
    [() => load(device, replaced('tokenizer_config.json', '{')), 'WeightsError', 'format'],
    [() => load(device, replaced('model.safetensors', 'short')), 'WeightsError', 'format'],
  ]
  for (const [call, name, code] of bad) {
    await expect(call(), String(call)).rejects.toMatchObject({ name, code })
    expect(await answer(decider)).toEqual(want)
    expect(device.memory.keptBytes).toBe(keptBytes)
  }
})

test('a device without room: loading rejects and leaves nothing, at any point; so does a long text', async () => {
  const gpu = await ownGpu()
  const budget = { bytes: 2 ** 40 }
  const device = await given(scarce(gpu, budget))
  const memory = { name: 'DeviceError', code: 'memory' }
  const probe = await load(device)
  const loaded = device.memory.keptBytes
  expect(await answer(probe)).toEqual(want)
  const grown = device.memory.keptBytes
  await probe.dispose()
  for (const part of [0, 0.3, 0.9, 0.99]) {
    const room = Math.floor(loaded * part)
    budget.bytes = room
    await expect(load(device), `${part} of it`).rejects.toMatchObject(memory)
    expect(device.memory.keptBytes).toBe(0)
    expect(budget.bytes).toBe(room)
  }
  budget.bytes = loaded + 2 * (grown - loaded) // pools are copied where they grow
  const decider = await load(device)
  expect(await answer(decider)).toEqual(want)
  await expect(decider.decide('charged '.repeat(3000), questions)).rejects.toMatchObject(memory)
  expect(await answer(decider)).toEqual(want)
  await decider.dispose()
  await device.dispose()
  expect(device.memory).toMatchObject({ keptBytes: 0, buffers: 0 })
  gpu.destroy()
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  test('an abort at any read of loading leaves nothing, and the device loads the next time', async () => {
    await using device = await openDevice(kind, { precision: 'f32' })
    for (let at = 1; at <= reads; at++) {
      const controller = new AbortController()
      const { source } = reading((n) => n === at && controller.abort(`read ${at}`))
      await expect(loadDecider(source, { device, signal: controller.signal })).rejects.toBe(`read ${at}`)
      expect(device.memory.keptBytes).toBe(0)
    }
    const last = new AbortController()
    const onProgress = ({ loadedBytes, totalBytes }: { loadedBytes: number; totalBytes: number }) => {
      if (loadedBytes === totalBytes) last.abort('loaded')
    }
    await expect(loadDecider(nano, { device, signal: last.signal, onProgress })).rejects.toBe('loaded')
    const compiling = new AbortController()
    const watched = new Proxy(device, {
      get(target, key) {
        if (key === 'compile') compiling.abort('compiling')
        return Reflect.get(target, key, target)
      },
    })
    await expect(loadDecider(nano, { device: watched, signal: compiling.signal })).rejects.toBe('compiling')
    expect(device.memory.keptBytes).toBe(0)
    await using decider = await load(device)
    expectClose(await answer(decider), want, 1e-4)
  })

  test('an abort while waiting or answering is heard, and the others get the same answers in order', async () => {
    await using device = await openDevice(kind, { precision: 'f32' })
    await using decider = await load(device)
    const alone = await answer(decider)
    const order: number[] = []
    const controllers = [1, 2, 3, 4, 5].map(() => new AbortController())
    const asks = controllers.map(async ({ signal }, i) => {
      const got = await answer(decider, signal)
      order.push(i)
      return got
    })
    const answers = Promise.allSettled(asks)
    controllers[3]!.abort('waiting')
    await settle(10)
    controllers[0]!.abort('answering')
    const settled = await answers
    expect(settled[0]).toEqual({ status: 'rejected', reason: 'answering' })
    expect(settled[3]).toEqual({ status: 'rejected', reason: 'waiting' })
    expect(order).toEqual([1, 2, 4])
    for (const i of order) expect(settled[i]).toEqual({ status: 'fulfilled', value: alone })
  })

  test('dispose during work ends it and frees the model', async () => {
    await using device = await openDevice(kind, { precision: 'f32' })
    const decider = await load(device)
    const asks = Promise.allSettled([1, 2, 3].map(() => answer(decider)))
    await settle(10)
    const disposed = Promise.all([decider.dispose(), decider.dispose()])
    const outcomes = await asks
    await disposed
    expect(device.memory.keptBytes).toBe(0)
    const disposal = { status: 'rejected', reason: { name: 'DeviceError', code: 'disposed' } }
    for (const outcome of outcomes) expect(outcome).toMatchObject(disposal)
    await expect(answer(decider)).rejects.toMatchObject({ code: 'disposed' })
    const again = await load(device) // the device is as good as new
    expectClose(await answer(again), want, 1e-4)
  })

  test('dispose during a reload ends that too', async () => {
    await using device = await openDevice(kind, { precision: 'f32' })
    const decider = await load(device)
    const recovering = decider.recover().catch((error: unknown) => error)
    const waiting = answer(decider).catch((error: unknown) => error)
    await decider.dispose()
    expect(await recovering).toMatchObject({ code: 'disposed' })
    expect(await waiting).toMatchObject({ code: 'disposed' })
    expect(device.memory.keptBytes).toBe(0)
  })
})
