import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/device/tunings.ts'
import { decodeWav, openDevice, type SpeechParity } from '../../src/index.ts'
import { type Hub, startHub } from '../weights/hub.ts'
import { build, type Finished, root, runNode, start } from './processes.ts'

const text = 'My card was charged twice for the same purchase.'
const department = ['--question', 'Which department should handle this?', '--options', 'billing,technical,sales']
const folder = mkdtempSync(join(tmpdir(), 'pronounce-'))
const decide = (...args: string[]) => runNode(['dist/cli.js', 'decide', ...args])

beforeAll(build)
afterAll(() => rmSync(folder, { recursive: true }))

/** It answered, and then ended by itself. */
function expectEnded({ code, stderr, lingeredMs }: Finished): void {
  expect(code, stderr).toBe(0)
  expect(lingeredMs).toBeLessThan(1000)
}

function expectBilling(stdout: string, tolerance: number): void {
  const [, p] = /^Which department should handle this\? -> billing\n {2}billing +(0\.\d{4})\n/.exec(stdout) ?? []
  expect(Math.abs(Number(p) - 0.96), stdout).toBeLessThanOrEqual(tolerance)
}

describe('decide', () => {
  test.each([
    ['cpu', 'auto', 1e-3],
    ['webgpu', 'f32', 1e-3],
    ['webgpu', 'auto', 2e-3],
  ] as const)('answers on %s, precision %s, and says so', async (kind, precision, tolerance) => {
    const device = await openDevice(kind, { precision })
    const { line } = device.report
    await device.dispose()
    const finished = await decide(text, ...department, '--device', kind, '--precision', precision)
    expectEnded(finished)
    expectBilling(finished.stdout, tolerance)
    expect(finished.stderr.split('\n')).toContain(`device: ${line}`)
    expect(line).toMatch(/, f(16|32): asked for$/)
  })

  test('auto never takes a software adapter, and says what it found', async () => {
    const device = await openDevice('auto')
    const { line, software } = device.report
    await device.dispose()
    const finished = await decide(text, ...department)
    expectEnded(finished)
    expectBilling(finished.stdout, 2e-3)
    expect(software).toBe(false)
    expect(finished.stderr.split('\n')).toContain(`device: ${line}`)
  })

  test('--json prints one object, with an answer to every question', async () => {
    const finished = await decide(text, ...department, '--question', 'Is it urgent?', '--json', '--device', 'cpu')
    expectEnded(finished)
    expect(finished.stdout.trimEnd().split('\n')).toHaveLength(1)
    const { model, answers, usage } = JSON.parse(finished.stdout)
    expect(model).toMatch(/^decider-nano/)
    expect(Object.keys(answers)).toEqual(['Which department should handle this?', 'Is it urgent?'])
    expect(answers['Which department should handle this?'].probabilities.billing).toBeCloseTo(0.96, 2)
    expect(answers['Is it urgent?'].noul).toBeGreaterThanOrEqual(0)
    expect(usage.inputTokens).toBeGreaterThan(0)
  })

  test('questions of a schema file about the text of stdin', async () => {
    const schema = join(folder, 'schema.json')
    writeFileSync(
      schema,
      JSON.stringify({
        team: { type: 'choice', question: 'Which department should handle this?', options: ['billing', 'technical'] },
        refund: { type: 'noul', question: 'Does the customer want a refund?' },
      }),
    )
    const args = ['dist/cli.js', 'decide', '-', '--schema', schema, '--json', '--device', 'cpu']
    const finished = await runNode(args, `${text}\n`)
    expectEnded(finished)
    const { answers } = JSON.parse(finished.stdout)
    expect(Object.keys(answers)).toEqual(['team', 'refund'])
    expect(answers.team.choice).toBe('billing')
  })

  test('a reader who has seen enough, as in | head, is no failure', async () => {
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'decide', text, ...department, '-d', 'cpu'])
    child.stdout!.destroy()
    const { code, stderr } = await finished
    expect(code, stderr).toBe(0)
    expect(stderr).not.toContain('EPIPE')
  })
})

