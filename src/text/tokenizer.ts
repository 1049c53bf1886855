import { Tokenizer as HubTokenizer } from '@huggingface/tokenizers'
import { ShapeError, WeightsError } from '../errors.ts'

/** Text to token ids and back, as the checkpoint's tokenizer.json says. */
export interface Tokenizer {
  /**
   * Ids of a text, with no token added around it. The text of a special token (`<|im_start|>`) is that token, as in
   * Hugging Face's tokenizers. A lone surrogate, which has no UTF-8, is read as U+FFFD.
   */
  encode(text: string): number[]
  /** Text of ids, special tokens included; bytes that are no UTF-8 become U+FFFD. ShapeError for an id without token. */
  decode(ids: ArrayLike<number>): string
  /** One more than the highest id. */
  readonly size: number
  /** Id of a token as the vocabulary spells it. */
  id(token: string): number | undefined
}

interface AddedToken {
  readonly id: number
  readonly content: string
  readonly special?: boolean
}

/**
 * Makes a byte-pair tokenizer of the contents of tokenizer.json. Tokens that only tokenizer_config.json lists are added, as
 * transformers does. WeightsError 'format' where the file is malformed, 'unsupported' where it asks for what would be
 * tokenized differently here.
 *
 * Checked against Hugging Face's tokenizers 0.23 in Python. What is left differs by Unicode version only: its Oniguruma knows
 * the letters, marks and numbers of Unicode 16, its NFC sorts the combining marks of Unicode 9; here the host's version
 * decides.
 */
export function createTokenizer(tokenizerJson: unknown, tokenizerConfig: unknown = {}): Tokenizer {
  const json = object(tokenizerJson, 'tokenizer.json')
  const config = object(tokenizerConfig, 'tokenizer_config.json')
  const model = object(json.model, 'tokenizer.json, model')
  if (model.type !== 'BPE') throw unsupported(`the model is ${model.type}`, 'BPE')
  if (!Array.isArray(model.merges)) throw malformed('model.merges is no list')
  const vocab = checkedVocab(object(model.vocab, 'tokenizer.json, model.vocab'))
  const added = addedTokens(json, config, vocab)
  for (const step of preTokenizers(json.pre_tokenizer)) checkPreTokenizer(step)

  const definition = {
    ...json,
    normalizer: json.normalizer ?? null,
    pre_tokenizer: mapRegex(json.pre_tokenizer),
    post_processor: null, // it would add special tokens
    decoder: json.decoder ?? null,
    added_tokens: added,
  }
  let hub: HubTokenizer
  try {
    hub = new HubTokenizer(definition, {})
  } catch (cause) {
    throw malformed((cause as Error).message, { cause })
  }
  const size = [...vocab.values(), ...added.map((t) => t.id)].reduce((max, id) => Math.max(max, id + 1), 0)

  function decode(ids: ArrayLike<number>): string {
    const list = Array.from(ids)
    const bad = list.find((id) => hub.id_to_token(id) === undefined)
    if (bad !== undefined) throw new ShapeError(`decode: id ${bad} is no token, expected 0 to ${size - 1}`)
    return list.length === 0 ? '' : hub.decode(list, { clean_up_tokenization_spaces: false })
  }

  return {
    encode: (text) => hub.encode(text.toWellFormed(), { add_special_tokens: false }).ids,
    decode,
    size,
    id: (token) => hub.token_to_id(token),
  }
}

function checkedVocab(vocab: Record<string, unknown>): Map<string, number> {
  const entries = Object.entries(vocab)
  const bad = entries.find(([, id]) => !isId(id))
  if (bad) throw malformed(`the token ${JSON.stringify(bad[0])} has id ${bad[1]}`)
  if (new Set(Object.values(vocab)).size < entries.length) throw malformed('model.vocab has an id twice')
  return new Map(entries as [string, number][])
}

