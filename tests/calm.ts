/**
 * While Dawn waits for its device, it asks for news in every turn of Node's event loop, which keeps a core busy that the
 * driver's compiler or another file of tests could use. Here it asks once a millisecond when it has waited for two. It
 * takes setImmediate from the globals, and calls it again from within its own turn; nobody else does both.
 */
const everyTurn = globalThis.setImmediate
const SOON_MS = 2
let waitingSince = 0
let turning = false

function calm(run: (...args: unknown[]) => void, ...args: unknown[]): NodeJS.Immediate | NodeJS.Timeout {
  if (!turning) waitingSince = performance.now()
  const turn = (): void => {
    turning = true
    try {
      run(...args)
    } finally {
      turning = false
    }
  }
  return performance.now() - waitingSince < SOON_MS ? everyTurn(turn) : setTimeout(turn, 1)
}
globalThis.setImmediate = Object.assign(calm, everyTurn) as typeof setImmediate
