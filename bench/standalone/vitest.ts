import { format, inspect } from 'node:util'
import { expect } from './expect.ts'

export { expect }

// What the tests of this project use of vitest, for machines that have Node and no npm. The build puts this file in
// vitest's place; what it does not know is an error at build time or a test that fails.

type Body = () => unknown
interface Test {
  readonly name: string
  readonly body: Body
  readonly timeoutMs: number
}
interface Suite {
  readonly name: string
  readonly items: (Test | Suite)[]
  readonly before: Body[]
  readonly after: Body[]
}

const TIMEOUT_MS = 120_000 // as in vite.config.ts
const suite = (name: string): Suite => ({ name, items: [], before: [], after: [] })
const files: Suite[] = []
let current = suite('')

/** Called first in every test file, by the build. */
export function file(name: string): void {
  current = suite(name)
  files.push(current)
}

function describeOne(name: string, body: Body): void {
  const outer = current
  current = suite(name)
  outer.items.push(current)
  body()
  current = outer
}

function testOne(name: string, body: Body, timeoutMs = TIMEOUT_MS): void {
  current.items.push({ name, body, timeoutMs })
}

type Each = (name: string, body: (...args: never[]) => unknown, timeoutMs?: number) => void
const each =
  (declare: (name: string, body: Body, timeoutMs?: number) => void) =>
  (rows: readonly unknown[]): Each =>
  (name, body, timeoutMs) => {
    for (const row of rows) {
      const args = Array.isArray(row) ? row : [row]
      declare(title(name, args), () => body(...(args as never[])), timeoutMs)
    }
  }

/** '%s' takes the arguments in order, '$key' a property of the first. */
function title(name: string, args: readonly unknown[]): string {
  const [first] = args
  const named = name.replace(/\$(\w+)/g, (whole, key) =>
    typeof first === 'object' && first !== null && key in first
      ? String((first as Record<string, unknown>)[key])
      : whole,
  )
  return format(named, ...args.slice(0, named.match(/%[sdifjoO]/g)?.length ?? 0))
}

export const describe = Object.assign(describeOne, { each: each(describeOne) })
export const test = Object.assign(testOne, { each: each(testOne) })
export const beforeAll = (body: Body): void => void current.before.push(body)
export const afterAll = (body: Body): void => void current.after.push(body)

export interface Wanted {
  /** Parts of file names; none: all files. */
  readonly files: readonly string[]
  /** What the path of a test has to contain, as 'webgpu'. */
  readonly name: string
}

/** Runs the files in order and says how each went. Returns the number of failures; 1 where nothing ran. */
export async function runAll(wanted: Wanted, say: (line: string) => void): Promise<number> {
  const counts = { passed: 0, failed: 0 }
  const isWanted = (name: string) => wanted.files.length === 0 || wanted.files.some((part) => name.includes(part))
  const chosen = files
    .filter((f) => isWanted(f.name))
    .map((f) => only(f, wanted.name, f.name))
    .filter((f) => f.items.length > 0)
  for (const f of chosen) {
    const before = { ...counts }
    const start = performance.now()
    await runSuite(f, f.name, counts, say)
    const ms = Math.round(performance.now() - start)
    const [passed, failed] = [counts.passed - before.passed, counts.failed - before.failed]
    say(`${failed ? 'FAIL' : 'ok  '} ${f.name}: ${passed} passed, ${failed} failed, ${ms} ms`)
  }
  say(`${chosen.length} files: ${counts.passed} passed, ${counts.failed} failed`)
  return counts.passed + counts.failed > 0 ? counts.failed : 1
}

/** The suite with the tests whose path contains `part`, and with suites that have any. */
function only(s: Suite, part: string, path: string): Suite {
  const items = s.items.flatMap((item): (Test | Suite)[] => {
    const at = `${path} > ${item.name}`
    if (!('items' in item)) return at.includes(part) ? [item] : []
    const kept = only(item, part, at)
    return kept.items.length ? [kept] : []
  })
  return { ...s, items }
}

async function runSuite(
  s: Suite,
  path: string,
  counts: { passed: number; failed: number },
  say: (line: string) => void,
): Promise<void> {
  const attempt = async (name: string, body: Body, timeoutMs: number): Promise<boolean> => {
    try {
      await within(body, timeoutMs)
      return true
    } catch (error) {
      counts.failed++
      say(`FAIL ${path} > ${name}\n${error instanceof Error ? error.stack : inspect(error)}`)
      return false
    }
  }
  for (const body of s.before) if (!(await attempt('beforeAll', body, TIMEOUT_MS))) return
  for (const item of s.items) {
    if ('items' in item) await runSuite(item, `${path} > ${item.name}`, counts, say)
    else if (await attempt(item.name, item.body, item.timeoutMs)) counts.passed++
  }
  for (const body of s.after) await attempt('afterAll', body, TIMEOUT_MS)
}

async function within(body: Body, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took longer than ${ms} ms`)), ms)
  })
  try {
    await Promise.race([body(), late])
  } finally {
    clearTimeout(timer)
  }
}
