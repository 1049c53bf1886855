// weight8(row, k): eight halves of a row of w from column k on, as they are. The binding is not packed: naga knows no
// bitcast from words to halves.    needs shader-f16; w: array<Words>; const IN, a multiple of 8
alias Words = vec4<W>;
struct Weight8 { lo: vec4<f16>, hi: vec4<f16> }

fn weight8(row: u32, k: u32) -> Weight8 {
  let at = (row * IN + k) / 4u;
  return Weight8(w[at], w[at + 1u]);
}