describe('exit codes', () => {
  test.each([
    ['no question', [text], 'no question'],
    ['options of no question', [text, '--options', 'a,b'], 'no question'],
    ['a question twice', [text, '-q', 'A?', '-q', 'A?'], 'twice'],
    ['no text', [...department], 'text'],
    ['an unknown device', [text, ...department, '--device', 'abacus'], 'abacus'],
    ['an unknown flag', [text, ...department, '--devise', 'cpu'], '--devise'],
    ['a schema and a question', [text, ...department, '--schema', 'schema.json'], '--schema'],
  ])('2: %s', async (_, args, said) => {
    const { code, stdout, stderr } = await decide(...args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^error: /)
    expect(stderr).toContain(said)
  })

  const otherVendor = process.platform === 'darwin' ? 'cuda' : 'metal'
  test.each([
    ['an unknown model folder', [...department, '--model', 'no/such/folder', '-d', 'cpu'], 'no/such/folder: '],
    ['a schema that is not there', ['--schema', 'no_such.json'], '--schema: no_such.json '],
    ['a schema that is not JSON', ['--schema', 'LICENSE'], '--schema: LICENSE is not JSON'],
    ['a device that is not there', [...department, '--device', otherVendor], `openDevice: '${otherVendor}' `],
  ])('1: %s, in one line', async (_, args, said) => {
    const { code, stdout, stderr } = await decide(text, ...args)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    const lines = stderr.split('\n').filter((line) => line && !/^(device|Warning): /.test(line)) // Dawn warns
    expect(lines).toEqual([expect.stringMatching(/^error: /)])
    expect(lines[0]).toContain(said)
  })

  test.each([['--help'], ['--version'], ['tune --help'], ['serve --help']])('0: %s', async (flags) => {
    const { code, stdout } = await runNode(['dist/cli.js', ...flags.split(' ')])
    expect(code).toBe(0)
    expect(stdout).not.toBe('')
  })
})

describe('SIGINT ends it with 130', () => {
  const interrupted = (finished: Finished) => {
    expect(finished.code, finished.stderr).toBe(130)
    expect(finished.stdout).toBe('')
    expect(finished.stderr).not.toContain('error')
  }
  test.each([
    ['cpu', 0],
    ['cpu', 2000], // the model is loaded by then, and the text takes longer
    ['webgpu', 0],
  ])('while it works, on %s, %d ms after the device is open', async (kind, ms) => {
    const long = text.repeat(100)
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'decide', long, ...department, '-d', kind])
    child.stderr!.on('data', (said: string) => {
      if (said.includes('device: ')) setTimeout(() => child.kill('SIGINT'), ms)
    })
    interrupted(await finished)
  })
  test('while it waits for stdin', async () => {
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'decide', '-', ...department, '-d', 'cpu'])
    child.stdin!.on('error', () => {})
    child.stdin!.write(text.repeat(100_000), () => child.kill('SIGINT')) // more than a pipe holds: it is reading
    interrupted(await finished)
  })
})

