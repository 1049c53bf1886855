import { strip } from './python.ts'

const NONE = new Set(['none of the above', 'none', 'n/a', 'none of these'])

/** Options as the model reads them, and as answers spell them. */
export interface Shown {
  readonly options: readonly string[]
  readonly names: readonly string[]
}

/**
 * Shows a "none of the above" in a neutral spelling, for models trained so, and maps it back in answers. Options that
 * become the same text share the last one's name, as in the original.
 */
export function neutralizeNone(options: readonly string[]): Shown {
  const shown = options.map((option) => (isNone(option) ? 'not listed here' : option))
  const names = new Map(shown.map((text, i) => [text, options[i]!]))
  return { options: shown, names: shown.map((text) => names.get(text)!) }
}

function isNone(option: string): boolean {
  const plain = strip(option).toLowerCase()
  return NONE.has(plain) || plain.startsWith('none of the above')
}
