import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const walk = (dir: string): string[] =>
  readdirSync(join(root, dir), { withFileTypes: true }).flatMap((e) =>
    e.isDirectory() ? walk(join(dir, e.name)) : [join(dir, e.name)],
  )
const names = (dir: string, end: string): string[] =>
  readdirSync(join(root, dir))
    .filter((file) => file.endsWith(end))
    .map((file) => basename(file, end))
    .sort()

/** Lower layers first: a file may import from its own layer and from those before it. */
const layers = [
  ['errors.ts'],
  ['graph'],
  ['device', 'weights'],
  ['kernels', 'text', 'media'],
  ['models'],
  ['apps'],
  ['index.ts'],
  ['server', 'server.ts'], // before the command line, which serves it; Deno and workers use it without
  ['cli', 'cli.ts'],
]
const layerOf = (path: string): number => layers.findIndex((names) => names.includes(path.split('/')[0]!))

test('every kernel has a shader, an op file and a test of the same name', () => {
  const shaders = names('shaders', '.wgsl')
  expect(shaders.length).toBeGreaterThan(0)
  expect(names('src/kernels', '.ts')).toEqual(shaders)
  expect(names('tests/kernels', '.test.ts')).toEqual(shaders)
})

test('a shader binds at most 8 buffers, all in group 0, and the step in group 1', () => {
  const wrong = walk('shaders')
    .filter((file) => file.endsWith('.wgsl') && !file.includes('/lib/'))
    .flatMap((file) => {
      const source = read(file)
      const storage = [...source.matchAll(/@group\((\d)\)\s*@binding\(([A-Z_\d]+)\)\s*var<storage/g)]
      const pieces = [...source.matchAll(/lib\/(\w+)\.wgsl/g)].flatMap(([, name]) =>
        names('shaders/lib', '.wgsl').includes(name!)
          ? [...read(`shaders/lib/${name}.wgsl`).matchAll(/var<storage/g)]
          : [],
      )
      const tooMany = storage.length + pieces.length > 8
      return tooMany || storage.some(([, group]) => group !== '0') ? [file] : []
    })
  expect(wrong).toEqual([])
})

test('a shader says what it computes and what it needs before its code', () => {
  const silent = walk('shaders').filter((file) => file.endsWith('.wgsl') && !read(file).startsWith('// '))
  expect(silent).toEqual([])
})

test('every layer is known, and imports go one way', () => {
  const files = walk('src').map((file) => relative('src', file))
  expect(files.filter((file) => layerOf(file) < 0)).toEqual([])
  const wrong = files.flatMap((file) =>
    [...read(join('src', file)).matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)].flatMap(([, path]) => {
      const target = relative(join(root, 'src'), join(root, 'src', dirname(file), path!))
      if (target.startsWith('../shaders/')) return layerOf(file) === layerOf('kernels') ? [] : [`${file} -> ${target}`]
      return layerOf(target) > layerOf(file) ? [`${file} -> ${target}`] : []
    }),
  )
  expect(wrong).toEqual([])
})

test('the page imports the public face alone', () => {
  const imports = walk('demo')
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) => [...read(file).matchAll(/from '(\.[^']+)'/g)].map(([, path]) => join(dirname(file), path!)))
  const outside = imports.filter((path) => !path.startsWith('demo/'))
  expect(new Set(outside)).toEqual(new Set(['src/index.ts']))
})

test('files stay short', () => {
  const longest = { ts: 300, wgsl: 150 }
  const long = [...walk('src'), ...walk('shaders'), ...walk('demo')]
    .filter((file) => /\.(tsx?|wgsl)$/.test(file))
    .map((file) => ({ file, lines: read(file).split('\n').length - 1 }))
    .filter(({ file, lines }) => lines > (file.endsWith('.wgsl') ? longest.wgsl : longest.ts))
  expect(long).toEqual([])
})

test('no file of ours writes to the console but the hosts', () => {
  const loud = walk('src').filter((file) => !/^src\/(cli|server)\.ts$/.test(file) && /\bconsole\./.test(read(file)))
  expect(loud).toEqual([])
})
