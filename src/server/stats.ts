import type { Limits } from '../apps/decider/limits.ts'
import { commonPrefix, LEAST_SHARED } from '../apps/decider/prefix_groups.ts'
import type { Row } from '../apps/decider/scorer.ts'
import type { RequestError } from '../errors.ts'

/** Counts what a server does. */
export interface Stats {
  request(rows: readonly Row[]): void
  run(rows: readonly Row[]): void
  failure(error: RequestError): void
  /** The original's `GET /stats`. Its graphs of CUDA have no counterpart here: every run is an eager forward. */
  report(outstandingRows: number): object
}

/** Upper ends of the original's buckets, in tokens. */
const LENGTHS = [64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 4096, 6144, 8192]

export function createStats(limits: Limits): Stats {
  const count = { requests: 0, batches: 0, decisions: 0, rows: 0, shared: 0, errors: 0, tooLarge: 0, overloaded: 0 }
  let unbucketed = 0
  const batchHist: Record<string, number> = {} // rows of a run, to the next power of two
  const bucketHist: Record<string, number> = {} // tokens of a row

  return {
    request(rows) {
      count.requests++
      count.rows += rows.length
      count.decisions += rows.reduce((sum, { slots }) => sum + slots.length, 0)
      if (rows.length > 1 && commonPrefix(rows) >= LEAST_SHARED) count.shared++
    },
    run(rows) {
      count.batches++
      add(batchHist, 2 ** Math.ceil(Math.log2(rows.length)))
      for (const { ids } of rows) {
        const bucket = LENGTHS.find((most) => ids.length <= most)
        if (bucket === undefined) unbucketed++
        else add(bucketHist, bucket)
      }
    },
    failure({ status, body }) {
      if (status === 499) return // the client's own wish
      count.errors++
      if (status === 413) count.tooLarge++
      if (status === 503 && body.includes('server busy')) count.overloaded++
    },
    report: (outstandingRows) => ({
      requests: count.requests,
      batches: count.batches,
      decisions: count.decisions,
      rows: count.rows,
      shared_prefix_requests: count.shared,
      errors: count.errors,
      rejected_too_large: count.tooLarge,
      rejected_overloaded: count.overloaded,
      batch_hist: { ...batchHist },
      bucket_hist: { ...bucketHist },
      outstanding_rows: outstandingRows,
      engine: {
        graph_captures: 0,
        forwards: count.batches,
        replays: 0,
        eager_forwards: count.batches,
        eager_rows: Object.values(bucketHist).reduce((a, b) => a + b, unbucketed),
        shared_calls: count.shared,
        unbucketed_requests: unbucketed,
      },
      graphs: 0,
      sealed: true,
      schema_cache: null,
      limits: {
        max_rows: limits.maxRows,
        max_row_tokens: limits.maxRowTokens,
        max_request_tokens: limits.maxRequestTokens,
        max_queue_rows: limits.maxQueueRows,
      },
    }),
  }
}

const add = (to: Record<string, number>, key: number): void => {
  to[key] = (to[key] ?? 0) + 1
}
