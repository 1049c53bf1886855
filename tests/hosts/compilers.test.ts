import { afterAll, describe, expect, test } from 'vitest'
import { create, globals } from 'webgpu'
import { isIdle } from '../../src/graph/graph.ts'
import { runDeno } from './processes.ts'
import { type Compiled, compileAll, distinctSteps, recordAll, recordFrame, sourceOf } from './recordings.ts'

const recorded = recordAll()
const steps = distinctSteps(recorded)
const text = ['attention', 'attention_tiled', 'delta_chunk', 'delta_rule', 'delta_scan', 'linear']
const speech = [
  'advance_codes',
  'attention_decode',
  'attention_join',
  'code_embedding',
  'layer_norm',
  'linear_few',
  'rotary_append',
  'sample_codes',
]
const vision = ['add_layer_norm', 'embedding', 'interpolate_rows', 'scatter_rows']
const codec = ['conv1d', 'conv_transpose1d', 'dequantize', 'nearest_code']
const mustCompile = [...text, ...speech, ...vision, ...codec]

function expectAllCompiled({ kernels, failures }: Compiled): void {
  expect(failures).toEqual([expect.stringMatching(/^unparsable: /), expect.stringMatching(/^too_wide: /)])
  expect(kernels.length).toBeGreaterThan(20)
  expect(kernels).toEqual(expect.arrayContaining(mustCompile))
}

describe('a recorded model', () => {
  test('there are recordings, and they differ', () => {
    expect(new Set(recorded.map(({ name }) => name)).size).toBe(144 + 144 + 6 + 24)
    expect(steps.length).toBeGreaterThan(20)
    expect(steps.map((step) => step.kernel.name)).toEqual(expect.arrayContaining(mustCompile))
  })
  test('has at most 40 distinct pipelines', () => {
    const many = recorded
      .map(({ name, graph }) => ({ name, pipelines: new Set(graph.steps.map(sourceOf)).size }))
      .filter(({ pipelines }) => pipelines > 40)
    expect(many).toEqual([])
  })
  test('of Zonos makes a frame in 160 dispatches', () => {
    const steps = recordFrame().steps.filter((step) => !isIdle(step, { T: 2, S: 2, C: 2, R: 2 }))
    expect(steps.length).toBe(1 + 6 * 26 + 3)
  })
  test('of a vision tower makes the tokens of an image in 8 dispatches a block and 6 more', () => {
    const { graph } = recorded.find(({ name }) => name.startsWith('2B tower, matrix units'))!
    expect(graph.steps.filter((step) => !isIdle(step, { T: 256, S: 1, C: 4, R: 64 })).length).toBe(8 * 24 + 6)
  })
  test('binds at most 8 storage buffers in a shader', () => {
    const many = steps.filter(({ kernel }) => kernel.reads.length + kernel.writes.length > 8)
    expect(many.map((step) => step.kernel.name)).toEqual([])
  })
})

describe('the shaders compile, within the limits that every device grants,', () => {
  const dawn = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']) // held: Dawn dies with it
  Object.assign(globalThis, globals)
  let gpu: GPUDevice | undefined
  afterAll(() => gpu?.destroy())

  test('under Tint, with all features', async () => {
    const adapter = await dawn.requestAdapter()
    gpu = await adapter!.requestDevice({ requiredFeatures: [...adapter!.features] as GPUFeatureName[] })
    expect(gpu.features.has('shader-f16')).toBe(true)
    expect(gpu.features.has('subgroups')).toBe(true)
    const compiled = await compileAll(gpu, steps)
    expectAllCompiled(compiled)
    expect(compiled.kernels).toHaveLength(steps.length)
  })

  test('under naga, in Deno', async () => {
    const { code, stdout, stderr } = await runDeno('deno_compile.ts')
    expect(code, stderr).toBe(0)
    expectAllCompiled(JSON.parse(stdout))
  })
})
