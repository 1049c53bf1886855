import { useRef } from 'preact/hooks'
import { type Choice, choice, choices, device, deviceError, hasWebgpu, openDevice } from './state.ts'

const yes = (is: boolean): string => (is ? 'yes' : 'no')

/** Where everything runs, in short; opens to all there is to know, and to a switch. */
export function Badge() {
  const dialog = useRef<HTMLDialogElement>(null)
  const info = device.value
  const short = info ? (info.kind === 'cpu' ? 'CPU' : info.name) : 'looking for a device'
  return (
    <>
      <button type="button" class="badge" onClick={() => dialog.current!.showModal()}>
        <i class={info?.kind === 'webgpu' ? 'dot on' : 'dot'} />
        <span class="name">{short}</span>
        {info && <span class="meta">{info.dtype}</span>}
      </button>
      <dialog ref={dialog} aria-labelledby="device">
        <h2 id="device">Device</h2>
        <label for="choice">Run on</label>
        <select
          id="choice"
          value={choice.value}
          onChange={({ currentTarget }) => openDevice(currentTarget.value as Choice)}
        >
          {Object.entries(choices).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        {deviceError.value && <p role="alert">{deviceError.value}</p>}
        {info && (
          <dl class="facts">
            <Fact name="Adapter" value={info.adapter} />
            {info.architecture && <Fact name="Architecture" value={info.architecture} />}
            <Fact name="Why" value={info.why} />
            <Fact name="Numbers" value={info.dtype} />
            {info.kind === 'webgpu' && (
              <>
                <Fact name="f16" value={yes(info.f16)} />
                <Fact name="Subgroups" value={yes(info.subgroups)} />
                <Fact name="Subgroup matrix" value={yes(info.subgroupMatrix)} />
                <Fact name="In software" value={yes(info.software)} />
                <Fact name="Tuned" value={info.tuned ?? 'built-in plans'} />
                <Fact
                  name="Switched off"
                  value={info.disabled.map(({ variant, reason }) => `${variant}: ${reason}`).join('; ') || 'nothing'}
                />
              </>
            )}
          </dl>
        )}
        {!hasWebgpu && <p class="hint">This browser has no WebGPU, so the CPU computes.</p>}
        <p class="row">
          <button type="button" onClick={() => dialog.current!.close()}>
            Close
          </button>
        </p>
      </dialog>
    </>
  )
}

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)
