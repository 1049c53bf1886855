// Halves as numbers: by a builtin, so no shader-f16 is needed.    needs: lib/weight_halves
fn unpacked(bits: Packed, _eighth: u32) -> Weight8 {
  return Weight8(
    vec4f(unpack2x16float(bits.x), unpack2x16float(bits.y)),
    vec4f(unpack2x16float(bits.z), unpack2x16float(bits.w)),
  );
}
