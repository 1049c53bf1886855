import worklet from './player_worklet.ts?worker&url'

export type Command =
  | { readonly do: 'add'; readonly samples: Float32Array }
  | { readonly do: 'clear' | 'complete' | 'play' | 'pause' }
  | { readonly do: 'seek'; readonly sample: number }

export interface Report {
  readonly sample: number
  readonly playing: boolean
}

export interface Player {
  send(command: Command): void
  close(): Promise<void>
}

/** Plays at the speech's own rate; has to be opened by a click or a key, as browsers want it. */
export async function openPlayer(sampleRate: number, onReport: (report: Report) => void): Promise<Player> {
  const context = new AudioContext({ sampleRate, latencyHint: 'interactive' })
  await context.audioWorklet.addModule(worklet)
  const node = new AudioWorkletNode(context, 'player', { numberOfInputs: 0, outputChannelCount: [1] })
  node.port.onmessage = ({ data }: MessageEvent<Report>) => onReport(data)
  node.connect(context.destination)
  return {
    send(command) {
      if (command.do === 'play') context.resume()
      node.port.postMessage(command)
    },
    close: () => context.close(),
  }
}
