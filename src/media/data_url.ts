import { InputError } from '../errors.ts'

const HEAD = /^data:[^,]{0,200};base64,/i

/** The bytes of a `data:...;base64,` URL, whose media type is not looked at. Throws InputError for any other text. */
export function readDataUrl(url: string): Uint8Array {
  const head = HEAD.exec(url)?.[0]
  if (head === undefined)
    throw new InputError(
      `image: begins with ${JSON.stringify(url.slice(0, 24))}, expected data:image/...;base64,...; nothing is fetched`,
    )
  const text = decodeBase64(url.slice(head.length))
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}

function decodeBase64(text: string): string {
  try {
    return atob(text)
  } catch (cause) {
    throw new InputError('image: its data are not base64; encode the bytes of the file', 'input', { cause })
  }
}
