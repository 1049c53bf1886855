// weight8(row, k): eight weights of a row of w from column k on. needs w: array<Words>; const IN, a multiple of 8
// Halves are unpacked by a builtin, so no shader-f16 is needed.
alias Words = W;
struct Weight8 { lo: vec4f, hi: vec4f }

fn weight8(row: u32, k: u32) -> Weight8 {
  let bits = w[(row * IN + k) / 8u];
  return Weight8(
    vec4f(unpack2x16float(bits.x), unpack2x16float(bits.y)),
    vec4f(unpack2x16float(bits.z), unpack2x16float(bits.w)),
  );
}
