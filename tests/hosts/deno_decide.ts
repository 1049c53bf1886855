import { choice, loadDecider, openDevice, type Precision } from '../../src/index.ts'

// The sources as they are, without a build: opens the device that is named, asks one question, prints JSON.

const [kind, precision] = process.argv.slice(2) as ['cpu' | 'webgpu', Precision]
const device = await openDevice(kind, { precision })
const decider = await loadDecider('public/models/decider-nano', { device })
const { answers } = await decider.decide('My card was charged twice for the same purchase.', {
  team: choice('Which department should handle this?', ['billing', 'technical', 'sales']),
})
console.log(JSON.stringify({ report: device.report, team: answers.team }))
await decider.dispose()
await device.dispose()
