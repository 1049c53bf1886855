import { flows } from './page_flows.ts'

// On WebGPU, which SwiftShader computes here.
flows('webgpu')
