import { openPhonemizer } from '../../src/text/phonemes.ts'

// The sources as they are: reads the text that is given aloud, in phonemes.

const { phonemes } = await openPhonemizer()
console.log(phonemes(process.argv[2]!, 'en-us'))
