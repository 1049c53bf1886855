import type { Command } from 'commander'
import { type CalibrationRecord, calibrate, calibrationReport } from '../apps/decider/calibrate.ts'
import { readRecord } from '../apps/decider/records.ts'
import { InputError } from '../index.ts'
import { type Host, integer } from './host.ts'
import { readLines } from './jsonl.ts'

/** `pronounce calibrate`: temperatures by answer type, as decider_config.json takes them, on stdout. */
async function fitRecords(path: string, { minRows }: { readonly minRows: number }, { signal }: Host): Promise<void> {
  const records: CalibrationRecord[] = []
  for await (const { number, text } of readLines('records', path, signal))
    records.push(readRecord(text, `records: line ${number} of ${path}`))
  if (records.length === 0) throw new InputError(`records: ${path} has no rows, expected at least one`)
  process.stdout.write(`${JSON.stringify(calibrationReport(calibrate(records, minRows)), null, 2)}\n`)
}

/** Adds the command to the program. */
export function addCalibrate(program: Command, host: Host): void {
  program
    .command('calibrate')
    .description('fit temperatures, by answer type, to answers whose truth is known')
    .argument('<records.jsonl>', 'predictions.jsonl of evaluate, or rows {type, logits or probs, gold}')
    .option('--min-rows <n>', 'a type with fewer rows has no temperature of its own', integer(1), 50)
    .action((path: string, flags: { readonly minRows: number }) => fitRecords(path, flags, host))
}
