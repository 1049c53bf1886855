import type { Command } from 'commander'
import { openCache } from '../index.ts'
import { byteSize } from '../weights/sizes.ts'

/** `pronounce cache`: what is kept, on stdout. */
export function addCache(program: Command): void {
  const cache = openCache()
  const command = program.command('cache').description('models that were downloaded and are kept')
  command
    .command('path')
    .description('print the folder')
    .action(async () => void process.stdout.write(`${await cache.path()}\n`))
  command
    .command('ls')
    .description('list them, with their sizes')
    .action(async () => {
      const models = await cache.list()
      for (const { name, bytes, complete } of models)
        process.stdout.write(`${byteSize(bytes).padStart(8)}  ${name}${complete ? '' : ' (in part)'}\n`)
    })
  command
    .command('rm')
    .description('delete models')
    .argument('[names...]', 'as ls prints them; hf:owner/name for all revisions')
    .option('--all', 'delete all')
    .action(async (names: string[], { all }: { all?: true }, command: Command) => {
      if (all ? names.length > 0 : names.length === 0) command.error('error: name the models to delete, or pass --all')
      const meant = all ? (await cache.list()).map(({ name }) => name) : names
      for (const name of meant)
        process.stdout.write(`${byteSize(await cache.remove(name)).padStart(8)}  ${name} removed\n`)
    })
}
