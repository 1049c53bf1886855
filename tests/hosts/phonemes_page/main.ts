/// <reference types="vite/client" />
import data from '@echogarden/espeak-ng-emscripten/espeak-ng.data?url'
import { openPhonemizer } from '../../../src/text/phonemes.ts'

// What a bundled page does: the bundler says where the data went. Reads the text in the address.

const { phonemes } = await openPhonemizer({ data })
document.title = phonemes(decodeURIComponent(location.hash.slice(1)), 'en-us')
