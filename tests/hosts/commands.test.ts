import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { goldenImages, goldenText } from '../apps/decider/nano.ts'
import { fixturePath } from '../fixtures.ts'
import { JSON_TYPE } from '../server/fake.ts'
import { build, type Finished, type Started, start } from './processes.ts'

const folder = mkdtempSync(join(tmpdir(), 'pronounce-commands-'))
const at = (name: string): string => join(folder, name)
const text = (name: string): string => readFileSync(at(name), 'utf8')
const imagePath = (name: string): string => fixturePath(`decider-nano/${name}`)
const lines = (name: string): string[] => text(name).split('\n').slice(0, -1)

beforeAll(build)
afterAll(() => rmSync(folder, { recursive: true }))

/** Starts a command of the program on the CPU. */
function launch(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const started = start(process.execPath, ['dist/cli.js', command, ...args], env)
  started.child.stdin!.end()
  return started
}
const command = (name: string, ...args: string[]): Promise<Finished> => launch(name, args).finished

/** Ends it in the middle of its work, when its file has some lines. */
async function killed({ child, finished }: Started, file: string, least: number): Promise<void> {
  const count = (): number => {
    try {
      return lines(file).length
    } catch {
      return 0 // not there yet
    }
  }
  while (count() < least && child.exitCode === null) await sleep(20)
  child.kill('SIGKILL')
  expect((await finished).code, 'it was at work').toBeNull()
}

describe('serve', () => {
  const team = {
    type: 'choice',
    instructions: 'Which department should handle this?',
    criteria: ['billing', 'technical'],
  }
  const body = (state: string): string => JSON.stringify({ state, questions: { team } })

  async function serving(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
    const started = launch('serve', ['--port', '0', '--device', 'cpu', ...args], env)
    const url = await new Promise<string>((resolve, reject) => {
      started.child.stderr!.on('data', (said: string) => {
        const [, url] = /^listening on (\S+) with decider-nano-1,/m.exec(said) ?? []
        if (url) resolve(url)
      })
      started.finished.then(({ stderr }) => reject(new Error(stderr)))
    })
    const post = (state: string, init: RequestInit = {}) =>
      fetch(`${url}/v1/systemone`, { method: 'POST', headers: JSON_TYPE, body: body(state), ...init })
    const outstanding = async (): Promise<number> => (await (await fetch(`${url}/stats`)).json()).outstanding_rows
    return { ...started, url, post, outstanding }
  }

  test('answers on this machine alone, and what is under way when it is told to stop', async () => {
    const { child, finished, url, post, outstanding } = await serving()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const health = await (await fetch(`${url}/health`)).json()
    expect(health).toMatchObject({ ok: true, device: 'cpu', device_report: { why: 'asked for' } })
    const pending = post('My card was charged twice for the same purchase.')
    while ((await outstanding()) === 0) await sleep(1)
    child.kill('SIGTERM')
    const { answers } = await (await pending).json()
    expect(answers.team.choice).toBe('billing')
    const { code, stderr, stdout } = await finished
    expect(code, stderr).toBe(0)
    expect(stdout).toBe('')
    await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed')
  })

  test('a client that goes away costs no more; SIGINT stops it too; the key may be in the environment', async () => {
    const { child, finished, url, post } = await serving([], { PRONOUNCE_API_KEY: 'secret' })
    expect((await fetch(`${url}/health`)).status).toBe(401)
    const headers = { ...JSON_TYPE, authorization: 'Bearer secret' }
    const outstanding = async () => (await (await fetch(`${url}/stats`, { headers })).json()).outstanding_rows
    const abort = new AbortController()
    const gone = post('My card was charged twice. '.repeat(300), { headers, signal: abort.signal })
    while ((await outstanding()) === 0) await sleep(1)
    abort.abort()
    await expect(gone).rejects.toThrow('aborted')
    while ((await outstanding()) > 0) await sleep(1)
    child.kill('SIGINT')
    const { code, stderr } = await finished
    expect(code, stderr).toBe(0)
  })

  test('speaks, and a client that goes away stops the speech', async () => {
    const { child, finished, url } = await serving()
    const say = (input: string, init: RequestInit = {}) =>
      fetch(`${url}/v1/audio/speech`, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ input }), ...init })
    const abort = new AbortController()
    const gone = say('/həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ həlˈoʊ/', { signal: abort.signal })
    setTimeout(() => abort.abort(), 500)
    await expect(gone).rejects.toThrow('aborted')
    const response = await say('/haɪ/')
    expect(response.headers.get('content-type')).toBe('audio/wav')
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(1000)
    child.kill('SIGTERM')
    expect((await finished).code).toBe(0)
  })

  test.each([
    [['--port', 'many'], 2, 'Not an integer'],
    [['--model', 'no/such/folder'], 1, 'no/such/folder'],
    [['--speech', 'no/such/folder'], 1, 'no/such/folder'],
    [['--api-key', 'ä'], 1, 'apiKey'],
    [['--host', '203.0.113.1'], 1, '203.0.113.1'],
  ])('%j ends it with %d', async (args, code, said) => {
    const finished = await command('serve', '--port', '0', '--device', 'cpu', ...args)
    expect(finished.code).toBe(code)
    expect(finished.stderr).toContain(said)
  })
})

