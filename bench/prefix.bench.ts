import { sharedPrefixScorer } from '../src/apps/decider/shared_prefix.ts'
import { hash } from '../src/kernels/fill_random.ts'
import type { Bench } from './bench.ts'
import { identify, loadSession } from './checkpoint.ts'
import { type Case, interleave, origin } from './measure.ts'

const TEXT = 2000
const QUESTION = 32
const HEAD_ROWS = 64

/** One question against ten about the same text of 2,000 tokens: what does running the text once leave of ten? */
export const prefix: Bench = async (device, { model, revision, warmups, runs }, note) => {
  const session = await loadSession(model, device, () => Array.from({ length: HEAD_ROWS }, (_, i) => i))
  const { vocabulary } = session.config
  const tokens = (n: number, seed: number) => Array.from({ length: n }, (_, i) => hash(hash(seed) + i) % vocabulary)
  let serial = 0
  const ask = async (questions: number) => {
    const text = tokens(TEXT, ++serial) // new each time, so that no kept prefix answers
    const rows = Array.from({ length: questions }, (_, i) => ({
      ids: [...text, ...tokens(QUESTION, 1e6 * (i + 1) + serial)],
      slots: [TEXT + QUESTION - 1],
    }))
    await scorer.score(rows)
  }
  const scorer = sharedPrefixScorer(session)
  const cases: Case[] = [1, 10].map((n) => ({ name: `${TEXT} tokens, questions: ${n}`, run: () => ask(n) }))
  const timings = await interleave(cases, { warmups, runs })
  const [one, ten] = timings
  const ratio = ten!.medianMs / one!.medianMs
  note(`ten questions take ${ratio.toFixed(3)} times one`)
  session.dispose()
  const about = { warmups, runs, textTokens: TEXT, questionTokens: QUESTION }
  return {
    bench: 'prefix',
    ...origin(device),
    checkpoint: await identify(model, revision),
    ...about,
    ratio,
    rows: timings,
  }
}
