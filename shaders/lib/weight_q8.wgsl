// weight8(row, k): eight weights of a row of w from column k on. needs w: array<Words>; const IN, a multiple of 32, OUT
// All OUT rows of quants lie before the scales: a signed byte per weight, and an f16 per 32 of them.
alias Words = W;
struct Weight8 { lo: vec4f, hi: vec4f }

// Component i % 4 of a vector, without a variable index: GPU compilers put what has one into memory.
fn component(v: vec4u, i: u32) -> u32 {
  let two = select(v.xy, v.zw, (i & 2u) != 0u);
  return select(two.x, two.y, (i & 1u) != 0u);
}

fn signed_bytes(v: u32) -> vec4f {
  return vec4f(bitcast<vec4i>(vec4u(v << 24u, v << 16u, v << 8u, v)) >> vec4u(24u));
}

fn weight8(row: u32, k: u32) -> Weight8 {
  let at = row * IN + k;
  let quants = w[at / 16u];
  let eight = select(quants.xy, quants.zw, (at & 8u) != 0u);
  let word = OUT * IN / 4u + at / 64u;
  let scales = unpack2x16float(component(w[word / 4u], word));
  let scale = select(scales.x, scales.y, (at & 32u) != 0u);
  return Weight8(signed_bytes(eight.x) * scale, signed_bytes(eight.y) * scale);
}
