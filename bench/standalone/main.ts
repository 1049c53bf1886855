import './tests.ts'
import { parseArgs } from 'node:util'
import { runAll } from './vitest.ts'

// node tests.mjs [part of a file's name ...] [-t part of a test's name], from the root of the repository
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { name: { type: 'string', short: 't', default: '' } },
})
const failed = await runAll({ files: positionals, name: values.name }, (line) => process.stdout.write(`${line}\n`))
process.exit(failed ? 1 : 0) // devices that tests share are open still
