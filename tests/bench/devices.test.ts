import { expect, test } from 'vitest'
import { profilingWhatRan, watched, without } from '../../bench/devices.ts'
import { cpuDevice } from '../../src/device/cpu.ts'
import type { Device, Profile, RunOptions } from '../../src/device/device.ts'
import { Graph } from '../../src/graph/graph.ts'
import { counts } from '../check.ts'
import { chain } from '../device/toy.ts'

const x = new Float32Array(3).fill(1)

/** A device that tells with what its runs were asked for. */
function telling(): { device: Device; asked: RunOptions[] } {
  const cpu = cpuDevice('test')
  const asked: RunOptions[] = []
  const compile: Device['compile'] = async (graph) => {
    const program = await cpu.compile(graph)
    const run: typeof program.run = (inputs, counts, options = {}) => {
      asked.push(options)
      return program.run(inputs, counts, options)
    }
    return Object.create(program, { run: { value: run } })
  }
  return { device: Object.create(cpu, { compile: { value: compile } }), asked }
}

test.each<[string, (device: Device) => Device]>([
  ['profilingWhatRan', profilingWhatRan],
  ['watched', (device) => watched(device).device],
  ['without', (device) => without(device, [], ['linear_few'])],
])('%s runs with what it is asked for, and profiles only when asked', async (_, wrapped) => {
  const { device, asked } = telling()
  const own = wrapped(device)
  const graph = new Graph(own.target)
  chain(graph, own.keep('pool', ['*'], 'f32', 1))
  const program = await own.compile(graph)
  const { signal } = new AbortController()
  const one = counts()
  expect(await program.run({ x }, one, { signal, read: false })).toEqual({})
  expect(asked[0]).toMatchObject({ signal, read: false })
  expect(asked[0]!.onProfile).toBe(undefined)
  const profiles: Profile[] = []
  const { y } = await program.run({ x }, one, { onProfile: (profile) => profiles.push(profile) })
  expect([...y!]).toEqual([6, 6, 6])
  expect(asked[1]!.read).toBe(undefined)
  expect(profiles.map(({ dispatches }) => dispatches.length)).toEqual([2])
})
