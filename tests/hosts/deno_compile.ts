import { compileAll, distinctSteps, recordAll, sourceOf } from './recordings.ts'

// Compiles every shader of the models with naga, on whatever driver is there, and prints what came of it as JSON.

const adapter = await navigator.gpu.requestAdapter()
if (!adapter) throw new Error('Deno finds no adapter')
const half = adapter.features.has('shader-f16')
const gpu = await adapter.requestDevice({ requiredFeatures: half ? ['shader-f16'] : [] })
const refused = half ? /^enable (?!f16;)/m : /^enable /m // naga takes no other extension
const steps = distinctSteps(recordAll()).filter((step) => !refused.test(sourceOf(step)))
console.log(JSON.stringify(await compileAll(gpu, steps)))
gpu.destroy()
