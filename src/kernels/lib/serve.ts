import type { Kernel, Workgroups } from '../../graph/kernel.ts'
import type { Counts } from '../../graph/tensor.ts'

export interface Dispatch {
  readonly kernel: Kernel
  readonly workgroups: (counts: Counts) => Workgroups
}

/** The dispatch for the runs that it serves; in others its step does nothing and costs nothing. */
export function only({ kernel, workgroups }: Dispatch, serves: (counts: Counts) => boolean): Dispatch {
  return {
    kernel: {
      ...kernel,
      cost: (c, counts) => (serves(counts) ? kernel.cost(c, counts) : { flops: 0, bytes: 0 }),
      cpu: (views, c, counts) => {
        if (serves(counts)) kernel.cpu(views, c, counts)
      },
    },
    workgroups: (counts) => (serves(counts) ? workgroups(counts) : [0, 0, 0]),
  }
}
