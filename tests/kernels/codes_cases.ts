import type { Frame, Sampling } from '../../src/kernels/sample_codes.ts'

/** Plain softmax, nothing forbidden. */
export const plainSampling: Sampling = {
  guidance: 1,
  temperature: 1,
  linear: 0,
  confidence: 0,
  quadratic: 0,
  topP: 0,
  topK: 0,
  minP: 0,
  penalty: 1,
  window: 0,
}

export const frameOf = (frame: Partial<Frame>): Frame => ({
  column: 0,
  endFrom: 0,
  othersEnd: true,
  ends: true,
  seed: 1,
  before: 0,
  wanted: 0,
  shifted: false,
  ...frame,
})
