import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import pronounce from '../package.json' with { type: 'json' }
import webgpu from 'webgpu/package.json' with { type: 'json' }
import type { Device } from '../src/device/device.ts'

export { type Case, interleave, median, type Rounds, summary, type Timing } from '../demo/engine/timing.ts'

export type Row = Readonly<Record<string, unknown>>

export interface Result extends Row {
  readonly bench: string
  readonly rows: readonly Row[]
}

declare const __COMMIT__: string // set by the build

/** What every result says about where it comes from. */
export function origin(device: Device): Row {
  const { kind, name, software, dtype, precision, tuned, features, disabled } = device.report
  return {
    device: kind,
    adapter: name,
    software,
    dtype,
    precision,
    tuned: device.target.tuning ? tuned : undefined,
    features: [...device.target.features].sort(),
    featuresOfAdapter: features,
    disabled: [...device.target.disabled.keys(), ...disabled.map(({ variant }) => variant)].filter(unique),
    commit: __COMMIT__,
    versions: { pronounce: pronounce.version, node: process.version, webgpu: webgpu.version },
    platform: `${process.platform} ${process.arch}${driver()}`,
    date: new Date().toISOString(),
    arguments: argumentsOf(process.argv.slice(2)),
  }
}

const unique = <A>(x: A, i: number, all: readonly A[]): boolean => all.indexOf(x) === i

/** The NVIDIA driver, which the adapter does not always name. */
function driver(): string {
  try {
    const args = ['--query-gpu=name,driver_version', '--format=csv,noheader']
    return `, ${execFileSync('nvidia-smi', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()}`
  } catch {
    return ''
  }
}

/** Writes a result where `--out` says; the only way a file comes into bench/results. */
export function save(out: string, result: Result): void {
  mkdirSync(dirname(out), { recursive: true })
  writeFileSync(out, `${JSON.stringify(result, rounded, 1)}\n`)
}

/** Six significant digits: more are noise. Counts stay whole. */
const rounded = (_key: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value

/** Rows as an aligned table for people; nested values are left to the JSON. */
export function table(rows: readonly Row[]): string {
  const flat = (v: unknown): v is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof v)
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row).filter((key) => flat(row[key]))))]
  const cells = [columns, ...rows.map((row) => columns.map((c) => (flat(row[c]) ? String(rounded(c, row[c])) : '')))]
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)))
  return cells
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** How the bench was asked; where the result goes says nothing about it. */
const argumentsOf = (given: readonly string[]): string[] =>
  given.filter((word, i) => word !== '--out' && given[i - 1] !== '--out' && !word.startsWith('--out='))
