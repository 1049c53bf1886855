import { openAsBlob, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadDecider } from '../../../src/apps/decider/load.ts'
import { choice, yesNo } from '../../../src/apps/decider/question.ts'
import { cpuDevice } from '../../../src/device/cpu.ts'
import { InputError, WeightsError } from '../../../src/errors.ts'
import { fixturePath } from '../../fixtures.ts'

const folder = 'public/models/decider-nano'
const device = cpuDevice('test')
afterAll(() => device.dispose())

/** The nano checkpoint with some files replaced or, as undefined, left out. */
async function nanoWith(changed: Record<string, string | undefined>) {
  const names = readdirSync(folder).filter((name) => !(name in changed))
  const own = await Promise.all(names.map(async (name) => [name, await openAsBlob(join(folder, name))] as const))
  const others = Object.entries(changed).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, new Blob([text])] as const],
  )
  return Object.fromEntries([...own, ...others])
}
const CHAT = '{"version": "chat-1", "layout": "chat"}'
const TEMPLATE = "{{ '<|im_start|>user\\n' + messages[0].content + '<|im_end|>\\n<think>\\n' }}"

test('a chat model takes its frame from its template, as a file or in the tokenizer’s config', async () => {
  const inside = JSON.stringify({ chat_template: TEMPLATE, eos_token: { content: '<|endoftext|>' } })
  const rows = []
  for (const files of [{ 'chat_template.jinja': TEMPLATE }, { 'tokenizer_config.json': inside }]) {
    await using decider = await loadDecider(await nanoWith({ 'decider_config.json': CHAT, ...files }), { device })
    expect(decider.config).toMatchObject({ name: 'decider-chat-1', layout: 'chat' })
    const { answers } = await decider.decide('x', { team: choice('Which?', ['a', 'b']) })
    expect(answers.team.x_p_max).toBeGreaterThanOrEqual(0.5)
    const wire = decider.wire()
    rows.push((await wire.systemOne('{"state": "x", "questions": {"q": {"type": "noul", "question": "Q"}}}')).rows)
  }
  expect(rows[0]).toEqual(rows[1])
  expect(rows[0]![0]!.ids[0]).toBe(4079) // <|im_start|>
})

test('without a template a chat model is refused before its weights are read', async () => {
  const files = await nanoWith({ 'decider_config.json': CHAT, 'model.safetensors': undefined })
  await expect(loadDecider(files, { device })).rejects.toMatchObject({ code: 'missing', message: /no chat template/ })
  for (const config of ['{"layout": "xml_v2"}', '{"layout": "plain", "chat_template": true}']) {
    const unknown = await nanoWith({ 'decider_config.json': config, 'model.safetensors': undefined })
    await expect(loadDecider(unknown, { device })).rejects.toThrow(WeightsError)
    await expect(loadDecider(unknown, { device })).rejects.toThrow('layout is')
  }
})

test('a checkpoint with a tower sees unless its decider_config.json says otherwise', async () => {
  const image = readFileSync(fixturePath('decider-nano/golden_image_red.png'))
  const ask = { colour: choice('What color is shown?', ['red', 'green', 'blue']) }
  const sees = async (changed: Record<string, string | undefined>) => {
    await using decider = await loadDecider(await nanoWith(changed), { device })
    const asked = decider.decide('Identify the dominant color in the image.', ask, { image })
    const seen = await asked.then(
      ({ answers }) => answers.colour.choice,
      ({ code }) => code,
    )
    return [decider.config.vision, seen]
  }
  expect(await sees({ 'decider_config.json': undefined })).toEqual([true, 'red'])
  expect(await sees({ 'decider_config.json': '{"vision": false}' })).toEqual([false, 'unsupported'])
  const alone = { 'decider_config.json': '{}', 'preprocessor_config.json': undefined }
  expect(await sees(alone)).toEqual([false, 'unsupported'])
})

test('temperatures instead of the checkpoint’s, and no room for prefixes', async () => {
  const ask = { refund: yesNo('A refund?') }
  const answered = async (options: object) => {
    await using decider = await loadDecider(folder, { device, ...options })
    return (await decider.decide('Charged twice, money back please.', ask)).answers.refund.noul
  }
  const own = await answered({})
  const logit = (p: number) => Math.log(p / (1 - p))
  const hot = await answered({ temperature: 6.216, prefixBytes: 0 }) // twice the model's own for yes and no
  expect(Math.abs(logit(hot) * 2 - logit(own))).toBeLessThan(0.01) // four decimals
  expect(await answered({ temperatureByType: { noul: 3.108 } })).toBe(own)
  await expect(loadDecider(folder, { device, temperature: 0 })).rejects.toThrow(InputError)
})
