import { describe, expect, test } from 'vitest'
import { CODEBOOKS, MASK } from '../../../src/models/zonos/config.ts'
import {
  delayedGrid,
  framesAfter,
  gridWidth,
  lastColumn,
  UNKNOWN_CELL,
  undelayed,
} from '../../../src/models/zonos/delay.ts'
import { fixtureJson } from '../../fixtures.ts'
import { listed } from './fixture.ts'

type Table = Readonly<Record<'codes' | 'delayed' | 'undelayed', number[][]>>
const { delay } = fixtureJson<{ delay: Record<string, Table> }>('zonos-transformer-tiny/inputs.json')

test.each(Object.entries(delay))('%s', (name, { codes, delayed, undelayed: back }) => {
  const [before, wanted] = name.match(/\d+/g)!.map(Number) as [number, number]
  const given = listed(codes.map((book) => book.slice(0, before)))
  const grid = delayedGrid(given, wanted)
  const width = gridWidth(before, wanted)
  expect(grid.length).toBe(width * CODEBOOKS)
  const ours = delayed.map((row, k) => row.map((_, t) => grid[t * CODEBOOKS + k]))
  expect(ours).toEqual(delayed.map((row) => row.map((code) => (code < 0 ? UNKNOWN_CELL : code))))
  const whole = undelayed(grid, 0, before + wanted)
  expect(whole).toEqual(listed(back.map((book) => book.map((code) => (code < 0 ? UNKNOWN_CELL : code)))))
  expect(undelayed(grid, 0, before)).toEqual(given)
})

describe('row k is k + 1 masks, the given codes, what is not known, masks', () => {
  test('3 given, 6 wanted', () => {
    const given = { frames: 3, data: Uint16Array.from({ length: 27 }, (_, i) => i + 1) }
    const grid = delayedGrid(given, 6)
    for (let k = 0; k < CODEBOOKS; k++) {
      const row = Array.from({ length: 18 }, (_, t) => grid[t * CODEBOOKS + k])
      const codes = [0, 1, 2].map((i) => given.data[i * CODEBOOKS + k])
      const unknown = new Array(6).fill(UNKNOWN_CELL)
      expect(row).toEqual([...new Array(k + 1).fill(MASK), ...codes, ...unknown, ...new Array(8 - k).fill(MASK)])
    }
  })
})

test('EOS in column 22 walks to column 30 and leaves 21 frames', () => {
  expect(lastColumn(200, 22)).toBe(30)
  expect(framesAfter(30)).toBe(21)
  expect(lastColumn(200, 0)).toBe(200)
  expect(lastColumn(25, 22), 'no further than the grid').toBe(25)
})
