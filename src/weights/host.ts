/** Node and Deno have a file system; a browser and its workers have not. */
export const hasFiles = (): boolean => typeof process === 'object' && typeof process.versions?.node === 'string'