describe('tune', () => {
  const XDG_CACHE_HOME = join(folder, 'cache')
  const file = join(XDG_CACHE_HOME, 'pronounce/tuning.json')
  const tune = (...args: string[]) => {
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'tune', ...args], { XDG_CACHE_HOME })
    child.stdin!.end()
    return finished
  }
  const errors = ({ stderr }: Finished) => stderr.split('\n').filter((line) => line.startsWith('error: '))

  test.each([
    ['an unknown flag', ['--fast'], '--fast'],
    ['the CPU', ['--device', 'cpu'], 'cpu'],
    ['an argument', ['now'], 'too many arguments'],
    ['to look and to forget at once', ['--show', '--reset'], '--show'],
  ])('2: %s', async (_, args, said) => {
    const finished = await tune(...args)
    expect(finished.code).toBe(2)
    expect(finished.stdout).toBe('')
    expect(errors(finished)).toEqual([expect.stringContaining(said)])
  })

  test.each([
    ['a software adapter', [], 'tune: the adapter is software ('],
    ['a model that is not there', ['--model', 'no/such/folder'], 'no/such/folder: '],
    ['heights that are none', ['--software', '--heights', '32,many'], 'tune: heights has [32,NaN]'],
  ])('1: %s', async (_, args, said) => {
    const finished = await tune(...args)
    expect(finished.code, finished.stderr).toBe(1)
    expect(finished.stdout).toBe('')
    expect(errors(finished)).toEqual([expect.stringContaining(said)])
  })

  test('what it keeps is used by the next device of that adapter, shown and forgotten', async () => {
    const device = await openDevice('webgpu', { tuning: 'built-in' })
    const { adapter } = device.report
    await device.dispose()
    const tile = { RM: 4, RN: 4, GROUP_X: 16, GROUP_Y: 4 }
    const plain = { variant: 'linear', order: { SK: 1, BK: 8 }, heights: [{ tile }] }
    const rules = ['f16', 'f32'].map((on) => ({ on, N: 64, K: 256, ...plain }))
    const kept = { version: VERSION, tunings: { [adapter]: { date: '2026-11-30', rules } } }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(kept))

    const shown = await tune('--show')
    expectEnded(shown)
    const rest = '64 x 256: linear SK1 BK8; above RM4 RN4 GROUP_X16 GROUP_Y4'
    expect(shown.stdout).toBe(`${adapter}: tuned 2026-11-30\n  f16 ${rest}\n  f32 ${rest}\n`)

    const decided = start(process.execPath, ['dist/cli.js', 'decide', text, ...department, '-d', 'webgpu'], {
      XDG_CACHE_HOME,
    })
    decided.child.stdin!.end()
    const answered = await decided.finished
    expectBilling(answered.stdout, 2e-3)
    expect(answered.stderr).toMatch(/^device: .*; tuned 2026-11-30$/m)

    writeFileSync(file, 'damaged')
    const warned = await tune('--show')
    expectEnded(warned)
    expect(warned.stdout).toBe('nothing is tuned here\n')
    expect(warned.stderr).toMatch(/^warning: tuning: what is kept cannot be used/)

    expectEnded(await tune('--reset'))
    const { stdout, stderr } = await tune('--show')
    expect([stdout, stderr]).toEqual(['nothing is tuned here\n', ''])
  })

  test('SIGINT ends it with 130', async () => {
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'tune', '--software'], { XDG_CACHE_HOME })
    child.stderr!.on('data', (said: string) => {
      if (said.includes('device: ')) setTimeout(() => child.kill('SIGINT'), 500)
    })
    const { code, stdout, stderr } = await finished
    expect(code, stderr).toBe(130)
    expect(stdout).toBe('')
    expect(stderr).not.toContain('error')
  })
})

test('npm publishes the program, the library, its types and the small model', () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, stdio: 'pipe' })
  const paths: string[] = JSON.parse(packed.toString())[0].files.map(({ path }: { path: string }) => path)
  expect(paths).toEqual(
    expect.arrayContaining([
      'dist/cli.js',
      'dist/index.js',
      'dist/server.js',
      'dist/types/index.d.ts',
      'dist/types/server.d.ts',
      'public/models/dac-nano/model.safetensors',
      'public/models/decider-nano/model.safetensors',
      'public/models/zonos-nano/model.safetensors',
    ]),
  )
  expect(paths.filter((path) => !/^(dist|public)\/|^(LICENSE|README\.md|package\.json)$/.test(path))).toEqual([])
})

