/** A question as the form shows it. */
export interface Draft {
  readonly id: number
  readonly name: string
  readonly type: 'choice' | 'noul' | 'score'
  readonly question: string
  /** Options or levels, between commas or on lines of their own; 'name: what it means' describes one. */
  readonly options: string
}

/** Questions by name, as in a schema file. */
export type QuestionsJson = { readonly [name: string]: QuestionJson }
export interface QuestionJson {
  readonly type: Draft['type']
  readonly instructions: string
  readonly criteria?: readonly string[] | { readonly [option: string]: string }
}

export const typeNames: { readonly [type in Draft['type']]: string } = {
  choice: 'one of',
  noul: 'yes or no',
  score: 'how much',
}

let ids = 0
export const draft = (parts: Omit<Draft, 'id'>): Draft => ({ id: ++ids, ...parts })

/** 'a, b' or one to a line: 'a\nb'. */
export const splitOptions = (text: string): string[] =>
  text
    .split(text.includes('\n') ? '\n' : ',')
    .map((option) => option.trim())
    .filter(Boolean)

export function toJson(drafts: readonly Draft[]): QuestionsJson {
  return Object.fromEntries(
    drafts.map(({ name, type, question, options }) => [
      name,
      { type, instructions: question, ...criteriaOf(type, options) },
    ]),
  )
}

function criteriaOf(type: Draft['type'], options: string): Pick<QuestionJson, 'criteria'> {
  if (type === 'noul') return {}
  const list = splitOptions(options)
  if (type === 'score' || !list.some((option) => option.includes(': '))) return { criteria: list }
  const pairs = list.map((option) => /^(.*?): (.*)$/.exec(option)?.slice(1) ?? [option, ''])
  return { criteria: Object.fromEntries(pairs) as { [option: string]: string } }
}

/** Questions of the form from JSON; undefined for what the form cannot show. */
export function fromJson(json: unknown): Draft[] | undefined {
  if (!isObject(json)) return undefined
  const drafts = Object.entries(json).map(([name, spec]) => {
    if (!isObject(spec)) return undefined
    const { type = 'choice', instructions = spec.question, criteria = spec.options ?? spec.levels } = spec
    const kind = type === 'bool' ? 'noul' : type
    const options = optionsOf(criteria)
    if (typeof instructions !== 'string' || options === undefined || !(`${kind}` in typeNames)) return undefined
    if (kind === 'noul' && options !== '') return undefined
    return draft({ name, type: kind as Draft['type'], question: instructions, options })
  })
  return drafts.every((each) => each !== undefined) ? drafts : undefined
}

function optionsOf(criteria: unknown): string | undefined {
  if (criteria === undefined || criteria === null) return ''
  const list = Array.isArray(criteria)
    ? criteria
    : isObject(criteria)
      ? Object.entries(criteria).map(([name, text]) => (text ? `${name}: ${text}` : name))
      : undefined
  if (!list?.every((option) => typeof option === 'string')) return undefined
  return list.join(list.some((option) => /[,\n]/.test(option)) ? '\n' : ', ')
}

const isObject = (x: unknown): x is Record<string, unknown> => typeof x === 'object' && x !== null && !Array.isArray(x)
