import { describe, expect, test } from 'vitest'
import { runDeno } from './processes.ts'

describe.each([
  ['cpu', 'auto', 1e-3],
  ['webgpu', 'f32', 1e-3],
  ['webgpu', 'auto', 2e-3],
])('Deno runs the sources on %s, precision %s', (device, precision, tolerance) => {
  test('billing', async () => {
    const { code, stdout, stderr, lingeredMs } = await runDeno('deno_decide.ts', device, precision)
    expect(code, stderr).toBe(0)
    const { report, team } = JSON.parse(stdout)
    expect(report).toMatchObject({ kind: device, precision, why: 'asked for' })
    expect(report.dtype).toBe(precision === 'auto' && report.features.includes('shader-f16') ? 'f16' : 'f32')
    expect(team.choice).toBe('billing')
    expect(Math.abs(team.probabilities.billing - 0.96)).toBeLessThanOrEqual(tolerance)
    expect(lingeredMs).toBeLessThan(1000)
  })
})

test('Deno serves the handler of the server', async () => {
  const { code, stdout, stderr } = await runDeno('deno_serve.ts')
  expect(code, stderr).toBe(0)
  const { direct, served, status } = JSON.parse(stdout)
  expect(status).toBe(200)
  expect(served).toBe(direct)
  expect(JSON.parse(served).answers.refund.noul).toBeGreaterThan(0.5)
})
