// weight4(words): four neighbouring weights. w: array<Words>
// bf16 is the upper half of an f32: even elements move up, odd ones lose what lies below them.
alias Words = vec2u;
fn weight4(words: Words) -> vec4f {
  let even = bitcast<vec2f>(words << vec2u(16u));
  let odd = bitcast<vec2f>(words & vec2u(0xffff0000u));
  return vec4f(even.x, odd.x, even.y, odd.y);
}
