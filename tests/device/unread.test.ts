import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../src/device/cpu.ts'
import type { Device } from '../../src/device/device.ts'
import { openDevice } from '../../src/device/open.ts'
import { Graph } from '../../src/graph/graph.ts'
import { counts, gpu } from '../check.ts'
import { expectNoUnhandledRejection, ownGpu, settle } from './faulty.ts'
import { chain } from './toy.ts'

expectNoUnhandledRejection()

const three = counts({ T: 3 })
const x = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9)
const sixfold = [...x].map((v) => 6 * v)

async function program(device: Device) {
  const pool = device.keep('pool', ['*'], 'f32', 3)
  const graph = new Graph(device.target)
  chain(graph, pool)
  return { pool, program: await device.compile(graph) }
}

describe.each(['cpu', 'webgpu'])('runs that are not read, on %s', (kind) => {
  test('do their work in order, and give nothing', async () => {
    const device = kind === 'cpu' ? cpuDevice('test') : await gpu()
    const { pool, program: p } = await program(device)
    const unread = [1, 2, 3].map((n) => p.run({ x: x.map((v) => n * v) }, three, { read: false }))
    const last = p.run({ x }, three)
    expect(await Promise.all(unread)).toEqual([{}, {}, {}])
    expect([...(await last).y!]).toEqual(sixfold)
    const sums = new Float32Array((await device.read(pool)).buffer)
    expect([...sums]).toEqual([1, 4, 7].map((v) => 3 * v * (1 + 2 + 3 + 1))) // each run adds x and 2x
    device.release(pool)
    p.dispose()
  })

  test('hear an abort before they start', async () => {
    const device = kind === 'cpu' ? cpuDevice('test') : await gpu()
    const { program: p } = await program(device)
    const reason = new Error('enough')
    await expect(p.run({ x }, three, { read: false, signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    p.dispose()
  })
})

test.each([true, false])('what goes wrong behind an unread run rejects the next one alone, read: %s', async (read) => {
  const own = await ownGpu()
  const device = await openDevice('webgpu', { gpu: own, precision: 'f32' })
  const { program: p } = await program(device)
  await p.run({ x }, three)
  await p.run({ x }, three, { read: false })
  own.createBuffer({ size: 16, usage: 0 }) // raises an error that no scope catches
  await settle()
  await expect(p.run({ x }, three, { read })).rejects.toMatchObject({ name: 'DeviceError', code: 'validation' })
  expect([...(await p.run({ x }, three)).y!]).toEqual(sixfold)
  await device.dispose()
  own.destroy()
})

test('a loss rejects unread runs too', async () => {
  const own = await ownGpu()
  const device = await openDevice('webgpu', { gpu: own, precision: 'f32' })
  const { program: p } = await program(device)
  await p.run({ x }, three, { read: false })
  own.destroy()
  await device.lost
  await expect(p.run({ x }, three, { read: false })).rejects.toMatchObject({ code: 'lost' })
  await device.dispose()
})
