// What weights of 16 bits share: packed(row, k), the TERMS around column k; unpacked(), eight of them, by lib/weight_f16 or
// weight_bf16; weight8(row, k), eight from column k on. needs: w: array<Words>; const IN, a multiple of 8
alias Words = W;
const TERMS = 8;
alias Packed = vec4u;
struct Weight8 { lo: vec4f, hi: vec4f }

fn packed(row: u32, k: u32) -> Packed { return w[(row * IN + k) / 8u]; }
fn scale_of(_p: Packed) -> f32 { return 1.0; }
fn weight8(row: u32, k: u32) -> Weight8 { return unpacked(packed(row, k), 0u); }
