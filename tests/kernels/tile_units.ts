import type { Kernel } from '../../src/graph/kernel.ts'

/**
 * A kernel of shaders/lib/delta_fragments.wgsl for devices without matrix units: its very shader, in which an operand
 * is where it lies in `tile`, read when it is multiplied, and every invocation of a subgroup holds its share of sums.
 * Subgroups are SUBGROUP neighbours of a workgroup. Small enough for software drivers to compile in seconds.
 */
export function emulated(kernel: Kernel): Kernel {
  const replaced: [RegExp, string][] = [
    [/alias (Left|Right|Sums) = .*/g, ''],
    [/@diagnostic\(.*?\)\s*/g, ''],
    [/\s*@builtin\(subgroup_id\) subgroup: u32,?/g, ''],
    [/subgroupMatrixLoad<(Left|Right), row_major>\(&tile,/g, '$1(true,'],
    [/subgroupMatrixLoad<(Left|Right), col_major>\(&tile,/g, '$1(false,'],
    [/subgroupMatrixStore<row_major>\(&(\w+),/g, 'store_$1('],
    [/subgroupMatrixMultiplyAccumulate\(/g, 'multiply('],
    [/(@compute[^{]*?fn main\([^{]*\{)/, '$1 invocation = lane % SUBGROUP; let subgroup = u32(lane / SUBGROUP);'],
  ]
  const source = replaced.reduce(
    (text, [from, to]) => text.replaceAll(from.flags.includes('g') ? from : new RegExp(from, 'g'), to),
    kernel.shader.join('\n'),
  )
  const stores = new Set([...source.matchAll(/\bstore_(\w+)\(/g)].map(([, array]) => array!))
  const requires = (kernel.requires ?? []).filter((feature) => feature === 'shader-f16')
  return { ...kernel, requires, shader: [source, emulation, ...[...stores].map(store)] }
}

const emulation = /* wgsl */ `
const SHARE = 256 / SUBGROUP;
struct Left { by_rows: bool, at: u32, wide: u32 }
struct Right { by_rows: bool, at: u32, wide: u32 }
struct Sums { v: array<f32, SHARE> }
var<private> invocation: u32;

fn half_at(by_rows: bool, at: u32, wide: u32, row: u32, column: u32) -> f32 {
  let line = select(column, row, by_rows);
  let i = select(row, column, by_rows);
  return unpack2x16float(tile[at + line * wide + i / 8][i % 8 / 2])[i % 2];
}
fn multiply(a: Left, b: Right, c: Sums) -> Sums {
  var s = c;
  for (var n = 0u; n < SHARE * 16; n++) {
    let at = n / 16 * SUBGROUP + invocation;
    let k = n % 16;
    s.v[n / 16] += half_at(a.by_rows, a.at, a.wide, at / 16, k) * half_at(b.by_rows, b.at, b.wide, k, at % 16);
  }
  return s;
}
`
/** Component by component: neighbours of a vec4 may be another invocation's. */
const store = (array: string): string => /* wgsl */ `
fn store_${array}(at: u32, m: Sums, wide: u32) {
  for (var n = 0u; n < SHARE; n++) {
    let i = n * SUBGROUP + invocation;
    ${array}[at + i / 16 * wide + i % 16 / 4][i % 4] = ${array === 'tile' ? 'bitcast<u32>(m.v[n])' : 'm.v[n]'};
  }
}
`
