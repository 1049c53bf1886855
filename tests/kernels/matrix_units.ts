import type { Kernel } from '../../src/graph/kernel.ts'
import type { Target } from '../../src/graph/target.ts'

const matrixFeature: string = 'chromium-experimental-subgroup-matrix'

/** The target of a device with matrix units of M x N x K and subgroups of one size. */
export const withUnits = (target: Target, M: number, N = M, K = M, subgroupSize = 32): Target => ({
  ...target,
  matrix: { M, N, K },
  subgroupSize,
  features: new Set([...target.features, matrixFeature, 'shader-f16', 'subgroups']),
})

/** Whether real units are there: a test takes them then, and `emulated` otherwise. */
export const hasUnits = ({ matrix, subgroupSize }: Target): boolean =>
  matrix !== undefined && subgroupSize !== undefined

/**
 * The kernel for devices without matrix units: its very shader, in which a fragment is an array that every invocation
 * of a subgroup holds all of. Subgroups are SUBGROUP (a constant of the kernel) neighbours of the workgroup's
 * invocations. Fragments may be loaded from and stored to any array, of numbers or of words that hold two halves or a
 * float each. The shader names its types, one of each kind: `alias X = subgroup_matrix_left<f16, columns, rows>`.
 */
export function emulated(kernel: Kernel): Kernel {
  const source = kernel.shader.join('\n').replaceAll(/@diagnostic\(.*?\)\s*/g, '')
  const types = [...source.matchAll(/alias (\w+) = subgroup_matrix_(\w+)<(\w+), (\w+), (\w+)>;/g)].map(
    ([text, name, kind, component, columns, rows]) => ({ text, name, kind, component, columns, rows }) as Type,
  )
  const [left, right, result] = ['left', 'right', 'result'].map((kind) => types.filter((type) => type.kind === kind))
  if (left?.length !== 1 || right?.length !== 1 || result?.length !== 1)
    throw new Error(`${kernel.name}: expected an alias of each kind of fragment, got ${types.map(({ text }) => text)}`)

  const helpers = new Map<string, string>()
  let text = types.reduce((text, type) => text.replace(type.text, struct(type)), source)
  for (const { name } of types) text = text.replaceAll(new RegExp(`\\b${name}\\((?!\\))`, 'g'), `splat_${name}(`)
  text = text.replaceAll(/subgroupMatrixLoad<(\w+), (\w+)>\(\s*&(\w+),/g, (_, name, order, array) => {
    const type = types.find((type) => type.name === name)
    if (!type) throw new Error(`${kernel.name}: ${name} is no alias of a fragment`)
    const helper = `load_${name}_${order}_${array}`
    helpers.set(helper, load(helper, type, order, array, elementOf(kernel, source, array)))
    return `${helper}(`
  })
  text = text.replaceAll(/subgroupMatrixStore<(\w+)>\(\s*&(\w+),/g, (_, order, array) => {
    const helper = `store_${order}_${array}`
    helpers.set(helper, store(helper, result[0]!, order, array, elementOf(kernel, source, array)))
    return `${helper}(`
  })
  text = text.replaceAll('subgroupMatrixMultiplyAccumulate(', 'multiply(')
  const calls = /\bsubgroup[A-Z]\w*\(/.test(text) // other subgroup operations, which are not emulated
  return {
    ...kernel,
    requires: (kernel.requires ?? []).filter((f) => f !== matrixFeature && (calls || f !== 'subgroups')),
    shader: [subgroups(text), multiply(left[0]!, right[0]!, result[0]!), ...helpers.values()],
  }
}

interface Type {
  readonly text: string
  readonly name: string
  readonly kind: 'left' | 'right' | 'result'
  readonly component: 'f16' | 'f32'
  readonly columns: string
  readonly rows: string
}

const struct = ({ name, columns, rows }: Type): string => /* wgsl */ `
struct ${name} { v: array<f32, ${columns} * ${rows}> } // row by row
fn splat_${name}(value: f32) -> ${name} {
  var m: ${name};
  for (var i = 0u; i < ${columns} * ${rows}; i++) { m.v[i] = value; }
  return m;
}
`

/** Of f16 results, every sum is rounded once. */
const multiply = (a: Type, b: Type, c: Type): string => /* wgsl */ `
fn multiply(a: ${a.name}, b: ${b.name}, c: ${c.name}) -> ${c.name} {
  var s = c;
  for (var i = 0u; i < ${c.rows} * ${c.columns} * ${a.columns}; i++) {
    let at = i / ${a.columns};
    let k = i % ${a.columns};
    s.v[at] += a.v[at / ${c.columns} * ${a.columns} + k] * b.v[k * ${b.columns} + at % ${c.columns}];
  }
  ${c.component === 'f16' ? `for (var i = 0u; i < ${c.rows} * ${c.columns}; i++) { s.v[i] = quantizeToF16(s.v[i]); }` : ''}
  return s;
}
`

/** What an array holds: `count` numbers or words to an element. */
interface Element {
  readonly type: string
  readonly count: number
  readonly words: boolean
}

function elementOf(kernel: Kernel, source: string, array: string): Element {
  const declared = new RegExp(`var<[^>]*> ${array}: array<((?:[^,<>]|<[^>]*>)+)`).exec(source)?.[1]?.trim()
  if (!declared) throw new Error(`${kernel.name}: there is no array ${array}`)
  const packed = kernel.packed?.find((name) => name.toUpperCase() === declared)
  const type = packed ? 'vec4u' : declared
  const count = Number(/^vec(\d)/.exec(type)?.[1] ?? 1)
  return { type, count, words: /^vec\d(u|<u32>)$|^u32$/.test(type) }
}

/** Components of a matrix to an element, and where the i-th of a line lies in it. */
function lanes({ component }: Type, { count, words }: Element) {
  const per = words && component === 'f16' ? 2 * count : count
  return { per, lane: (i: string) => (count === 1 ? '' : `[${i} % ${per}${per > count ? ' / 2' : ''}]`) }
}

function load(helper: string, type: Type, order: string, array: string, element: Element): string {
  const { per, lane } = lanes(type, element)
  const inLine = order === 'row_major' ? type.columns : type.rows
  const value = `${array}[at + line * stride + i / ${per}]${lane('i')}`
  const read = !element.words
    ? `f32(${value})`
    : type.component === 'f16'
      ? `unpack2x16float(${value})[i % 2]`
      : `bitcast<f32>(${value})`
  return /* wgsl */ `
fn ${helper}(at: u32, stride: u32) -> ${type.name} {
  var m: ${type.name};
  for (var n = 0u; n < ${type.columns} * ${type.rows}; n++) {
    let line = n / ${inLine};
    let i = n % ${inLine};
    m.v[${order === 'row_major' ? 'n' : `i * ${type.columns} + line`}] = ${read};
  }
  return m;
}
`
}

/** Element by element, as each is written by every invocation of the subgroup. */
function store(helper: string, type: Type, order: string, array: string, element: Element): string {
  const { per, lane } = lanes(type, element)
  const inLine = order === 'row_major' ? type.columns : type.rows
  const scalar = /^(vec\d)?(<f32>|f|f32|<f16>|h|f16)$/.test(element.type)
    ? /f16|h/.test(element.type)
      ? 'f16'
      : 'f32'
    : element.type
  const put = !element.words
    ? `e${lane('i')} = ${scalar}(value);`
    : type.component === 'f16'
      ? `e${lane('i')} |= pack2x16float(vec2f(value, 0)) << (i % 2 * 16);`
      : `e${lane('i')} = bitcast<u32>(value);`
  return /* wgsl */ `
fn ${helper}(at: u32, m: ${type.name}, stride: u32) {
  for (var n = 0u; n < ${type.columns} * ${type.rows}; n += ${per}) {
    let line = n / ${inLine};
    var e = ${element.type}();
    for (var i = n % ${inLine}; i < n % ${inLine} + ${per}; i++) {
      let value = m.v[${order === 'row_major' ? `line * ${type.columns} + i` : `i * ${type.columns} + line`}];
      ${put}
    }
    ${array}[at + line * stride + n % ${inLine} / ${per}] = e;
  }
}
`
}

/** The entry point with the built-ins of subgroups computed from its invocation's index. */
function subgroups(text: string): string {
  const index = /@builtin\(local_invocation_index\) (\w+)/.exec(text)?.[1]
  if (!index) throw new Error('the entry point has no local_invocation_index')
  const of: Record<string, string> = {
    subgroup_id: `${index} / SUBGROUP`,
    subgroup_invocation_id: `${index} % SUBGROUP`,
    subgroup_size: 'SUBGROUP',
  }
  const lets: string[] = []
  const left = text.replaceAll(/\s*@builtin\((subgroup_\w+)\) (\w+): u32,?/g, (_, builtin: string, name: string) => {
    lets.push(`let ${name} = u32(${of[builtin]});`)
    return ''
  })
  return left.replace(/(@compute[^{]*?fn \w+\([^{]*\{)/, (head) => `${head}\n  ${lets.join(' ')}`)
}
