import type { EspeakModule, EspeakWorker } from '@echogarden/espeak-ng-emscripten'
import { InputError } from '../errors.ts'
import { languageId, languages } from './languages.ts'

export interface EspeakOptions {
  /**
   * Where espeak-ng.data is (24 MB, in the package): a URL, or its bytes. Default: beside the package's module, which
   * Node, Deno and pages with an import map can find. A bundler moves files, so a bundled page has to say where.
   */
  readonly data?: string | URL | ArrayBuffer | undefined
  readonly signal?: AbortSignal | undefined
}

/** espeak-ng's rules and dictionaries. */
export interface Espeak {
  /** IPA of one word, as if nothing stood before or after it. InputError for a language it has no voice for. */
  word(text: string, language: string): string
}

const PACKAGE = '@echogarden/espeak-ng-emscripten'

/** Loads espeak-ng from its package. InputError 'unsupported' where the package or its data cannot be loaded. */
export async function openEspeak({ data, signal }: EspeakOptions = {}): Promise<Espeak> {
  signal?.throwIfAborted()
  const open = await import('@echogarden/espeak-ng-emscripten').then(
    (loaded) => loaded.default,
    (cause: Error) => {
      const hint = `it reads words aloud and is GPL-3.0, so it is not part of this package: npm i ${PACKAGE}`
      throw unavailable(`the package ${PACKAGE} does not load; ${hint}, or give IPA between slashes`, cause)
    },
  )
  const bytes = data instanceof ArrayBuffer ? data : await readData(data, signal)
  const checked = (_: string, size: number): ArrayBuffer => {
    if (bytes.byteLength === size) return bytes
    throw unavailable(`espeak-ng.data has ${bytes.byteLength} bytes, expected ${size}; take it from ${PACKAGE} anew`)
  }
  const silent = (): void => {}
  const module = await open({ getPreloadedPackage: checked, print: silent, printErr: silent })
  signal?.throwIfAborted()
  return speaker(module, new module.eSpeakNGWorker())
}

async function readData(where: string | URL | undefined, signal: AbortSignal | undefined): Promise<ArrayBuffer> {
  const hint = 'pass its URL or bytes as `data`'
  let url: URL
  try {
    url = new URL(where ?? new URL('espeak-ng.data', import.meta.resolve(PACKAGE)), globalThis.location?.href)
  } catch (cause) {
    throw unavailable(`the place of espeak-ng.data is not known (${where ?? PACKAGE}); ${hint}`, cause)
  }
  try {
    if (url.protocol === 'file:') {
      const { readFile } = await import('node:fs/promises')
      const { buffer, byteOffset, byteLength } = await readFile(url, { signal })
      return (buffer as ArrayBuffer).slice(byteOffset, byteOffset + byteLength)
    }
    const response = await fetch(url, { signal: signal ?? null })
    if (!response.ok) throw new Error(`the server answers ${response.status}`)
    return await response.arrayBuffer()
  } catch (cause) {
    signal?.throwIfAborted()
    throw unavailable(`${url} cannot be read: ${(cause as Error).message}; ${hint}`, cause)
  }
}

/** The one word that espeak-ng 1.51 stresses when it stands alone and the package does not. */
const loneOne = /^['‘<[{\s]*one(['’]?s['’]?)?['’>\]}\s]*$/i
/** Zero ends a C string, and half of a surrogate pair has no UTF-8. */
const noText = /[\0\uFFFD\p{Surrogate}]/gu
const MAX_WORDS = 16384 // remembered: a word costs up to a millisecond

function speaker(module: EspeakModule, worker: EspeakWorker): Espeak {
  const voices = new Map<string, string>()
  for (const voice of worker.list_voices()) {
    const code = voice.languages[0]?.name
    if (code && !voices.has(code)) voices.set(code, voice.identifier) // the first whose first language it is
  }
  const decoder = new TextDecoder()
  const words = new Map<string, string>()
  let current = ''

  function setVoice(code: string): void {
    if (code === current) return
    const identifier = voices.get(code)
    if (identifier === undefined || worker.set_voice(identifier) !== 0)
      throw new InputError(`phonemes: espeak-ng has no voice for ${code}; choose another language`, 'unsupported')
    current = code
  }

  /** Phonemes with _ between: IPA, or espeak-ng's own names of them. */
  function read(text: string, names: 'ipa' | 'own'): string {
    const { ptr } = worker.text_to_phonemes(text, names === 'ipa' ? 1 : 0)
    return decoder.decode(module.HEAPU8.subarray(ptr, module.HEAPU8.indexOf(0, ptr)))
  }

  function readWord(text: string, code: string): string {
    setVoice(code)
    const ipa = withoutSeparators(code === 'en-us' ? forced(read(text, 'ipa'), read(text, 'own')) : read(text, 'ipa'))
    return code.startsWith('en') && loneOne.test(text) ? ipa.replace('ˌ', 'ˈ') : ipa
  }

  return {
    word(text, language) {
      const code = languages[languageId(language)]!
      const key = `${code}\n${text}`
      let ipa = words.get(key)
      if (ipa === undefined) {
        ipa = readWord(text.replace(noText, ''), code)
        if (words.size === MAX_WORDS) words.clear()
        words.set(key, ipa)
      }
      return ipa
    },
  }
}

/**
 * American English parts the vowels of "four" and "for", oːɹ and ɔːɹ, in espeak-ng 1.51 and in the voices that were
 * trained on it. The package still does in espeak-ng's own names, o@ and O@, but no longer in IPA.
 */
function forced(ipa: string, own: string): string {
  const names = own.split(/[_ ]/)
  return ipa
    .split(/([_ ])/)
    .map((phoneme, i) => (names[i / 2]?.includes('o@') ? phoneme.replace('ɔː', 'oː') : phoneme))
    .join('')
}

/** The package puts ' | ' between clauses and espeak-ng _ between phonemes; phonemizer 3.3 cleans up in this order. */
const withoutSeparators = (raw: string): string =>
  raw.replaceAll(' | ', ' ').trim().replaceAll('\n', ' ').replaceAll('  ', ' ').replaceAll('_', '')

const unavailable = (what: string, cause?: unknown): InputError =>
  new InputError(`phonemes: ${what}`, 'unsupported', { cause })
