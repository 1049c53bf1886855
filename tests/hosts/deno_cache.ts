import { openCache } from '../../src/index.ts'
import { load } from './cache_page/load.ts'

// The sources as they are: loads a model through the cache, prints its hash and what is kept. 'die': kills itself when
// the first piece is there.

const [base, how] = process.argv.slice(2)
const cache = openCache()
if (how === 'die')
  setInterval(async () => {
    const [model] = await cache.list()
    if (model && model.bytes > 16 * 2 ** 20) process.kill(process.pid, 'SIGKILL')
  }, 100)
const { digest } = await load({ name: 'hf:me/it', base: base!, offline: how === 'offline' })
console.log(JSON.stringify({ digest, models: await cache.list(), where: await cache.path() }))
