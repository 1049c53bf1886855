import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { Server } from '../server.ts'

export interface ListenOptions {
  /** An address of this machine. */
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** Seconds until a request has to be there whole. */
  readonly timeoutSeconds: number
}

export interface Listening {
  readonly url: string
  /** Takes no more connections; resolves when what was under way is answered and all connections are closed. */
  close(): Promise<void>
}

/** Listens in Node. Rejects where the address cannot be had. */
export async function listen(server: Server, { host, port, timeoutSeconds }: ListenOptions): Promise<Listening> {
  const http = createAdaptorServer({
    fetch: server.fetch,
    overrideGlobalObjects: false,
    serverOptions: { requestTimeout: timeoutSeconds * 1000, headersTimeout: timeoutSeconds * 1000 },
  }) as HttpServer
  http.listen(port, host)
  await once(http, 'listening') // or an error, which rejects
  const { address, family, port: taken } = http.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`,
    async close() {
      const closed = once(http, 'close')
      http.close()
      await server.close()
      const idle = setInterval(() => http.closeIdleConnections(), 20) // each as soon as its answer is out
      await closed
      clearInterval(idle)
    },
  }
}
