import { loadDecider, openDevice } from '../../src/index.ts'
import { createServer } from '../../src/server.ts'

// The server as a handler of Deno.serve, from the sources: answers one request over the network and one without.

const device = await openDevice('cpu')
const decider = await loadDecider('public/models/decider-nano', { device })
const server = createServer({ decider })
const body = JSON.stringify({
  state: 'Charged twice.',
  questions: { refund: { type: 'noul', instructions: 'A refund?' } },
})
const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
const direct = await server.fetch(new Request('http://localhost/v1/systemone', init))

declare const Deno: {
  serve(
    options: object,
    handler: (request: Request) => Promise<Response>,
  ): { addr: { port: number }; shutdown(): Promise<void> }
}
const listening = Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: () => {} }, server.fetch)
const response = await fetch(`http://127.0.0.1:${listening.addr.port}/v1/systemone`, init)
console.log(JSON.stringify({ direct: await direct.text(), served: await response.text(), status: response.status }))
await server.close()
await listening.shutdown()
await decider.dispose()
await device.dispose()
