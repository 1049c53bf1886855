/** What went wrong, for programs; the message says what has what, what was expected and what to do. */
export type ErrorCode =
  | 'shape' // a tensor or an argument of an op does not fit
  | 'unavailable' // the device that was asked for is not there
  | 'lost' // the device went away; recover() opens it again
  | 'memory' // the device has not enough memory
  | 'shader' // a shader does not compile
  | 'validation' // the device refused a command
  | 'drift' // its numbers are further from the reference than they may be
  | 'limit' // more than the device can bind, dispatch or hold
  | 'disposed' // used after dispose()
  | 'missing' // a file or tensor that is not there
  | 'space' // the cache has no room for a file
  | 'format' // a file that is not what it should be
  | 'overflow' // a value that the number format cannot hold
  | 'unsupported' // understood, and not supported
  | 'input' // an argument of a request that cannot be served
  | 'too_long' // a text over the limit

abstract class PronounceError extends Error {
  readonly code: ErrorCode
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** An op was called with tensors that do not fit together. */
export class ShapeError extends PronounceError {
  override readonly name = 'ShapeError'
  constructor(message: string, options?: ErrorOptions) {
    super('shape', message, options)
  }
}

/** The device is missing, lost, full, refused a command, or computes something else. */
export class DeviceError extends PronounceError {
  override readonly name = 'DeviceError'
}

/** A checkpoint cannot be read, is damaged, or holds what is not understood. */
export class WeightsError extends PronounceError {
  override readonly name = 'WeightsError'
}

/** A request that cannot be answered as it stands. */
export class InputError extends PronounceError {
  override readonly name = 'InputError'
  constructor(message: string, code: 'input' | 'too_long' | 'unsupported' = 'input', options?: ErrorOptions) {
    super(code, message, options)
  }
}

/** A request over HTTP that is refused, and the status and body (JSON text, `{"detail": ...}`) to answer it with. */
export class RequestError extends PronounceError {
  override readonly name = 'RequestError'
  readonly status: number
  readonly body: string
  constructor(status: number, body: string, message: string, options?: ErrorOptions) {
    super(status === 413 ? 'too_long' : 'input', message, options)
    this.status = status
    this.body = body
  }
}