/** The added tokens of tokenizer.json, then those that only tokenizer_config.json has. */
function addedTokens(json: Record<string, unknown>, config: Record<string, unknown>, vocab: Map<string, number>) {
  const own = json.added_tokens ?? []
  if (!Array.isArray(own)) throw malformed('added_tokens is no list')
  const configured = Object.entries(object(config.added_tokens_decoder ?? {}, 'added_tokens_decoder'))
  const extra = configured.map(([id, token]) => ({ ...object(token, `added_tokens_decoder, ${id}`), id: Number(id) }))
  const ids = new Map<string, number>()
  const contents = new Map([...vocab].map(([content, id]) => [id, content]))
  const tokens: AddedToken[] = []
  for (const token of [...own, ...extra]) {
    const { id, content, single_word } = object(token, 'added token')
    if (!isId(id) || typeof content !== 'string' || content === '')
      throw malformed(`an added token is ${JSON.stringify(token)}`)
    if (single_word === true) throw unsupported(`${content} matches single words only`, 'single_word false')
    if (ids.get(content) === id) continue
    const taken = ids.get(content) ?? vocab.get(content) ?? id
    const holder = contents.get(id) ?? content
    if (taken !== id || holder !== content) throw malformed(`${content} has id ${id}, but ${holder} has ${taken}`)
    ids.set(content, id)
    contents.set(id, content)
    tokens.push(token as AddedToken)
  }
  return tokens
}

/** The steps of a pre-tokenizer, one after another. */
function preTokenizers(step: unknown): Record<string, unknown>[] {
  if (step === null || step === undefined) return []
  const { type, pretokenizers } = object(step, 'pre_tokenizer')
  if (type !== 'Sequence') return [step as Record<string, unknown>]
  if (!Array.isArray(pretokenizers)) throw malformed('a Sequence has no pretokenizers')
  return pretokenizers.flatMap(preTokenizers)
}

/** The library takes any other split for an isolated one. */
function checkPreTokenizer(step: Record<string, unknown>): void {
  if (step.type !== 'Split') return
  const pattern = object(step.pattern, 'pattern of a Split')
  if (typeof (pattern.Regex ?? pattern.String) !== 'string') throw malformed('a Split has neither a Regex nor a String')
  if (step.behavior !== 'Isolated' || step.invert === true) {
    throw unsupported(`a Split is ${step.behavior}${step.invert ? ' and inverted' : ''}`, 'Isolated')
  }
}

/** The same steps with every regex made to mean in JavaScript what it means in Oniguruma. */
function mapRegex(step: unknown): unknown {
  return step === undefined
    ? null
    : JSON.parse(JSON.stringify(step), (key, value) => (key === 'Regex' ? foldLongS(value) : value))
}

/**
 * Ignoring case, Oniguruma lets s stand for U+017F and k for U+212A as well; the library folds only ASCII. It does turn
 * \s into White_Space (JavaScript's own has U+FEFF and lacks U+0085).
 */
const foldLongS = (regex: string): string =>
  regex.replace(/(?<!\\)\(\?i:([^()[\]\\]*)\)/g, (_, body: string) => {
    return `(?i:${body.replace(/s/gi, '[s\u017f]').replace(/k/gi, '[k\u212a]')})`
  })

const isId = (x: unknown): x is number => Number.isSafeInteger(x) && (x as number) >= 0

function object(x: unknown, where: string): Record<string, unknown> {
  if (typeof x === 'object' && x !== null && !Array.isArray(x)) return x as Record<string, unknown>
  throw malformed(`${where} is ${Array.isArray(x) ? 'a list' : x === null ? 'null' : typeof x}, expected an object`)
}

const malformed = (what: string, options?: ErrorOptions): WeightsError =>
  new WeightsError('format', `tokenizer: ${what}; load the file again`, options)
const unsupported = (what: string, expected: string): WeightsError =>
  new WeightsError('unsupported', `tokenizer: ${what}, expected ${expected}; use another checkpoint`)
