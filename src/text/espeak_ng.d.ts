/** What is used of the package, which has no types of its own. GPL-3.0: an optional peer, imported when first needed. */
declare module '@echogarden/espeak-ng-emscripten' {
  export interface EspeakModule {
    readonly HEAPU8: Uint8Array
    readonly eSpeakNGWorker: new () => EspeakWorker
  }

  export interface EspeakWorker {
    list_voices(): { readonly identifier: string; readonly languages: readonly { readonly name: string }[] }[]
    /** 0 where the voice is there. */
    set_voice(identifier: string): number
    /** 1: IPA, with _ between phonemes. The pointer of a C string in HEAPU8, good until the next call. */
    text_to_phonemes(text: string, mode: 0 | 1): { readonly ptr: number }
  }

  export default function openModule(options: {
    readonly getPreloadedPackage: (name: string, size: number) => ArrayBuffer
    readonly print: (line: string) => void
    readonly printErr: (line: string) => void
  }): Promise<EspeakModule>
}