describe('classify', () => {
  const ROWS = 16
  const schema = at('schema.json')
  beforeAll(() => {
    writeFileSync(schema, JSON.stringify({ refund: { type: 'noul', question: 'A refund?' } }))
    const rows = Array.from({ length: ROWS }, (_, i) =>
      JSON.stringify({ id: `r${i}`, state: `Order ${i} was charged twice.` }),
    )
    rows[5] = 'no JSON'
    writeFileSync(at('in.jsonl'), `${rows.join('\n\n')}\n`)
  })
  const args = (out: string) => [at('in.jsonl'), at(out), '--schema', schema, '--batch', '2', '--device', 'cpu']

  test('a run that is killed goes on where it was, and loses and repeats no row', { timeout: 300_000 }, async () => {
    const whole = await command('classify', ...args('whole.jsonl'))
    expect(whole.code, whole.stderr).toBe(0)
    expect(whole.stderr).toContain(`classified ${ROWS} rows, 1 of them could not be asked`)
    const found = lines('whole.jsonl').map((line) => JSON.parse(line))
    expect(found.map(({ row }) => row)).toEqual(Array.from({ length: ROWS }, (_, i) => 2 * i + 1))
    expect(found.map(({ id }) => id)).toEqual(found.map((_, i) => (i === 5 ? undefined : `r${i}`)))
    expect(found[0]).toMatchObject({ model: 'decider-nano-1', answers: { refund: { type: 'noul' } } })
    expect(found[5]).toEqual({ row: 11, error: expect.stringContaining('json: ') })

    await killed(launch('classify', args('out.jsonl')), 'out.jsonl', 6)
    const before = lines('out.jsonl').length
    expect(before).toBeLessThan(ROWS)
    writeFileSync(at('out.jsonl'), `${text('out.jsonl')}{"row":999,"mod`) // a line that the kill cut off
    const rest = await command('classify', ...args('out.jsonl'))
    expect(rest.code, rest.stderr).toBe(0)
    expect(rest.stderr).toContain(`goes on after ${before} rows`)
    expect(text('out.jsonl')).toBe(text('whole.jsonl'))

    const again = await command('classify', ...args('out.jsonl'))
    expect(again.stderr).toContain('classified 0 rows')
    expect(text('out.jsonl')).toBe(text('whole.jsonl'))
  })

  test('it does not go on with something else', async () => {
    writeFileSync(at('other.jsonl'), '{"row":1,"model":"other"}\n')
    const { code, stderr } = await command('classify', ...args('other.jsonl'))
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: output: row 1 of .* is not what .* give/m)
    expect(text('other.jsonl')).toBe('{"row":1,"model":"other"}\n')
  })

  test('a file that is not there', async () => {
    const { code, stderr } = await command('classify', at('none.jsonl'), at('x.jsonl'), '--schema', schema, '-d', 'cpu')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: input: .*none\.jsonl cannot be read/m)
  })
})

test('rows of data may name images, by paths from its folder', async () => {
  const { image, context, questions, probs } = goldenImages[0]!
  copyFileSync(imagePath(image), at('a.png'))
  const [{ question, options }] = questions as [(typeof questions)[number]]
  const right = probs[0]!.indexOf(Math.max(...probs[0]!))
  const row = { context, state: context, question, options, gold: right, image: 'a.png' }
  writeFileSync(at('seen.jsonl'), [row, { ...row, image: 'b.png' }].map((row) => JSON.stringify(row)).join('\n'))
  writeFileSync(at('what.json'), JSON.stringify({ what: { type: 'choice', question, options } }))
  const classified = await command('classify', at('seen.jsonl'), at('seen.out'), '-s', at('what.json'), '-d', 'cpu')
  expect(classified.code, classified.stderr).toBe(0)
  const [first, second] = text('seen.out').split('\n')
  expect(JSON.parse(first!).answers.what.choice).toBe(options[right])
  expect(JSON.parse(second!).error).toMatch(/^image: file:.*b\.png cannot be read/)

  const args = ['--data', at('seen.jsonl'), '-d', 'cpu', '--limit']
  const evaluated = await command('evaluate', ...args, '1', '--out', at('seen'))
  expect(evaluated.code, evaluated.stderr).toBe(0)
  const { agg, provenance } = JSON.parse(text('seen/eval.json'))
  expect([agg.rows.n, agg.rows.acc]).toEqual([1, 1])
  expect(provenance.images).toEqual({ sha256: expect.stringMatching(/^[\da-f]{64}$/), maxPixels: 2 ** 20 })
  const bad = await command('evaluate', ...args, '2', '--out', at('unseen'))
  expect(bad.stderr).toMatch(/^error: --data: line 2 of .*seen\.jsonl: image: file:.*b\.png cannot be read/m)
  expect(existsSync(at('unseen/run.json')), 'nothing was begun').toBe(false)

  copyFileSync(imagePath(goldenImages[1]!.image), at('a.png'))
  const other = await command('evaluate', ...args, '1', '--out', at('seen'))
  expect(other.stderr, 'the rows are the same, but not the image').toMatch(
    /^error: --out: .* is of another evaluation/m,
  )
})

