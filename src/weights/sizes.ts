/** '2.75 GB', '1.60 MB', '40 bytes': for people. */
export function byteSize(bytes: number): string {
  if (bytes < 1e5) return `${Math.round(bytes)} bytes`
  const [unit, size] = bytes >= 1e9 ? ['GB', bytes / 1e9] : ['MB', bytes / 1e6]
  return `${size.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0)} ${unit}`
}
