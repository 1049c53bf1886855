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

/** How many invocations share a fragment, row by row: a small subgroup of the device, which divides every fragment. */
const lanesOf = ({ subgroupSize = 1 }: Target): number => (subgroupSize <= 8 ? subgroupSize : 1)

/**
 * The kernel for devices without matrix units, such as `target`'s: its very shader, in which SUBGROUP (a constant of the
 * kernel) neighbours of the workgroup's invocations are a subgroup. Each of the device's own subgroups among them holds
 * all of a fragment, every invocation its share of the rows. Fragments may be loaded from and stored to any array, of
 * numbers or of words that hold two halves or a float each. The shader names its types, one of each kind:
 * `alias X = subgroup_matrix_left<f16, columns, rows>`.
 */
export function emulated(kernel: Kernel, target: Target): Kernel {
  const lanes = lanesOf(target)
  const source = kernel.shader.join('\n').replaceAll(/@diagnostic\(.*?\)\s*/g, '')
  const types = [...source.matchAll(/alias (\w+) = subgroup_matrix_(\w+)<(\w+), (\w+), (\w+)>;/g)].map(
    ([text, name, kind, component, columns, rows]) => ({ text, name, kind, component, columns, rows }) as Type,
  )
  const [left, right, result] = ['left', 'right', 'result'].map((kind) => types.filter((type) => type.kind === kind))
  if (left?.length !== 1 || right?.length !== 1 || result?.length !== 1)
    throw new Error(`${kernel.name}: expected an alias of each kind of fragment, got ${types.map(({ text }) => text)}`)

  const helpers = new Map<string, string>()
  let text = types.reduce((text, type) => text.replace(type.text, struct(type, lanes)), source)
  for (const { name } of types) text = text.replaceAll(new RegExp(`\\b${name}\\((?!\\))`, 'g'), `splat_${name}(`)
  text = text.replaceAll(/subgroupMatrixLoad<(\w+), (\w+)>\(\s*&(\w+),/g, (_, name, order, array) => {
    const type = types.find((type) => type.name === name)
    if (!type) throw new Error(`${kernel.name}: ${name} is no alias of a fragment`)
    const helper = `load_${name}_${order}_${array}`
    helpers.set(helper, load(helper, type, order, array, elementOf(kernel, source, array), lanes))
    return `${helper}(`
  })
  text = text.replaceAll(/subgroupMatrixStore<row_major>\(\s*&(\w+),/g, (_, array) => {
    const helper = `store_${array}`
    helpers.set(helper, store(helper, result[0]!, array, elementOf(kernel, source, array), lanes))
    return `${helper}(`
  })
  text = text.replaceAll('subgroupMatrixMultiplyAccumulate(', 'multiply(')
  const calls = lanes > 1 || /\bsubgroup[A-Z]\w*\(/.test(text) // other subgroup operations, which are not emulated
  return {
    ...kernel,
    requires: (kernel.requires ?? []).filter((f) => f !== matrixFeature && (calls || f !== 'subgroups')),
    shader: [subgroups(text, lanes), multiply(left[0]!, right[0]!, result[0]!, lanes), ...helpers.values()],
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

const struct = ({ name, columns, rows }: Type, lanes: number): string => /* wgsl */ `
const OWN_OF_${name} = ${columns} * ${rows} / ${lanes};
struct ${name} { v: array<f32, OWN_OF_${name}> } // every ${lanes}-th row, the lane's own first
fn splat_${name}(value: f32) -> ${name} {
  var m: ${name};
  for (var i = 0u; i < OWN_OF_${name}; i++) { m.v[i] = value; }
  return m;
}
`

/** Term after term, as one lane after the other has them. Of f16 results, every sum is rounded once. */
function multiply(a: Type, b: Type, c: Type, lanes: number): string {
  const add = (_: unknown, i: number): string => /* wgsl */ `
      let term${i} = ${lanes > 1 ? `subgroupBroadcast(own, ${i})` : 'own'};
      for (var m = 0u; m < ${c.rows} / ${lanes}; m++) {
        s.v[m * ${c.columns} + n] += a.v[m * ${a.columns} + k + ${i}] * term${i};
      }`
  return /* wgsl */ `
${lanes > 1 ? '@diagnostic(off, subgroup_uniformity)' : ''}
fn multiply(a: ${a.name}, b: ${b.name}, c: ${c.name}) -> ${c.name} {
  var s = c;
  for (var k = 0u; k < ${a.columns}; k += ${lanes}) {
    for (var n = 0u; n < ${c.columns}; n++) {
      let own = b.v[k / ${lanes} * ${b.columns} + n];${Array.from({ length: lanes }, add).join('')}
    }
  }
  ${c.component === 'f16' ? `for (var i = 0u; i < OWN_OF_${c.name}; i++) { s.v[i] = quantizeToF16(s.v[i]); }` : ''}
  return s;
}
`
}

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
function placesOf({ component }: Type, { count, words }: Element) {
  const per = words && component === 'f16' ? 2 * count : count
  return { per, place: (i: string) => (count === 1 ? '' : `[${i} % ${per}${per > count ? ' / 2' : ''}]`) }
}

function load(helper: string, type: Type, order: string, array: string, element: Element, lanes: number): string {
  const { per, place } = placesOf(type, element)
  const [line, i] = order === 'row_major' ? ['row', 'column'] : ['column', 'row']
  const value = `${array}[at + ${line} * stride + ${i} / ${per}]${place(i)}`
  const read = !element.words
    ? `f32(${value})`
    : type.component === 'f16'
      ? `unpack2x16float(${value})[${i} % 2]`
      : `bitcast<f32>(${value})`
  return /* wgsl */ `
fn ${helper}(at: u32, stride: u32) -> ${type.name} {
  var m: ${type.name};
  for (var n = 0u; n < OWN_OF_${type.name}; n++) {
    let row = n / ${type.columns} * ${lanes} + unit_lane;
    let column = n % ${type.columns};
    m.v[n] = ${read};
  }
  return m;
}
`
}

/** Element by element, of which each lies in a row and so is one lane's. */
function store(helper: string, type: Type, array: string, element: Element, lanes: number): string {
  const { per, place } = placesOf(type, element)
  const scalar = /^(vec\d)?(<f32>|f|f32|<f16>|h|f16)$/.test(element.type)
    ? /f16|h/.test(element.type)
      ? 'f16'
      : 'f32'
    : element.type
  const put = !element.words
    ? `e${place('i')} = ${scalar}(value);`
    : type.component === 'f16'
      ? `e${place('i')} |= pack2x16float(vec2f(value, 0)) << (i % 2 * 16);`
      : `e${place('i')} = bitcast<u32>(value);`
  return /* wgsl */ `
fn ${helper}(at: u32, m: ${type.name}, stride: u32) {
  for (var n = 0u; n < OWN_OF_${type.name}; n += ${per}) {
    let row = n / ${type.columns} * ${lanes} + unit_lane;
    var e = ${element.type}();
    for (var i = 0u; i < ${per}; i++) {
      let value = m.v[n + i];
      ${put}
    }
    ${array}[at + row * stride + n % ${type.columns} / ${per}] = e;
  }
}
`
}

/** The entry point with the built-ins of subgroups computed from its invocation's index. */
function subgroups(text: string, lanes: number): string {
  const index = /@builtin\(local_invocation_index\) (\w+)/.exec(text)?.[1]
  if (!index) throw new Error('the entry point has no local_invocation_index')
  const of: Record<string, string> = {
    subgroup_id: `${index} / SUBGROUP`,
    subgroup_invocation_id: `${index} % SUBGROUP`,
    subgroup_size: 'SUBGROUP',
  }
  const [own, begin] =
    lanes > 1 ? [' @builtin(subgroup_invocation_id) unit_id: u32,', ['unit_lane = unit_id;']] : ['', []]
  const left = text.replaceAll(/\s*@builtin\((subgroup_\w+)\) (\w+): u32,?/g, (_, builtin: string, name: string) => {
    begin.push(`let ${name} = u32(${of[builtin]});`)
    return ''
  })
  return left.replace(
    /(@compute[^{]*?fn \w+\()([^{]*\{)/,
    (_, head, rest) => `var<private> unit_lane: u32;\n${head}${own}${rest}\n  ${begin.join(' ')}`,
  )
}
