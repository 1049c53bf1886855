// weight8(row, k): eight weights of a row of w from column k on. needs w: array<Words>; const IN, a multiple of 8
// bf16 is the upper half of an f32: even elements move up, odd ones lose what lies below them.
alias Words = W;
struct Weight8 { lo: vec4f, hi: vec4f }

fn weight8(row: u32, k: u32) -> Weight8 {
  let bits = w[(row * IN + k) / 8u];
  let even = bitcast<vec4f>(bits << vec4u(16u));
  let odd = bitcast<vec4f>(bits & vec4u(0xffff0000u));
  return Weight8(vec4f(even.x, odd.x, even.y, odd.y), vec4f(even.z, odd.z, even.w, odd.w));
}
