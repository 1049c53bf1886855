import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, describe, expect, test } from 'vitest'
import { openLog, readLines } from '../../src/cli/jsonl.ts'

const folder = mkdtempSync(join(tmpdir(), 'pronounce-jsonl-'))
const file = join(folder, 'file.jsonl')
afterAll(() => rmSync(folder, { recursive: true }))

async function linesOf(content: string | Uint8Array) {
  writeFileSync(file, content)
  const lines: [number, string][] = []
  for await (const { number, text } of readLines('--data', file)) lines.push([number, text])
  return lines
}

describe('lines', () => {
  test('end with a line feed alone, and keep their numbers where some are empty', async () => {
    expect(await linesOf('a\r\n\n b\u2028c\u0085 \n\r\nd')).toEqual([
      [1, 'a'],
      [3, 'b\u2028c\u0085'],
      [5, 'd'],
    ])
    expect(await linesOf('')).toEqual([])
    expect(await linesOf('\uFEFFa\n')).toEqual([[1, 'a']])
  })
  test('longer than a chunk, with characters across its edge', async () => {
    const long = 'ä😀'.repeat(100_000)
    expect(await linesOf(`x${long}\n${long}`)).toEqual([
      [1, `x${long}`],
      [2, long],
    ])
  })
  test('an abort is heard', async () => {
    writeFileSync(file, 'a\n'.repeat(100_000))
    const abort = new AbortController()
    const read = async () => {
      for await (const { number } of readLines('--data', file, abort.signal)) if (number === 10) abort.abort()
    }
    await expect(read()).rejects.toThrow('aborted')
  })
  test('a file that is not there, and a folder', async () => {
    const read = (path: string) => readLines('--data', path).next()
    await expect(read(join(folder, 'none'))).rejects.toThrow(/^--data: .*none cannot be read .*, expected JSON lines$/)
    await expect(read(folder)).rejects.toThrow('cannot be read')
  })
  test('of a file of 64 MB take no more memory than those of a small one', { timeout: 300_000 }, async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const line = `${'x'.repeat(255)}\n`
    writeFileSync(file, line.repeat(2 ** 18))
    const used: number[] = []
    for await (const { number } of readLines('--data', file)) {
      if (number % 2 ** 14 !== 0) continue
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      used.push(heapUsed + arrayBuffers)
    }
    expect(used).toHaveLength(16)
    expect(used[15]! - used[1]!).toBeLessThan(4 * 2 ** 20)
  })
})

describe('a log', () => {
  const text = (): string => readFileSync(file, 'utf8')
  test('that is new', async () => {
    rmSync(file, { force: true })
    const log = await openLog('--out', file, '')
    expect(log).toMatchObject({ lines: 0, last: undefined })
    await log.append(['a', 'b'])
    await log.append(['c'])
    await log.close()
    expect(text()).toBe('a\nb\nc\n')
  })
  test.each([
    ['a\nbü\n', 2, 'bü', 'a\nbü\n'],
    ['a\nbü\n{"cut', 2, 'bü', 'a\nbü\n'],
    ['{"cut', 0, undefined, ''],
    [`${'long'.repeat(50_000)}\n${'long'.repeat(50_000)}`, 1, 'long'.repeat(50_000), `${'long'.repeat(50_000)}\n`],
  ])('that goes on: %.12j', async (before, lines, last, kept) => {
    writeFileSync(file, before)
    const log = await openLog('--out', file, '')
    expect([log.lines, log.last]).toEqual([lines, last])
    await log.append(['next'])
    await log.close()
    expect(text()).toBe(`${kept}next\n`)
  })
  test.each(['{"state":"a"}\n{"state":"b"}', '{"state":"a"}\n', 'no line', '{"row":1}\n{"state"'])(
    'that is something else stays as it is: %j',
    async (before) => {
      writeFileSync(file, before)
      await expect(openLog('--out', file, '{"row":')).rejects.toThrow(/^--out: .* holds something else/)
      expect(text()).toBe(before)
    },
  )
  test('whose first line was cut goes on', async () => {
    writeFileSync(file, '{"row":1}\n{"ro')
    const log = await openLog('--out', file, '{"row":')
    await log.close()
    expect(text()).toBe('{"row":1}\n')
  })
  test('that cannot be', async () => {
    await expect(openLog('--out', folder, '')).rejects.toThrow(/^--out: .* cannot be written /)
  })
})
