import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

export const root = join(import.meta.dirname, '../..')

/** Does something once in a run of the tests: the file that comes first does, others wait. The folder that it filled. */
export async function oncePerRun(name: string, fill: (folder: string) => unknown): Promise<string> {
  const folder = join(process.env.PRONOUNCE_RUN!, name)
  const done = `${folder}.done`
  while (!existsSync(done)) {
    try {
      mkdirSync(folder)
    } catch {
      await setTimeout(100)
      continue
    }
    try {
      await fill(folder)
      writeFileSync(done, '')
    } catch (error) {
      rmSync(folder, { recursive: true }) // the next one tries again, and fails by itself
      throw error
    }
  }
  return folder
}

/** Builds dist. */
export const build = (): Promise<string> =>
  oncePerRun('dist', () => execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'pipe' }))

export interface Finished {
  readonly code: number | null // null: a signal ended it
  readonly stdout: string
  readonly stderr: string
  /** From the last byte of stdout to the exit. */
  readonly lingeredMs: number
}

export interface Started {
  readonly child: ReturnType<typeof spawn>
  readonly finished: Promise<Finished>
}

/** Starts a program in the root of the repository; `env` is what its environment has besides. */
export function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const options = { cwd: root, stdio: 'pipe', timeout: 100_000 } as const // ended by then, or killed
  const child = spawn(command, args, { ...options, env: { ...process.env, ...env } })
  const finished = async (): Promise<Finished> => {
    let stdout = ''
    let stderr = ''
    let last = performance.now()
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      last = performance.now()
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    let exited = 0
    child.once('exit', () => {
      exited = performance.now()
    })
    const [code] = await once(child, 'close')
    return { code, stdout, stderr, lingeredMs: exited - last }
  }
  return { child, finished: finished() }
}

/** Runs a program to its end; `input` is its stdin. */
export function run(command: string, args: readonly string[], input = ''): Promise<Finished> {
  const { child, finished } = start(command, args)
  child.stdin!.on('error', () => {}) // it may have ended without reading
  child.stdin!.end(input)
  return finished
}

export const runNode = (args: readonly string[], input?: string): Promise<Finished> =>
  run(process.execPath, args, input)

/** Deno from npm: a second runtime, with a second WebGPU. */
export const runDeno = (script: string, ...args: string[]): Promise<Finished> =>
  run(join(root, 'node_modules/.bin/deno'), [
    'run',
    '--quiet',
    '--allow-read',
    '--allow-net=127.0.0.1',
    join('tests/hosts', script),
    ...args,
  ])
