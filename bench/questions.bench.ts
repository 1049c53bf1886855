import { sharedPrefixScorer } from '../src/apps/decider/shared_prefix.ts'
import type { Row } from '../src/apps/decider/scorer.ts'
import { hash } from '../src/kernels/fill_random.ts'
import type { Bench } from './bench.ts'
import { identify, loadSession } from './checkpoint.ts'
import { type Case, interleave, origin } from './measure.ts'

const STATE = 11_000
const QUESTIONS = 7
const QUESTION = 40
const SCHEMA = 600 // tokens of a question with many described options
const STATES = 8
const SHORT_STATE = 64
const HEAD_ROWS = 64

/**
 * What keeping the beginnings of rows saves: seven questions about one long state against seven rows by themselves, and
 * a schema that was asked before against the same rows whole. Half of a pair does without the app's scorer.
 */
export const questions: Bench = async (device, { model, revision, warmups, runs, limit }, note) => {
  const longest = STATE + QUESTION
  const session = await loadSession(
    model,
    device,
    () => Array.from({ length: HEAD_ROWS }, (_, i) => i),
    (c) => ({ ...c, maxPositions: Math.max(c.maxPositions, longest) }), // a row costs the same whatever it answers
  )
  const { vocabulary } = session.config
  const tokens = (n: number, seed: number) => Array.from({ length: n }, (_, i) => hash(hash(seed) + i) % vocabulary)
  let seed = 0
  const row = (...parts: readonly number[][]): Row => ({ ids: parts.flat(), slots: [parts.flat().length - 1] })
  /** New each time, so that nothing kept answers. */
  const aboutOneState = (): Row[] => {
    const state = tokens(STATE, ++seed)
    return Array.from({ length: QUESTIONS }, () => row(state, tokens(QUESTION, ++seed)))
  }
  const schema = tokens(SCHEMA, ++seed)
  const behindSchema = (): Row[] =>
    Array.from({ length: STATES }, () => ({ ...row(schema, tokens(SHORT_STATE, ++seed)), prefix: SCHEMA }))

  const scorer = sharedPrefixScorer(session)
  await session.program() // compiled, as a loaded model is
  await scorer.score(behindSchema()) // asked before
  const pairs = [
    ...(longest > limit ? [] : [{ name: `${QUESTIONS} questions about ${STATE} tokens`, rows: aboutOneState }]),
    { name: `${STATES} states behind a schema of ${SCHEMA} tokens`, rows: behindSchema },
  ]
  const cases = pairs.flatMap(({ name, rows }): Case[] => [
    { name: `${name}, shared`, run: () => scorer.score(rows()) },
    { name: `${name}, whole rows`, run: () => session.logits(rows()) },
  ])
  const timings = await interleave(cases, { warmups, runs })
  const ratios = pairs.map(({ name }, i) => {
    const ratio = timings[2 * i + 1]!.medianMs / timings[2 * i]!.medianMs
    note(`${name}: ${ratio.toFixed(2)} times faster than whole rows`)
    return { name, ratio }
  })
  session.dispose()
  const about = { warmups, runs, stateTokens: STATE, questionTokens: QUESTION, schemaTokens: SCHEMA }
  return {
    bench: 'questions',
    ...origin(device),
    checkpoint: await identify(model, revision),
    ...about,
    ratios,
    rows: timings,
  }
}
