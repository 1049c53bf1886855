// weight8(row, k): eight weights of a row of w from column k on. needs w: array<Words>; const IN, a multiple of 8
alias Words = W;
struct Weight8 { lo: vec4f, hi: vec4f }

fn weight8(row: u32, k: u32) -> Weight8 {
  let at = (row * IN + k) / 4u;
  return Weight8(bitcast<vec4f>(w[at]), bitcast<vec4f>(w[at + 1u]));
}
