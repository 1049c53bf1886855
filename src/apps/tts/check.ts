import { zonosConfig } from '../../models/zonos/config.ts'
import { openSource, readJson } from '../../weights/source.ts'
import type { Where } from './load.ts'
import { checkOptions, type SayOptions } from './options.ts'

/**
 * Whether the model there can say something with these settings. Reads its config.json alone, so a mistake is found
 * before gigabytes are loaded.
 *
 * @throws InputError naming the setting; WeightsError for a config.json that is missing or not understood
 */
export async function checkSay(where: Where, options: SayOptions): Promise<void> {
  checkOptions(options, zonosConfig(await readJson(openSource(where), 'config.json', options.signal)))
}
