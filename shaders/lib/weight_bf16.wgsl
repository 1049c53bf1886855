// Weights of a row of w: packed(row, k), the TERMS around column k; unpacked(), eight of them, without their scale_of();
// weight8(row, k), eight from column k on as they are. needs: w: array<Words>; const IN, a multiple of 8
// bf16 is the upper half of an f32: even elements move up, odd ones lose what lies below them.
alias Words = W;
const TERMS = 8;
alias Packed = vec4u;
struct Weight8 { lo: vec4f, hi: vec4f }

fn packed(row: u32, k: u32) -> Packed { return w[(row * IN + k) / 8u]; }
fn scale_of(_p: Packed) -> f32 { return 1.0; }

fn unpacked(bits: Packed, _eighth: u32) -> Weight8 {
  let even = bitcast<vec4f>(bits << vec4u(16u));
  let odd = bitcast<vec4f>(bits & vec4u(0xffff0000u));
  return Weight8(vec4f(even.x, odd.x, even.y, odd.y), vec4f(even.z, odd.z, even.w, odd.w));
}

fn weight8(row: u32, k: u32) -> Weight8 { return unpacked(packed(row, k), 0u); }