describe('say', () => {
  const say = (...args: string[]) => runNode(['dist/cli.js', 'say', ...args])
  const brief = ['--max-seconds', '0.1', '--device', 'cpu']
  const SAMPLES = (9 + 10) * 512 // with the quiet behind it

  test('a word into a WAV file: the same seed, the same file', async () => {
    const files = ['a', 'b', 'c'].map((name) => join(folder, `${name}.wav`))
    const seeds = ['5', '5', '6']
    for (const [i, file] of files.entries()) {
      const finished = await say('Hi.', '-o', file, '--seed', seeds[i]!, ...brief)
      expect(finished.code, finished.stderr).toBe(0)
      expect(finished.stdout).toBe('')
      expect(finished.stderr).toMatch(/^device: CPU/m)
      expect(finished.stderr).toMatch(/^phonemes: hˈaɪ\.$/m)
      expect(finished.stderr).toMatch(
        /^speech: 0\.\d\d s in .+ times real time, first sound after [\d.]+ s, seed [56]$/m,
      )
    }
    const [a, b, c] = files.map((file) => readFileSync(file))
    expect(a!.equals(b!)).toBe(true)
    expect(a!.equals(c!)).toBe(false)
    const { rate, channels } = decodeWav(a!)
    expect(rate).toBe(44100)
    expect(channels.map(({ length }) => length)).toEqual([SAMPLES])
  })

  test('numbers are read as asked, and words as a dictionary says', async () => {
    const dictionary = join(folder, 'words.json')
    writeFileSync(dictionary, JSON.stringify({ nginx: 'engine x' }))
    const phonemes = async (...args: string[]): Promise<string | undefined> =>
      /^phonemes: (.*)$/m.exec(
        (await say(...args, '-o', join(folder, 'n.wav'), ...brief, '--max-seconds', '0.01', '--cfg', '1')).stderr,
      )?.[1]
    const spoken = await phonemes('five euros and ninety-nine cents')
    expect(spoken).toMatch(/jˈʊɹɹoʊz/)
    expect(await phonemes('€5.99', '--numbers', 'spoken')).toBe(spoken)
    expect(await phonemes('€5.99', '--numbers', 'written')).not.toBe(spoken)
    expect(await phonemes('nginx', '--dictionary', dictionary)).toBe('ˈɛndʒɪn ˈɛks')
  })

  test('- is stdout, written as it is made or at the end: the same samples', () => {
    const args = ['dist/cli.js', 'say', '/haɪ/', '-o', '-', '--format', 'f32', ...brief]
    const [whole, streamed] = [[], ['--stream']].map((more) => {
      const child = spawnSync(process.execPath, [...args, ...more], { cwd: root })
      expect(child.status, String(child.stderr)).toBe(0)
      return child.stdout
    }) as [Buffer, Buffer]
    expect(decodeWav(whole).channels[0]!.length).toBe(SAMPLES)
    expect(decodeWav(streamed)).toEqual(decodeWav(whole))
    expect(streamed.equals(whole), 'its header knows no length').toBe(false)
  })

  test('--play gives it to a player, and says what it looked for', async () => {
    const [bin, heard, empty] = ['bin', 'heard.wav', 'empty'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    mkdirSync(bin)
    mkdirSync(empty)
    const player = (body: string) => writeFileSync(join(bin, 'aplay'), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
    const play = (path: string, ...args: string[]) =>
      start(process.execPath, ['dist/cli.js', 'say', '/haɪ/', '--play', ...brief, ...args], { PATH: path }).finished
    player(`exec /bin/cat > '${heard}'`)
    const finished = await play(bin)
    expect([finished.code, finished.stdout], finished.stderr).toEqual([0, ''])
    expect(decodeWav(readFileSync(heard)).channels[0]!.length).toBe(SAMPLES)
    player('echo no sound card >&2; exit 3')
    const failed = await play(bin)
    expect(failed.code).toBe(1)
    expect(failed.stderr).toMatch(/^error: --play: aplay ended early \(no sound card\)/m)
    const none = await play(empty)
    expect(none.code).toBe(1)
    expect(none.stderr).toMatch(/^error: --play: found no player, expected one of ffplay, aplay, paplay, play, afplay/m)
    expect(none.stderr).not.toContain('device:')
  })

  test('a file is said by the voices that it names', async () => {
    const script = join(folder, 'talk.txt')
    writeFileSync(script, 'anna: /haɪ/!\nben: /baɪ/!\n')
    const voices = (...numbers: string[]) => ['--speaker', `anna=${numbers[0]}`, '--speaker', `ben=${numbers[1]}`]
    const heard = async (...numbers: string[]): Promise<Float32Array> => {
      const file = join(folder, 'talk.wav')
      const finished = await say('--file', script, '-o', file, ...voices(...numbers), ...brief)
      expect(finished.code, finished.stderr).toBe(0)
      expect(finished.stderr.match(/^phonemes: .*$/gm)).toEqual(['phonemes: haɪ!', 'phonemes: baɪ!'])
      return decodeWav(readFileSync(file)).channels[0]!
    }
    const [first, other] = [await heard('1', '2'), await heard('1', '3')]
    expect(first.length).toBe(2 * SAMPLES + Math.floor(0.35 * 44100))
    expect(other.subarray(0, SAMPLES)).toEqual(first.subarray(0, SAMPLES))
    expect(other).not.toEqual(first)
  })

  test('SIGINT ends it with 130 and its player at once; what was written is a WAV file', async () => {
    const [bin, file] = [join(folder, 'slow'), join(folder, 'stopped.wav')]
    mkdirSync(bin)
    writeFileSync(join(bin, 'aplay'), '#!/bin/sh\nexec /bin/sleep 60\n', { mode: 0o755 })
    const args = ['/haɪ/', '-o', file, '--stream', '--play', '--max-seconds', '20', '--device', 'cpu', '--cfg', '1']
    const { child, finished } = start(process.execPath, ['dist/cli.js', 'say', ...args], { PATH: bin })
    let interrupted = 0
    child.stderr!.on('data', (said: string) => {
      if (!said.includes('phonemes: ')) return
      setTimeout(() => {
        interrupted = performance.now()
        child.kill('SIGINT')
      }, 1500)
    })
    const { code, stderr } = await finished
    expect(performance.now() - interrupted, 'not the minute that the player takes').toBeLessThan(10_000)
    expect(code, stderr).toBe(130)
    expect(stderr).not.toContain('error')
    expect(decodeWav(readFileSync(file)).rate).toBe(44100)
  })

  test.each([
    [['Hi.'], 2, /required option '-o/],
    [['-o', 'x.wav'], 2, /pass the text, or --file/],
    [['Hi.', '--file', 'package.json', '-o', 'x.wav'], 2, /pass the text, or --file/],
    [['--file', 'no.txt', '-o', 'x.wav'], 1, /--file: no.txt cannot be read/],
    [['Hi.', '-o', 'x.wav', '--rate', '99'], 1, /speaking_rate is 99, expected 0 to 40/],
    [['Hi.', '-o', 'x.wav', '--min-p', '2'], 1, /minP is 2/],
    [['Hi.', '-o', 'x.wav', '--max-seconds', '0'], 1, /maxSeconds is 0/],
    [['Hi.', '-o', 'x.wav', '--seed', 'many'], 2, /Not a number/],
    [['Hi.', '-o', 'x.wav', '--language', 'xx'], 1, /xx/],
    [['', '-o', 'x.wav'], 1, /text/],
    [['Hi.', '-o', folder], 1, /--output: .+ is a folder, expected a file/],
    [['Hi.', '-o', 'x.wav', '--speaker', 'package.json'], 1, /--speaker: package.json holds something else/],
    [['Hi.', '-o', 'x.wav', '--prefix', 'package.json'], 1, /WAV/],
    [['Hi.', '-o', join(folder, 'no/such/x.wav'), ...brief], 1, /--output: .+ cannot be written/],
  ] as const)('%j is refused', async (args, code, message) => {
    const finished = await say(...args, '--device', 'cpu')
    expect(finished.code).toBe(code)
    expect(finished.stderr).toMatch(message)
    expect(finished.stdout).toBe('')
    if (args[0] !== '') expect(finished.stderr, 'it comes before the work').not.toContain('device:')
  })
})

describe('parity', () => {
  test('of two frames, as JSON: f32 and f16 are within their bounds', async () => {
    const finished = await runNode(['dist/cli.js', 'parity', '--frames', '2', '--json'])
    expect(finished.code, finished.stderr).toBe(0)
    const { reference, frames, drifts } = JSON.parse(finished.stdout) as SpeechParity
    expect(reference).toMatch(/^CPU/)
    expect(frames).toBe(2)
    expect(drifts.map(({ precision, broken }) => ({ precision, broken }))).toEqual([
      { precision: 'f32', broken: [] },
      { precision: 'f16', broken: [] },
    ])
  })

  test.each([
    [['--frames', '0'], 2, /Not a positive integer/],
    [['--device', 'cpu'], 2, /webgpu, cuda, metal/],
    [['--model', 'no/such'], 1, /no\/such/],
  ] as const)('%j is refused', async (args, code, message) => {
    const finished = await runNode(['dist/cli.js', 'parity', ...args])
    expect(finished.code).toBe(code)
    expect(finished.stderr).toMatch(message)
    expect(finished.stdout).toBe('')
  })
})

describe('a program that imports the package', () => {
  test.each(['cpu', 'webgpu'])('decides on %s and ends by itself', async (kind) => {
    const finished = await runNode(['--input-type=module', '--eval', programOn(kind)])
    expectEnded(finished)
    expect(JSON.parse(finished.stdout)).toBeCloseTo(0.96, 2)
  })
})

const programOn = (kind: string) => `
  import { choice, loadDecider, openDevice } from 'pronounce'
  const device = await openDevice('${kind}', { precision: 'f32' })
  const decider = await loadDecider('public/models/decider-nano', { device })
  const { answers } = await decider.decide('${text}', {
    team: choice('Which department should handle this?', ['billing', 'technical', 'sales']),
  })
  await decider.dispose()
  await device.dispose()
  console.log(answers.team.probabilities.billing)`

describe('models of a hub', () => {
  const nano = join(root, 'public/models/decider-nano')
  const PRONOUNCE_CACHE = join(folder, 'models of a hub')
  let hub: Hub
  beforeAll(async () => {
    hub = await startHub(Object.fromEntries(readdirSync(nano).map((name) => [name, readFileSync(join(nano, name))])))
  })
  afterAll(() => hub.close())
  const pronounce = (...args: string[]) => {
    const env = { PRONOUNCE_CACHE, HF_ENDPOINT: hub.base, HF_TOKEN: 'secret' }
    const { child, finished } = start(process.execPath, ['dist/cli.js', ...args], env)
    child.stdin!.end()
    return finished
  }
  const ask = (...args: string[]) => pronounce('decide', text, ...department, '--device', 'cpu', ...args)

  test('are kept, answer offline, are listed and deleted', async () => {
    const model = ['--model', 'hf:me/it']
    const early = await ask(...model, '--offline')
    expect(early.code).toBe(1)
    expect(early.stderr).toContain('error: hf:me/it@main: is not in the cache; load it once without offline')
    expect(hub.log).toEqual([])

    expectBilling((await ask(...model)).stdout, 1e-3)
    const tokens = hub.log.map(({ host, authorization }) => [host, authorization].join(' '))
    expect(new Set(tokens)).toEqual(new Set(['hub Bearer secret', 'store ']))
    hub.log.length = 0
    expectBilling((await ask(...model)).stdout, 1e-3)
    expectBilling((await ask(...model, '--offline')).stdout, 1e-3)
    expect(hub.log).toEqual([])
    expectBilling((await ask(...model, '--no-cache')).stdout, 1e-3)
    expect(hub.log.length).toBeGreaterThan(3)

    expect((await pronounce('cache', 'path')).stdout).toBe(`${PRONOUNCE_CACHE}/models\n`)
    const name = `hf:me/it@${hub.commit}`
    expect((await pronounce('cache', 'ls')).stdout).toMatch(new RegExp(`^ *[\\d.]+ MB  ${name}\n$`))
    expect((await pronounce('cache', 'rm', 'hf:me/other')).code).toBe(1)
    expect((await pronounce('cache', 'rm')).code).toBe(2)
    expect((await pronounce('cache', 'rm', 'hf:me/it')).stdout).toMatch(/MB {2}hf:me\/it removed\n$/)
    expect((await pronounce('cache', 'ls')).stdout).toBe('')
  })
})
