import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cpuDevice, cpuTarget } from '../../../src/device/cpu.ts'
import type { Device, Program } from '../../../src/device/device.ts'
import { openDevice } from '../../../src/device/open.ts'
import type { Graph } from '../../../src/graph/graph.ts'
import type { Target } from '../../../src/graph/target.ts'
import { FREE_SLOT, type Row } from '../../../src/models/qwen3_5/schedule.ts'
import type { Session } from '../../../src/models/qwen3_5/session.ts'
import { expectClose } from '../../check.ts'
import { expectNoUnhandledRejection } from '../../device/faulty.ts'
import { fixtureSession, tokens } from './fixture.ts'

expectNoUnhandledRejection()

const name = 'qwen35-text-tiny'
const row = (n: number): Row => ({ ids: tokens(n, 512, n), slots: [0, n - 1] })
const rows = [row(40), row(200), row(70), row(30), row(90)]

describe.each([
  ['cpu', async () => cpuDevice('test')],
  ['webgpu', () => openDevice('webgpu', { precision: 'f32' })],
] as const)('the same bits in runs of any sizes, on %s', (_, open) => {
  let device: Device
  let session: Session
  let whole: Float32Array[][]
  beforeAll(async () => {
    device = await open()
    session = await fixtureSession(name, device)
    whole = await session.logits(rows)
  })
  afterAll(() => device.dispose())

  test.each([[[64]], [[128]], [[64, 256]], [[1e6]]])('of %j tokens', async (runTokens) => {
    expect(await session.logits(rows, { runTokens })).toEqual(whole)
  })
})

/** A CPU device on which `change` may be another way to run a program. Variants are picked, and dropped, as on a GPU. */
function deviceWith(change: (program: Program, graph: Graph) => Program['run']): Device {
  const device = cpuDevice('test')
  let target: Target = { ...cpuTarget, software: false, disabled: new Map([['linear_matrix', 'tested']]) }
  return Object.create(device, {
    target: { get: () => target },
    disable: {
      value(variant: string, reason: string) {
        target = { ...target, disabled: new Map([...target.disabled, [variant, reason]]) }
      },
    },
    compile: {
      value: async (graph: Graph) => {
        const program = await device.compile(graph)
        return Object.create(program, { run: { value: change(program, graph) } })
      },
    },
  })
}

const long = [row(300)]
const inPieces = { runTokens: [64] } // five runs, of which each continues the one before
const answerOf = async (device: Device) => (await fixtureSession(name, device)).logits(long, inPieces)
const sound = deviceWith((program) => program.run)

test('a run is sent while the one before it is at work, and no further ones', async () => {
  let [inFlight, most, runs] = [0, 0, 0]
  const session = await fixtureSession(
    name,
    deviceWith((program) => async (...run) => {
      most = Math.max(most, ++inFlight)
      runs++
      try {
        return await program.run(...run)
      } finally {
        inFlight--
      }
    }),
  )
  await session.program() // and the probes of its variants
  ;[runs, most] = [0, 0]
  await session.logits(long, inPieces)
  expect([runs, most, inFlight]).toEqual([5, 2, 0])
})

/** Whether optional kernels are there to fail. */
const hasOptional = ({ steps }: Graph): boolean => steps.some(({ kernel }) => kernel.optional)

test.each([0, 1, 3])(
  'run %i goes wrong in an optional kernel: later runs begin anew with what is right',
  async (bad) => {
    let runs = 0
    const device = deviceWith((program, graph) => async (inputs, ...rest) => {
      if (!hasOptional(graph) || runs++ !== bad) return program.run(inputs, ...rest)
      const { ids } = inputs
      const { logits } = await program.run({ ...inputs, ids: (ids as Uint32Array).map(() => 0) }, ...rest) // another state
      return { logits: logits!.map(() => Number.NaN) }
    })
    const session = await fixtureSession(name, device)
    const mended = await session.logits(long, inPieces)
    expect(runs).toBe(Math.min(bad + 2, 5)) // one was on its way
    expect([...device.target.disabled.values()]).toContain('a run gave numbers that are not finite')
    expect(await session.logits(long, inPieces)).toEqual(mended)
    const want = await answerOf(sound)
    mended[0]!.forEach((logits, i) => expectClose(logits, want[0]![i]!, 1e-4, `slot ${i}`))
  },
)

test('what fails in one run rejects the call, and the next call is right', async () => {
  let failing = 2
  const session = await fixtureSession(
    name,
    deviceWith((program) => async (...run) => {
      if (failing-- === 0) throw new Error('enough')
      return program.run(...run)
    }),
  )
  await expect(session.logits(long, inPieces)).rejects.toThrow('enough')
  expect(await session.logits(long, inPieces)).toEqual(await answerOf(sound))
})

test('an abort is heard between runs', async () => {
  const controller = new AbortController()
  let runs = 0
  const session = await fixtureSession(
    name,
    deviceWith((program) => (...run) => {
      if (++runs === 2) controller.abort(new Error('enough'))
      return program.run(...run)
    }),
  )
  await expect(session.logits(long, { ...inPieces, signal: controller.signal })).rejects.toThrow('enough')
  expect(runs).toBe(2)
  expect(await session.logits(long)).toHaveLength(1)
})

test('a state that rows of the call continue stays as it is', async () => {
  await using device = cpuDevice('test')
  const session = await fixtureSession(name, device)
  const kept = { slots: FREE_SLOT + 1, kvRows: 128 }
  const keep = { slot: FREE_SLOT, kvStart: 0 }
  await session.logits([{ ids: tokens(64, 512), slots: [], keep }], { kept })
  const after = { ...keep, length: 64 }
  await expect(session.logits([row(3), { ...row(5), after, keep }], { kept })).rejects.toThrow(
    'logits: row 1 keeps its state in slot 3, which a row of this call continues; keep it in another',
  )
})
