import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { pinsOf, printVerified, readPins, verify } from '../apps/decider/verify.ts'
import { DeviceError, InputError } from '../index.ts'
import { addDeviceOptions, type Host, type ModelFlags, withDecider } from './host.ts'
import { imagesBeside } from './images.ts'
import { addCacheFlags } from './model.ts'

interface VerifyFlags extends Omit<ModelFlags, 'model'> {
  readonly pins?: string
  readonly of?: string
}

const DEFAULT = 'hf:Mapika/decider-0.8b'

/** `pronounce verify`: what was published, what this device says, and the difference, on stdout; fails beyond bounds. */
async function verifyModel(where: string, { pins: path, of, ...flags }: VerifyFlags, host: Host): Promise<void> {
  const pins = path === undefined ? pinsOf(of ?? where) : await readPinFile(path)
  const model = path === undefined && of === undefined ? pins.model : where // at the pinned revision
  host.note(`pins: ${pins.model}, ${pins.source}`)
  await withDecider({ ...flags, model }, host, async (decider) => {
    const verified = await verify(decider, pins, { imageOf: imagesBeside(path ?? '.'), signal: host.signal })
    process.stdout.write(printVerified(verified))
    const different = verified.filter(({ ok }) => !ok).length
    if (different > 0)
      throw new DeviceError('validation', `verify: ${different} of ${verified.length} answers differ, expected none`)
  })
}

async function readPinFile(path: string) {
  try {
    return readPins(JSON.parse(await readFile(path, 'utf8')))
  } catch (cause) {
    throw new InputError(`--pins: ${path}: ${(cause as Error).message}`, 'input', { cause })
  }
}

/** Adds the command to the program. */
export function addVerify(program: Command, host: Host): void {
  const command = program
    .command('verify')
    .description('compare answers with those that were published of a model')
    .argument('[where]', 'a published model, at its pinned revision; with --of or --pins a folder or URL', DEFAULT)
    .option('--of <hf:owner/name>', 'which published model the folder holds')
    .option('--pins <file.json>', 'answers of your own to compare with')
  addCacheFlags(addDeviceOptions(command)).action((where: string, flags: VerifyFlags) =>
    verifyModel(where, flags, host),
  )
}
