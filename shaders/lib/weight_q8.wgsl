// Weights of a row of w: packed(row, k), the TERMS around column k; unpacked(), eight of them, without their scale_of();
// weight8(row, k), eight from column k on as they are. needs: w: array<Words>; const IN, a multiple of 32, OUT
// All OUT rows of quants lie before the scales: a signed byte per weight, and an f16 per 32 of them.
alias Words = W;
const TERMS = 16;
struct Packed { quants: vec4u, scale: f32 }
struct Weight8 { lo: vec4f, hi: vec4f }

// A byte b of two's complement, its highest bit turned over, is b + 128: in the last bits of 2^23 a number at once.
fn signed_bytes(v: u32) -> vec4f {
  let bytes = vec4u(v, v >> 8u, v >> 16u, v >> 24u) & vec4u(0xffu);
  return bitcast<vec4f>(bytes ^ vec4u(0x4b000080u)) - vec4f(8388736.0);
}

fn packed(row: u32, k: u32) -> Packed {
  let at = row * IN + k;
  let word = OUT * IN / 4u + at / 64u;
  let scales = unpack2x16float(w[word / 4u][word % 4u]);
  return Packed(w[at / 16u], select(scales.x, scales.y, (at & 32u) != 0u));
}

fn scale_of(p: Packed) -> f32 { return p.scale; }

fn unpacked(p: Packed, eighth: u32) -> Weight8 {
  let eight = select(p.quants.xy, p.quants.zw, eighth % 2u == 1u);
  return Weight8(signed_bytes(eight.x), signed_bytes(eight.y));
}

fn weight8(row: u32, k: u32) -> Weight8 {
  let p = packed(row, k);
  let quants = unpacked(p, k / 8u);
  return Weight8(quants.lo * p.scale, quants.hi * p.scale);
}
