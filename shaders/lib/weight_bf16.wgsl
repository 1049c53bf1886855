// bf16 as numbers: the upper half of an f32. Even elements move up, odd ones lose what lies below them.
// needs: lib/weight_halves
fn unpacked(bits: Packed, _eighth: u32) -> Weight8 {
  let even = bitcast<vec4f>(bits << vec4u(16u));
  let odd = bitcast<vec4f>(bits & vec4u(0xffff0000u));
  return Weight8(vec4f(even.x, odd.x, even.y, odd.y), vec4f(even.z, odd.z, even.w, odd.w));
}
