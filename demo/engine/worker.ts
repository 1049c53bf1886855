import { expose, transfer } from 'comlink'
import { createEngine } from './engine.ts'
import type { ModelRef } from './models.ts'

// The engine's own thread. The page says first where its folder of models is: a worker only knows its own address.

addEventListener(
  'message',
  ({ data }: MessageEvent<{ [kind in ModelRef['kind']]: ModelRef }>) =>
    expose(createEngine(data, (samples) => transfer(samples, [samples.buffer]))),
  { once: true },
)
