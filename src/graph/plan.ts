import { ShapeError } from '../errors.ts'
import type { Graph } from './graph.ts'
import { capacityBytes, type Tensor } from './tensor.ts'

/** How a slot grows with the tokens of a run. */
export interface SlotSize {
  readonly fixed: number // bytes whatever the run
  readonly perToken: number // bytes for each token of capacity
}

export interface Plan {
  /** Largest first, so that programs of one device can share a pool by index. */
  readonly slots: readonly SlotSize[]
  slotOf(t: Tensor): number
}

export const slotBytes = (s: SlotSize, capacity: number): number => Math.max(s.fixed, s.perToken * capacity)

/**
 * Gives each value a slot, one device buffer, and reuses slots whose value is dead.
 *
 * Slots are whole buffers, not ranges of one arena: WebGPU tracks usage per buffer, so a dispatch may not read one
 * range of a buffer and write another. For the same reason a step's outputs never take a slot its inputs hold. Inputs
 * and outputs of the graph hold their slots throughout.
 */
export function plan(graph: Graph): Plan {
  const lastUse = new Map<number, number>()
  graph.steps.forEach((step, i) => {
    for (const t of Object.values(step.bindings)) lastUse.set(t.id, i)
  })
  const throughout = new Set([...graph.inputs.values(), ...graph.outputs.values()].map((t) => t.id))

  const slots: { fixed: number; perToken: number }[] = []
  const slotOf = new Map<number, number>()
  const free = new Set<number>()

  const place = (t: Tensor): void => {
    if (t.place === 'kept' || slotOf.has(t.id)) return
    const need = sizeOf(t)
    const slot = throughout.has(t.id) ? slots.push({ fixed: 0, perToken: 0 }) - 1 : pick(need)
    free.delete(slot)
    const s = slots[slot]!
    s.fixed = Math.max(s.fixed, need.fixed)
    s.perToken = Math.max(s.perToken, need.perToken)
    slotOf.set(t.id, slot)
  }
  /** The free slot that has to grow least, or a new one. */
  const pick = (need: SlotSize): number => {
    const growth = (i: number): number => Math.abs(need.perToken - slots[i]!.perToken)
    const best = [...free].sort((a, b) => growth(a) - growth(b))[0]
    return best ?? slots.push({ fixed: 0, perToken: 0 }) - 1
  }

  for (const t of graph.inputs.values()) place(t)
  graph.steps.forEach((step, i) => {
    const tensors = Object.values(step.bindings)
    for (const t of tensors) place(t)
    for (const t of new Set(tensors)) {
      const slot = slotOf.get(t.id)
      if (slot !== undefined && lastUse.get(t.id) === i && !throughout.has(t.id)) free.add(slot)
    }
  })

  const order = slots
    .map((_, i) => i)
    .sort((a, b) => slots[b]!.perToken - slots[a]!.perToken || slots[b]!.fixed - slots[a]!.fixed)
  const rank = new Map(order.map((slot, i) => [slot, i]))
  return {
    slots: order.map((i) => slots[i]!),
    slotOf(t) {
      const slot = slotOf.get(t.id)
      if (slot === undefined) throw new ShapeError(`plan: ${t.label} [${t.shape}] is used by no step`)
      return rank.get(slot)!
    },
  }
}

function sizeOf(t: Tensor): SlotSize {
  const symbolic = typeof t.shape[0] === 'string'
  const bytes = capacityBytes(t, 1)
  return symbolic ? { fixed: 0, perToken: bytes } : { fixed: bytes, perToken: 0 }
}

/** The largest power of two whose every slot fits a binding. */
export function maxTokens(p: Plan, bindingBytes: number): number {
  let capacity = MOST_TOKENS
  while (capacity > 1 && p.slots.some((s) => slotBytes(s, capacity) > bindingBytes)) capacity /= 2
  return capacity
}
const MOST_TOKENS = 8192
