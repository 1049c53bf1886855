import type { Device } from '../../device/device.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { Graph } from '../../graph/graph.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import { type Phase, zonosLogits } from './backbone.ts'
import type { ZonosConfig } from './config.ts'
import { type Codes, delayedGrid, gridWidth } from './delay.ts'
import { makeMemory } from './memory.ts'
import { requestOf, type Speech } from './request.ts'
import { capacityOf, firstColumn, runOf } from './run.ts'
import type { ZonosWeights } from './weights.ts'

/**
 * Teacher forcing: the logits from which speech would draw each column, had all columns before it been those of
 * `codes`. By the same kernels, a run for each column. [9 · 1025] for columns 1 and on, of the delayed grid, with
 * guidance: u + (c - u) · cfgScale of both rows.
 */
export async function* forcedLogits(
  device: Device,
  c: ZonosConfig,
  w: ZonosWeights,
  { codes, ...speech }: Omit<Speech, 'maxFrames' | 'audioPrefix'> & { readonly codes: Codes },
  signal?: AbortSignal,
): AsyncGenerator<Float32Array> {
  const request = requestOf({ ...speech, maxFrames: codes.frames }, c)
  const memory = makeMemory(device, c)
  const record = (phase: Phase) =>
    recordedProgram(
      device,
      (target) => {
        const graph = new Graph(target)
        graph.output('logits', zonosLogits(graph, c, w, memory, phase))
        return graph
      },
      { probes: variantProbes, stateful: true },
    )
  const programs = { prefill: record('prefill'), decode: record('decode') }
  try {
    memory.begin(delayedGrid(codes, 0), request.prefixes.length * capacityOf(request))
    const last = gridWidth(0, codes.frames) - 1
    for (let column = firstColumn(request); column <= last; column++) {
      const { inputs, counts } = runOf(c, request, column)
      const program = programs[column === firstColumn(request) ? 'prefill' : 'decode']
      const { logits } = await program.run(inputs, counts, { signal })
      yield guided(logits!, request.guidance)
    }
  } finally {
    memory.dispose()
  }
}

/** u + (c - u) · scale of the rows c and u; a row alone as it is. */
function guided(logits: Float32Array, scale: number): Float32Array {
  if (scale === 1) return logits
  const n = logits.length / 2
  return Float32Array.from({ length: n }, (_, i) => logits[n + i]! + (logits[i]! - logits[n + i]!) * scale)
}
