// Weights of a row of w: packed(row, k), the TERMS around column k; unpacked(), eight of them, without their scale_of();
// weight8(row, k), eight from column k on as they are. needs: w: array<Words>; const IN, a multiple of 8
alias Words = W;
const TERMS = 8;
alias Packed = Weight8;
struct Weight8 { lo: vec4f, hi: vec4f }

fn packed(row: u32, k: u32) -> Packed { return weight8(row, k); }
fn scale_of(_p: Packed) -> f32 { return 1.0; }
fn unpacked(p: Packed, _eighth: u32) -> Weight8 { return p; }

fn weight8(row: u32, k: u32) -> Weight8 {
  let at = (row * IN + k) / 4u;
  return Weight8(bitcast<vec4f>(w[at]), bitcast<vec4f>(w[at + 1u]));
}
