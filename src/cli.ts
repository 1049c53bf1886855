#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError, program } from 'commander'
import { addCache } from './cli/cache.ts'
import { addCalibrate } from './cli/calibrate.ts'
import { addClassify } from './cli/classify.ts'
import { addDecide } from './cli/decide.ts'
import { addEvaluate } from './cli/evaluate.ts'
import { addParity } from './cli/parity.ts'
import { addSay } from './cli/say.ts'
import { addServe } from './cli/serve.ts'
import { addTune } from './cli/tune.ts'
import { addVerify } from './cli/verify.ts'

const CLEAR = process.stderr.isTTY ? '\r\x1b[K' : '' // the line of progress
const note = (line: string) => process.stderr.write(`${CLEAR}${line}\n`)

function createProgram(signal: AbortSignal): Command {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const host = { root, version, signal, clear: CLEAR, note }
  program
    .name('pronounce')
    .description('Typed answers with calibrated probabilities, and speech, on any GPU that WebGPU reaches.')
    .version(version)
    .exitOverride()
  const decider = [addDecide, addServe, addClassify, addEvaluate, addCalibrate, addVerify]
  for (const add of [...decider, addSay, addParity, addTune, addCache]) add(program, host)
  return program
}

/** Runs a command line; the exit code: 0 answered, 1 failed, 2 wrong usage, 130 interrupted. */
async function main(argv: readonly string[]): Promise<number> {
  const interrupt = new AbortController()
  process.once('SIGINT', () => interrupt.abort()) // a second one ends the process at once
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit() // the reader has seen enough, as in `| head`
    note(`error: stdout: ${error.message}`)
    process.exit(1)
  })
  process.stderr.on('error', () => {}) // nobody listens; the answer still goes out
  try {
    await createProgram(interrupt.signal).parseAsync(argv)
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // it has said why
    if (interrupt.signal.aborted) return 130
    const { message, stack } = error as Error
    note(`error: ${process.env.DEBUG ? stack : message}`)
    return 1
  }
}

process.exitCode = await main(process.argv)
