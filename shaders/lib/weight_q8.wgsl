// weight8(row, k): eight weights of a row of w from column k on. needs w: array<Words>; const IN, a multiple of 32, OUT
// All OUT rows of quants lie before the scales: a signed byte per weight, and an f16 per 32 of them.
alias Words = W;
struct Weight8 { lo: vec4f, hi: vec4f }

// A byte b of two's complement, its highest bit turned over, is b + 128: in the last bits of 2^23 a number at once.
fn signed_bytes(v: u32) -> vec4f {
  let bytes = (vec4u(v, v >> 8u, v >> 16u, v >> 24u) & vec4u(0xffu)) ^ vec4u(0x80u);
  return bitcast<vec4f>(bytes | vec4u(0x4b000000u)) - vec4f(8388736.0);
}

fn weight8(row: u32, k: u32) -> Weight8 {
  let at = row * IN + k;
  let quants = w[at / 16u];
  let eight = select(quants.xy, quants.zw, (at & 8u) != 0u);
  let word = OUT * IN / 4u + at / 64u;
  let scales = unpack2x16float(w[word / 4u][word % 4u]);
  let scale = select(scales.x, scales.y, (at & 32u) != 0u);
  return Weight8(signed_bytes(eight.x) * scale, signed_bytes(eight.y) * scale);
}
