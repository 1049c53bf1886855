import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findPlayer, playerOutput } from '../../src/cli/player.ts'

const path = process.env.PATH
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pronounce-player-'))
  process.env.PATH = folder
})
afterEach(() => {
  process.env.PATH = path
  rmSync(folder, { recursive: true })
})

/** Plays seconds of quiet by a shell script that stands for the player. */
async function play(name: string, script: string, seconds: number): Promise<void> {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const out = await playerOutput(await findPlayer(), 44100)
  for (let i = 0; i < seconds; i++) await out.write(new Float32Array(44100))
  await out.end()
}

describe('a player that cannot play is quoted', () => {
  test.each([1, 20])('it ends at once, with an error, of %i s', (seconds) =>
    expect(play('aplay', 'echo audio open error: no card >&2; exit 1', seconds)).rejects.toThrow(
      '--play: aplay ended early (audio open error: no card); check the sound device',
    ),
  )

  test('it takes all and ends with 0, as ffplay does', () =>
    expect(
      play('ffplay', '/bin/cat >/dev/null; echo audio open failed >&2; echo "Failed to open file" >&2', 1),
    ).rejects.toThrow('--play: ffplay ended early (audio open failed)'))
})

test('what a player says beside its work is no failure', () =>
  expect(play('ffplay', '/bin/cat >/dev/null; echo underrun occurred >&2', 2)).resolves.toBe(undefined))

test('a player that leaves early is told of', () =>
  expect(play('paplay', 'exit 0', 20)).rejects.toThrow('--play: paplay ended before the speech did'))
