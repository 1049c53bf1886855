import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Piece, type PieceOptions, piecesOf } from '../../../src/apps/tts/pieces.ts'
import { phonemeIds } from '../../../src/text/symbols.ts'
import { codesOf, FRAMES_PER_SECOND, fakeVoice, RIGHT, speech } from './fake_voice.ts'

/** A second for ten symbols, which are read as they stand. */
const options: PieceOptions = {
  read: async (text) => text,
  secondsOf: (phonemes) => phonemes.length / 10,
  trainedSeconds: 10, // joined up to 40 symbols, split from 70 on
}

async function pieces(text: string, more: Partial<PieceOptions> = {}): Promise<Piece[]> {
  const found: Piece[] = []
  for await (const piece of piecesOf(text, { ...options, ...more })) found.push(piece)
  return found
}
const texts = async (text: string, more?: Partial<PieceOptions>) => (await pieces(text, more)).map(({ text }) => text)

test.each<[string, string, string[]]>([
  ['one sentence', 'Hello there.', ['Hello there.']],
  ['short ones together', 'Hello there. How are you? Fine! I see.', ['Hello there. How are you? Fine! I see.']],
  [
    'as many as fit',
    'A short one of twenty. Another of about twenty.',
    ['A short one of twenty.', 'Another of about twenty.'],
  ],
  ['paragraphs apart', 'Title\n\nOne. Two.\n\nThree.', ['Title', 'One. Two.', 'Three.']],
  ['items of a list apart', 'Buy\n- milk\n- eggs', ['Buy', '- milk', '- eggs']],
  ['wrapped lines as one', 'a first\nline. And\n  more.', ['a first line. And more.']],
  ['without what has no sound', 'One.\n\n***\n\nTwo.', ['One.', 'Two.']],
  ['IPA whole', 'Say /a. b! c/ now.', ['Say /a. b! c/ now.']],
])('%s', async (_, text, want) => {
  expect(await texts(text)).toEqual(want)
})

test('a long sentence is split at its clauses, in parts of about one size', async () => {
  const long =
    'When the morning came they all went down to the river, which was high, and there they waited for the boat.'
  const parts = await pieces(long)
  expect(parts.map(({ text }) => text)).toEqual([
    'When the morning came they all went down to the river,',
    'which was high, and there they waited for the boat.',
  ])
  expect(parts.map(({ pause }) => pause)).toEqual([0.12, 0.25])
  expect(parts.map(({ rest }) => rest)).toEqual([52, 0])
})

test('pauses are longer behind a paragraph', async () => {
  expect((await pieces('One two three four five six. \n\nOne two three. Four.')).map(({ pause }) => pause)).toEqual([
    0.6, 0.25,
  ])
})

test('every word is said once, in order, and no piece is longer than it may be', async () => {
  const word = fc.stringMatching(/^[a-z]{1,12}[,.]?$/)
  await fc.assert(
    fc.asyncProperty(fc.array(word, { minLength: 1, maxLength: 60 }), async (words) => {
      const found = await pieces(words.join(' '))
      expect(found.map(({ text }) => text).join(' ')).toBe(words.join(' '))
      for (const { seconds } of found) expect(seconds).toBeLessThanOrEqual(7)
    }),
  )
})

test('phonemes are made as pieces are asked for', async () => {
  const read: string[] = []
  const found = piecesOf('A first one of some length.\n\nA second one.\n\nA third one.', {
    ...options,
    read: async (text) => {
      read.push(text)
      return text
    },
  })
  await found.next()
  expect(read).toEqual(['A first one of some length.', 'A second one.'])
})

test('the first piece holds the words of what it continues, and more', async () => {
  const text = 'This was said before.\n\nThis is new and of some length.'
  expect(await texts(text, { before: 1.3 })).toHaveLength(2)
  expect(await texts(text, { before: 1.5 })).toHaveLength(1)
})

test('a piece continues the one before: its phonemes and codes once more, not its sound', async () => {
  const [a, b] = ['abcdefg abcdefg abcdefg abcd!', 'bcdefgh bcdefgh bcdefgh bcde.']
  const { tts, asked } = fakeVoice((call) => ({ frames: speech(130, 1 + 200 * call) }))
  const { samples, codes, pieces } = await tts.say(`${a}\n\n${b}`)
  expect(pieces.map(({ text, phonemes, ended }) => [text, phonemes, ended])).toEqual([
    [a, a, 'eos'],
    [b, b, 'eos'],
  ])
  const pause = Math.round(0.6 * FRAMES_PER_SECOND)
  expect(asked.map(({ conditional }) => [...conditional.rows])).toEqual([
    [...phonemeIds(a)],
    [...phonemeIds(`${a} ${b}`)],
  ])
  expect(asked[0]!.audioPrefix!.frames).toBe(0)
  expect(asked[1]!.audioPrefix).toEqual(codesOf([...speech(130), ...Array(pause).fill(0)]))
  expect(codes).toEqual(
    codesOf([...speech(130), ...Array(pause).fill(0), ...speech(130, 201), ...Array(RIGHT).fill(0)]),
  )
  expect(samples.length).toBe(codes.frames * 512)
})

test('a piece that does not fit behind the one before, or whose words are not sure, begins in quiet', async () => {
  const sentence = 'abcdefg abcdefg abcdefg abcd'
  const text = `${sentence}!\n\n${sentence}.\n\n${sentence}?`
  const short = fakeVoice(() => ({ frames: speech(130) }), { trainedSeconds: 3 })
  await short.tts.say(text)
  const quiet = codesOf(Array(10).fill(0))
  expect(short.asked.map(({ audioPrefix }) => audioPrefix)).toEqual([codesOf([]), quiet, quiet])
  const unsure = fakeVoice((call) => ({ frames: speech(call === 1 ? 5000 : 130) }))
  await unsure.tts.say(text)
  expect(unsure.asked.map(({ audioPrefix }) => audioPrefix!.frames)).toEqual([0, 130 + 52, 10])
})

test('the voice, the conditions and the seed are those of all pieces', async () => {
  const { tts, asked } = fakeVoice(() => ({ frames: speech(130) }))
  const sampling = { seed: 5, topK: 3 }
  await tts.say('abcdefg abcdefg!\n\nabcdefg abcdefg.', { cfgScale: 3, sampling })
  expect(asked.map(({ cfgScale, sampling }) => [cfgScale, sampling!.seed, sampling!.topK])).toEqual([
    [3, 5, 3],
    [3, 5, 3],
  ])
})
