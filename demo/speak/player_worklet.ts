import type { Command, Report } from './player.ts'

// Plays samples on the audio thread while more of them arrive. Between chunks that come too late it is silent.

declare const sampleRate: number
declare function registerProcessor(name: string, processor: new () => Processor): void
declare class AudioWorkletProcessor {
  readonly port: MessagePort
}
interface Processor {
  process(inputs: readonly Float32Array[][], outputs: readonly Float32Array[][]): boolean
}

const REPORT_SECONDS = 0.05
/** After it ran dry it waits for so much, so that it does not stutter. */
const REFILL_SECONDS = 0.3

registerProcessor(
  'player',
  class extends AudioWorkletProcessor implements Processor {
    #chunks: Float32Array[] = []
    #length = 0 // of all chunks
    #at = 0 // samples played
    #chunk = 0 // that is played, and where it begins
    #begin = 0
    #complete = false
    #playing = false
    #dry = false
    #unreported = 0

    constructor() {
      super()
      this.port.onmessage = ({ data }: MessageEvent<Command>) => this.#hear(data)
    }

    #hear(command: Command): void {
      if (command.do === 'clear') {
        this.#chunks = []
        this.#length = this.#at = this.#chunk = this.#begin = 0
        this.#complete = this.#playing = this.#dry = false
      } else if (command.do === 'add') {
        this.#chunks.push(command.samples)
        this.#length += command.samples.length
      } else if (command.do === 'complete') this.#complete = true
      else if (command.do === 'seek') this.#seek(command.sample)
      else this.#playing = command.do === 'play'
      this.#report()
    }

    #seek(sample: number): void {
      this.#at = Math.max(0, Math.min(sample, this.#length))
      this.#chunk = this.#begin = 0
    }

    #report(): void {
      this.#unreported = 0
      const report: Report = { sample: this.#at, playing: this.#playing }
      this.port.postMessage(report)
    }

    process(_inputs: readonly Float32Array[][], [[output]]: readonly Float32Array[][]): boolean {
      if (!this.#playing || !output) return true
      const waiting = this.#length - this.#at
      if (this.#dry && (waiting >= REFILL_SECONDS * sampleRate || this.#complete)) this.#dry = false
      if (this.#dry) return true
      let written = 0
      while (written < output.length && this.#at < this.#length) {
        const chunk = this.#chunks[this.#chunk]!
        const from = this.#at - this.#begin
        if (from >= chunk.length) {
          this.#begin += chunk.length
          this.#chunk++
          continue
        }
        const part = chunk.subarray(from, from + output.length - written)
        output.set(part, written)
        written += part.length
        this.#at += part.length
      }
      if (written < output.length) {
        if (this.#complete) this.#playing = false
        else this.#dry = true
      }
      this.#unreported += written
      if (!this.#playing || this.#unreported > REPORT_SECONDS * sampleRate) this.#report()
      return true
    }
  },
)
