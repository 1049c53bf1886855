import { afterAll, beforeAll, expect } from 'vitest'

let dawn: GPU | undefined // Dawn takes the process down when this is collected

/** A GPUDevice as a caller has it, to be lost at will. */
export async function ownGpu(): Promise<GPUDevice> {
  if (!dawn) {
    const { create, globals } = await import('webgpu')
    Object.assign(globalThis, globals)
    dawn = create([])
  }
  const adapter = (await dawn.requestAdapter())!
  const requiredFeatures = (['shader-f16', 'timestamp-query'] as const).filter((f) => adapter.features.has(f))
  return adapter.requestDevice({ requiredFeatures })
}

/** A view of a GPUDevice in which some members are others. */
export function overlay(gpu: GPUDevice, members: Partial<Record<keyof GPUDevice, unknown>>): GPUDevice {
  return new Proxy(gpu, {
    get(target, key) {
      if (key in members) return members[key as keyof GPUDevice]
      const value = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/**
 * A GPUDevice with room for `budget.bytes` of buffers. Software drivers hand out memory they do not have, so this one
 * fails as WebGPU says: an invalid buffer, and a GPUOutOfMemoryError in the innermost scope for it, or uncaptured.
 */
export function scarce(gpu: GPUDevice, budget: { bytes: number }): GPUDevice {
  const scopes: { filter: GPUErrorFilter; error: GPUError | null }[] = []
  const invalid = (size: number): GPUBuffer => {
    gpu.pushErrorScope('validation')
    const buffer = gpu.createBuffer({ size, usage: 0 })
    gpu.popErrorScope()
    return buffer
  }
  return overlay(gpu, {
    pushErrorScope(filter: GPUErrorFilter) {
      scopes.push({ filter, error: null })
      gpu.pushErrorScope(filter)
    },
    async popErrorScope() {
      const { error } = scopes.pop()!
      return (await gpu.popErrorScope()) ?? error
    },
    createBuffer(descriptor: GPUBufferDescriptor) {
      const { size, label } = descriptor
      if (size > budget.bytes) {
        const scope = scopes.findLast(({ filter }) => filter === 'out-of-memory')
        expect(scope, `${label} is allocated in a scope`).toBeDefined()
        scope!.error ??= new GPUOutOfMemoryError(`${size} bytes are asked for, ${budget.bytes} are left`)
        return invalid(size)
      }
      const buffer = gpu.createBuffer(descriptor)
      const destroy = buffer.destroy.bind(buffer)
      let used = size
      budget.bytes -= size
      buffer.destroy = () => {
        budget.bytes += used
        used = 0
        destroy()
      }
      return buffer
    },
  })
}

/** Calls `on(n)` after the n-th submit, from 1. */
export function onSubmit(gpu: GPUDevice, on: (n: number) => void): GPUDevice {
  let n = 0
  const { queue } = gpu
  const counted = new Proxy(queue, {
    get(target, key) {
      const value = Reflect.get(target, key, target)
      if (key !== 'submit') return typeof value === 'function' ? value.bind(target) : value
      return (buffers: Iterable<GPUCommandBuffer>) => {
        queue.submit(buffers)
        on(++n)
      }
    },
  })
  return overlay(gpu, { queue: counted })
}

/** Lets promises that nobody waits for settle. */
export const settle = (ms = 20): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Fails the test file when a rejection was handled by nobody. */
export function expectNoUnhandledRejection(): void {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  beforeAll(() => void process.on('unhandledRejection', note))
  afterAll(async () => {
    await settle(100)
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
}
