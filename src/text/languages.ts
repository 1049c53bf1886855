import { InputError } from '../errors.ts'

/** The languages Zonos knows, by espeak-ng's codes. The place in this list is the language id. */
export const languages: readonly string[] = `
  af am an ar as az ba bg bn bpy bs ca cmn cs cy da de el en-029 en-gb en-gb-scotland en-gb-x-gbclan en-gb-x-gbcwmd
  en-gb-x-rp en-us eo es es-419 et eu fa fa-latn fi fr-be fr-ch fr-fr ga gd gn grc gu hak hi hr ht hu hy hyw ia id is
  it ja jbo ka kk kl kn ko kok ku ky la lfn lt lv mi mk ml mr ms mt my nb nci ne nl om or pa pap pl pt pt-br py quc ro
  ru ru-lv sd shn si sk sl sq sr sv sw ta te tn tr tt ur uz vi vi-vn-x-central vi-vn-x-south yue`
  .trim()
  .split(/\s+/)

/** Place of a code in `languages`; upper and lower case are the same. InputError for a code that is not there. */
export function languageId(code: string): number {
  const id = languages.indexOf(code.toLowerCase())
  if (id >= 0) return id
  const [family] = code.toLowerCase().split(/[-_]/)
  const near = languages.filter((known) => known.split('-')[0] === family)
  const hint = near.length ? near.join(', ') : 'en-us, de, fr-fr, es, ja, cmn or another of espeak-ng'
  throw new InputError(`language: has ${JSON.stringify(code)}, which Zonos does not know; expected ${hint}`)
}
