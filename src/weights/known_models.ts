/** A published model that this package runs. */
export interface KnownModel {
  /** What `openSource` takes. */
  readonly name: string
  /** The commit that a name without a revision stands for. */
  readonly revision: string
  /** Of the weights, about: what a download takes. */
  readonly bytes: number
  /** Of the weights on a device with f16, about; the rest of the checkpoint stays on the host or is not used. */
  readonly deviceBytes: number
}

/** The published models, for pickers. Nothing is downloaded for it. */
export const knownModels: readonly KnownModel[] = [
  {
    name: 'hf:Mapika/decider-0.8b',
    revision: '1ea54127d3bd52f6d753d9257b32a6380b873907',
    bytes: 1.5e9,
    deviceBytes: 1.0e9,
  },
  {
    name: 'hf:Mapika/decider-2b',
    revision: 'b37f7e1ba3fbc9238004cf531fabbee2619973fd',
    bytes: 3.76e9,
    deviceBytes: 2.75e9,
  },
  {
    name: 'hf:Mapika/decider-2b-vision',
    revision: '446c8c5e334e53ae3526a1c5384f93d5caee68cd',
    bytes: 4.43e9,
    deviceBytes: 3.41e9,
  },
  {
    name: 'hf:Zyphra/Zonos-v0.1-transformer',
    revision: '9d8331fc49cb5ba8aad2bb56cafd809c66598f4e',
    bytes: 3.25e9,
    deviceBytes: 3.25e9,
  },
  {
    name: 'hf:descript/dac_44khz',
    revision: 'c1bc521685adf9cfe247bc39a5ca58917eda1ac4',
    bytes: 306e6,
    deviceBytes: 198e6,
  },
]
