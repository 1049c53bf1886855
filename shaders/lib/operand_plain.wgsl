// operand(): eight terms of x as they are.    needs: struct Eight; x; const IN
const STAGED = false;
fn operands_of(r: vec2u, lane: u32) -> u32 { return 0u; }

fn operand(_operands: u32, r: vec2u, which: u32, k: u32) -> Eight {
  let at = (select(r.x, r.y, which == 1u) * IN + k) / 4u;
  return Eight(vec4f(x[at]), vec4f(x[at + 1u]));
}
