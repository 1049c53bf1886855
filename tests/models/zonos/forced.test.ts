import { expect, test } from 'vitest'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { CODEBOOKS, CODES } from '../../../src/models/zonos/config.ts'
import { undelayed } from '../../../src/models/zonos/delay.ts'
import { forcedLogits } from '../../../src/models/zonos/forced.ts'
import { zonosSession } from '../../../src/models/zonos/session.ts'
import { expectWithin } from '../../check.ts'
import { fixtureTensors } from '../../fixtures.ts'
import { type Conditions, codesOf, loadZonos, prefixOf } from './fixture.ts'

const golden = fixtureTensors('zonos-nano/golden.safetensors')
const espeak = [...golden.get('t2.ids').data]
const speaker = [...golden.get('t2.speaker').data]
const conditions = JSON.parse(golden.metadata.cond!) as Conditions

async function nano() {
  const device = cpuDevice('test')
  const model = await loadZonos('public/models/zonos-nano', device)
  const conditional = prefixOf(model, { ...conditions, speaker, espeak })
  return { device, model, speech: { conditional, unconditional: prefixOf(model, { espeak }) } }
}

test('one row: the logits of the reference, column after column', async () => {
  const { device, model, speech } = await nano()
  const grid = codesOf(golden.get('t2.grid')) // of the layout of codes
  const want = golden.get('t2.logits_cond').data
  const n = CODEBOOKS * CODES
  const rows = want.length / n
  const codes = undelayed(grid.data, 0, grid.frames - CODEBOOKS)
  let column = 0
  for await (const logits of forcedLogits(device, model.c, model.w, { ...speech, cfgScale: 1, codes })) {
    expectWithin(logits, want.subarray(column * n, (column + 1) * n), 1e-3, 1e-3, `column ${column + 1}`)
    if (++column === rows) break
  }
  expect(column).toBe(rows)
  model.release()
  expect(device.memory.keptBytes, 'the memory of a reading that is left is freed').toBe(0)
})

test('with guidance: of what greedy speech says the codes are the most probable', async () => {
  const { device, model, speech } = await nano()
  const session = zonosSession(device, model.c, model.w)
  const sampling = { temperature: 0, repetitionPenalty: 1, minFrames: 6 }
  const { codes } = await session.generate({ ...speech, maxFrames: 6, sampling })
  const columns: Float32Array[] = []
  for await (const logits of forcedLogits(device, model.c, model.w, { ...speech, codes })) columns.push(logits)
  expect(columns.length).toBe(codes.frames + CODEBOOKS - 1)
  for (let k = 0; k < CODEBOOKS; k++)
    for (let frame = 0; frame < codes.frames; frame++) {
      const logits = columns[frame + k]!.subarray(k * CODES, (k + 1) * CODES - 1) // but for EOS
      expect(logits[codes.data[frame * CODEBOOKS + k]!]).toBe(logits.reduce((a, b) => Math.max(a, b)))
    }
})
