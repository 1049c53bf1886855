import { sentences } from '../../text/sentences.ts'
import { hasSound } from '../../text/symbols.ts'

/** What is said in one go. */
export interface Piece {
  readonly text: string
  readonly phonemes: string
  /** Seconds of speech, by its phonemes. */
  readonly seconds: number
  /** Seconds of quiet that belong behind it. */
  readonly pause: number
  /** Characters of the text that come behind it. */
  readonly rest: number
}

export interface PieceOptions {
  /** To phonemes. */
  readonly read: (text: string) => Promise<string>
  readonly secondsOf: (phonemes: string) => number
  /** Of the longest speech that the model was trained on. */
  readonly trainedSeconds: number
  /** Seconds of earlier speech with whose words the text begins: the first piece holds them and more. */
  readonly before?: number | undefined
}

/** Short sentences are joined up to this part of the trained length: a piece and the one that it continues fit it. */
const JOINED = 0.4
/** A sentence that is longer than this part is split. The published models garble speech from about 20 s of 30 on. */
const SPLIT = 0.7
/** Phonemes at the rate that is asked for overestimate the seconds; what is said in a given time has more of them. */
export const OVERESTIMATE = 1.5

const pauses = { clause: 0.12, sentence: 0.25, paragraph: 0.6 } as const

/**
 * A text in the pieces that it is said in: sentences, short ones of a paragraph together, long ones split at clauses, so
 * that each is as long as what the model was trained on or shorter. Phonemes are made as pieces are asked for, so that
 * a text is not read to its end before its beginning is said. What has no sound, as "***", is left out.
 */
export async function* piecesOf(text: string, options: PieceOptions): AsyncGenerator<Piece> {
  const { trainedSeconds, before = 0 } = options
  let open: Piece | undefined
  let least = OVERESTIMATE * before // of the first piece
  for (const sentence of sentencesOf(text))
    for await (const part of partsOf(sentence, SPLIT * trainedSeconds + least, options)) {
      const all = open && joined(open, part)
      if (open && all && (open.seconds <= least || (follows(open) && all.seconds <= JOINED * trainedSeconds))) {
        open = all
        continue
      }
      if (open) {
        yield open
        least = 0
      }
      open = part
    }
  if (open) yield open
}

type Unread = Pick<Piece, 'text' | 'pause' | 'rest'>

/** The sentences with what is behind them: another one of the paragraph, or an empty line. */
function sentencesOf(text: string): Unread[] {
  let end = 0
  return sentences(text, { most: Number.POSITIVE_INFINITY }).map((sentence) => {
    end = text.indexOf(sentence, end) + sentence.length
    const paragraph = /^\s*\n\s*\n/.test(text.slice(end))
    const line = sentence.replace(/\s*\n\s*/g, ' ') // the model knows no line breaks
    return { text: line, pause: paragraph ? pauses.paragraph : pauses.sentence, rest: text.length - end }
  })
}

/** A sentence, or its clauses where it would take more than `most` seconds; without those that have no sound. */
async function* partsOf(sentence: Unread, most: number, options: PieceOptions): AsyncGenerator<Piece> {
  const phonemes = await options.read(sentence.text)
  if (!hasSound(phonemes)) return
  const seconds = options.secondsOf(phonemes)
  const { text, pause, rest } = sentence
  const count = Math.ceil(seconds / most)
  const parts = count > 1 ? sentences(text, { most: (1.1 * text.length) / count }) : [] // not all parts are equal
  if (parts.length <= 1) return yield { ...sentence, phonemes, seconds }
  let after = text.length
  for (const [i, part] of parts.entries()) {
    after -= part.length
    const last = i === parts.length - 1
    const clause = { text: part, pause: last ? pause : pauses.clause, rest: last ? rest : rest + after }
    yield* partsOf(clause, most, options)
  }
}

/** Whether what comes next may be said in one go with this: within a paragraph, and behind a mark. */
const follows = ({ text, pause }: Piece): boolean =>
  pause === pauses.sentence && /[.!?…‽؟۔।॥。！？｡]["'”’»›)\]」』）】]*$/u.test(text)

const joined = (a: Piece, b: Piece): Piece => ({
  ...b,
  text: `${a.text} ${b.text}`,
  phonemes: `${a.phonemes} ${b.phonemes}`,
  seconds: a.seconds + b.seconds,
})