describe('evaluate and calibrate', () => {
  const data = 'tests/fixtures/decider-nano/heldout.jsonl'
  const args = (out: string) => ['--data', data, '--limit', '8', '--batch', '2', '--out', at(out), '--device', 'cpu']

  test('a run that is killed goes on and ends with the same numbers', { timeout: 300_000 }, async () => {
    const whole = await command('evaluate', ...args('whole'))
    expect(whole.code, whole.stderr).toBe(0)
    expect(whole.stdout).toMatch(/^task +n +acc +nll +brier +ece +aurc +acc_at_80 +acc_at_50\n/)
    expect(whole.stdout).toMatch(/^all rows +8 /m)
    const report = JSON.parse(text('whole/eval.json'))
    expect(report.agg.rows.n).toBe(8)
    expect(report.provenance).toMatchObject({
      ...{ model: 'decider-nano-1', dtype: 'f32', temperature: { byType: { choice: 2.798 } } },
      data: { path: data, rows: 8, sha256: expect.stringMatching(/^[\da-f]{64}$/) },
    })
    expect(text('whole/reliability.svg')).toMatch(/^<svg /)

    await killed(launch('evaluate', args('killed')), 'killed/predictions.jsonl', 2)
    const rest = await command('evaluate', ...args('killed'))
    expect(rest.stderr).toMatch(/goes on after \d+ of 8 rows/)
    expect(rest.stdout).toBe(whole.stdout)
    expect(text('killed/predictions.jsonl')).toBe(text('whole/predictions.jsonl'))

    const other = await command('evaluate', ...args('whole'), '--limit', '3')
    expect(other.code).toBe(1)
    expect(other.stderr).toMatch(/^error: --out: .* is of another evaluation/m)

    const fitted = await command('calibrate', at('whole/predictions.jsonl'), '--min-rows', '5')
    expect(fitted.code, fitted.stderr).toBe(0)
    const { temperature_by_type, temperature, rows } = JSON.parse(fitted.stdout)
    expect(rows.choice).toBeGreaterThanOrEqual(5)
    expect(temperature_by_type.choice).toBeGreaterThan(0)
    expect(temperature).toBeGreaterThan(0)
  })

  test.each([
    ['evaluate', ['--data', 'LICENSE', '--out', at('x'), '-d', 'cpu'], '--data: line 1 of LICENSE: is not JSON'],
    ['evaluate', ['--data', 'no.jsonl', '--out', at('x'), '-d', 'cpu'], '--data: no.jsonl cannot be read'],
    ['calibrate', ['LICENSE'], 'records: line 1 of LICENSE: is not JSON'],
  ])('%s %j is refused', async (name, args, said) => {
    const { code, stderr, stdout } = await command(name, ...args)
    expect(code).toBe(1)
    expect(stderr).toContain(`error: ${said}`)
    expect(stdout).toBe('')
  })
})

describe('verify', () => {
  const model = 'public/models/decider-nano'
  const pinsOf = (change: (p: number) => number) => ({
    source: 'PyTorch',
    model,
    temperature: 2.798,
    cases: [
      ...goldenText.filter(({ questions, context }) => questions.length === 1 && context.length < 200).slice(0, 3),
      goldenImages.map((golden) => ({ ...golden, image: resolve(imagePath(golden.image)) }))[0]!,
    ].map(({ questions: [question], probs: [p], ...asked }) => ({
      ...{ context: asked.context, question, expected: p!.map(change) },
      ...('image' in asked && { name: asked.name, image: asked.image }),
    })),
  })
  const pins = (name: string, change: (p: number) => number) => {
    writeFileSync(at(name), JSON.stringify(pinsOf(change)))
    return ['--pins', at(name), '--device', 'cpu']
  }

  test('prints what was expected, what it got and the drift', async () => {
    const { code, stdout, stderr } = await command('verify', model, ...pins('pins.json', (p) => p))
    expect(code, stderr).toBe(0)
    expect(stdout.match(/: ok, drift 0\.0000/g)).toHaveLength(4)
    expect(stdout).toMatch(/^ {2}\S.* +expected 0\.\d{6} {2}got 0\.\d{6} {2}[+-]0\.0000\d\d$/m)
    expect(stdout).toMatch(/^largest drift: 0\.0000\d\d, allowed: 0\.02$/m)
  })
  test('fails where an answer differs', async () => {
    const { code, stdout, stderr } = await command('verify', model, ...pins('wrong.json', (p) => 1 - p))
    expect(code).toBe(1)
    expect(stdout).toContain(': DIFFERENT, drift 0.')
    expect(stderr).toMatch(/^error: verify: 4 of 4 answers differ/m)
  })
  test('knows what is published, and asks for pins of the rest', async () => {
    const { code, stderr } = await command('verify', 'hf:Mapika/decider-9b')
    expect(code).toBe(1)
    expect(stderr).toContain('nothing is pinned for hf:Mapika/decider-9b, expected hf:Mapika/decider-0.8b@1ea54127')
  })
})
