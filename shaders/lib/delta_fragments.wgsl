// Fragments of 16 x 16 for the chunked delta rule: f16 operands, f32 sums. All of a workgroup's memory is `tile`; eight
// halves or four floats to a vec4u. Rows of operands are one vec4u longer than they must be, so that they begin in
// different banks. Offsets are clamped where they are used: Tint wraps an access in a branch unless it sees its bound.
// needs: const SIZE, of tile
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

const CHUNK = 64;
var<workgroup> tile: array<vec4u, SIZE>;

// s + a b
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add(a: Left, b: Right, s: Sums) -> Sums { return subgroupMatrixMultiplyAccumulate(a, b, s); }

// Sums as a block of 16 x 16 floats.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_block(at: u32, s: Sums) { subgroupMatrixStore<row_major>(&tile, min(at, SIZE - 64), s, 4); }

fn halves(a: vec4f, b: vec4f) -> vec4u {
  return vec4u(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
fn of_halves(h: vec2u) -> vec4f { return vec4f(unpack2x16float(h.x), unpack2x16float(h.y)); }
fn floats(at: u32) -> vec4f { return bitcast<vec4f>(tile[at]); }
