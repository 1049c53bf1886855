import type { Command } from 'commander'
import { type DownloadProgress, openSource, type Source } from '../index.ts'
import { byteSize } from '../weights/sizes.ts'

/** How models from elsewhere are had: flags of every command that loads one. */
export interface CacheFlags {
  readonly cache: boolean
  readonly offline?: true
}

export const addCacheFlags = (command: Command): Command =>
  command
    .option('--no-cache', 'do not keep what is downloaded: stream it')
    .option('--offline', 'ask nothing of the network: what is not kept is an error')

/** A checkpoint that is kept once it is downloaded. `live`: shows how the download goes on. */
export const openModel = (
  where: string,
  { cache, offline }: CacheFlags,
  live: ((line: string) => void) | undefined,
): Source =>
  openSource(where, {
    cache,
    offline,
    ...(live && { onProgress: (progress) => live(printDownload(progress)) }),
  })

function printDownload({ file, loadedBytes, totalBytes, bytesPerSecond, secondsLeft }: DownloadProgress): string {
  const left = secondsLeft === undefined ? '' : `, ${Math.ceil(secondsLeft)} s left`
  return `${file} ${byteSize(loadedBytes)} of ${byteSize(totalBytes)}, ${byteSize(bytesPerSecond)}/s${left}`
}
