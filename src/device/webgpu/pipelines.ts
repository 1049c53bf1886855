import { DeviceError } from '../../errors.ts'
import type { Step } from '../../graph/graph.ts'
import { specialise } from '../../graph/kernel.ts'

const COMPUTE = 0x4

export interface Pipelines {
  /** The pipeline of a step; steps with the same source share it. Rejects with the compiler's messages. */
  of(step: Step): Promise<GPUComputePipeline>
  layout(step: Step): GPUBindGroupLayout
  readonly stepLayout: GPUBindGroupLayout
  readonly count: number
}

/** Compiles steps once each. Layouts are explicit, made from reads and writes, so equal kernels share bind groups. */
export function pipelines(gpu: GPUDevice): Pipelines {
  const compiled = new Map<string, Promise<GPUComputePipeline>>()
  const layouts = new Map<string, GPUBindGroupLayout>()
  const stepLayout = gpu.createBindGroupLayout({
    label: 'step',
    entries: [
      { binding: 0, visibility: COMPUTE, buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: 16 } },
    ],
  })

  const layout = ({ kernel }: Step): GPUBindGroupLayout => {
    const key = `${kernel.reads.length} reads, ${kernel.writes.length} writes`
    const known = layouts.get(key)
    if (known) return known
    const types = [
      ...kernel.reads.map(() => 'read-only-storage' as const),
      ...kernel.writes.map(() => 'storage' as const),
    ]
    const entries = types.map((type, binding) => ({ binding, visibility: COMPUTE, buffer: { type } }))
    const found = gpu.createBindGroupLayout({ label: key, entries })
    layouts.set(key, found)
    return found
  }

  return {
    of(step) {
      const code = specialise(step.kernel, step.bindings, step.constants)
      let found = compiled.get(code)
      if (!found) {
        const bindGroupLayouts = [layout(step), stepLayout]
        found = compile(gpu, step.kernel.name, code, gpu.createPipelineLayout({ bindGroupLayouts }))
        compiled.set(code, found)
        found.catch(() => compiled.delete(code))
      }
      return found
    },
    layout,
    stepLayout,
    get count() {
      return compiled.size
    },
  }
}

async function compile(
  gpu: GPUDevice,
  name: string,
  code: string,
  layout: GPUPipelineLayout,
): Promise<GPUComputePipeline> {
  gpu.pushErrorScope('validation')
  const module = gpu.createShaderModule({ label: name, code })
  const [error, { messages }] = await Promise.all([gpu.popErrorScope(), module.getCompilationInfo()])
  const errors = messages.filter((m) => m.type === 'error')
  if (errors.length || error) {
    const lines = code.split('\n')
    const told = errors.map((m) => `line ${m.lineNum}: ${m.message}\n    ${lines[m.lineNum - 1]?.trim() ?? ''}`)
    throw new DeviceError('shader', `${name}: the shader does not compile\n${told.join('\n') || error?.message}`)
  }
  try {
    return await gpu.createComputePipelineAsync({ label: name, layout, compute: { module, entryPoint: 'main' } })
  } catch (cause) {
    throw new DeviceError('shader', `${name}: no pipeline: ${(cause as Error).message}`, { cause })
  }
}
