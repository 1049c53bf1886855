// operand(): eight terms of the layer norm of a row of x. Every workgroup makes it of its two rows: their mean, then the
// deviations from it, whose own mean corrects what rounding did (Chan, Golub and LeVeque 1983). The first vec4s of all
// lanes' TERMS terms lie before the second ones and so on, against bank conflicts.
// needs: struct Eight; x, space, sums; const TERMS, IN, a multiple of TERMS, EPS, WORKGROUP, a multiple of 16,
//   SPACE >= IN / 2
@group(0) @binding(2) var<storage, read> norm: array<vec4f>; // [2, IN]: weight, bias

const STAGED = true;
const FOURS = IN / 4;
const STEPS = (FOURS + WORKGROUP - 1) / WORKGROUP;

// Of vec4 n of a row.
fn place(n: u32) -> u32 { return n / (TERMS / 4) + n % (TERMS / 4) * (FOURS / (TERMS / 4)); }

// Over all lanes. Of two sums one after another `apart` is 0 and 16: the second begins before all have read the first.
fn sum_over(v: vec4f, lane: u32, apart: u32) -> vec4f {
  sums[lane] = v;
  workgroupBarrier();
  if (lane < 16u) {
    var some = vec4f();
    for (var i = 0u; i < WORKGROUP / 16; i++) { some += sums[lane + 16u * i]; }
    sums[WORKGROUP + apart + lane] = some;
  }
  workgroupBarrier();
  var all = vec4f();
  for (var i = 0u; i < 16u; i++) { all += sums[WORKGROUP + apart + i]; }
  return all;
}

fn operands_of(r: vec2u, lane: u32) -> u32 {
  let at = r * FOURS;
  let ones = vec4f(1.0);
  var total = vec2f();
  for (var i = 0u; i < STEPS; i++) {
    let n = i * WORKGROUP + lane;
    if (n < FOURS) { total += vec2f(dot(vec4f(x[at.x + n]), ones), dot(vec4f(x[at.y + n]), ones)); }
  }
  let near = sum_over(vec4f(total, 0.0, 0.0), lane, 0u).xy / f32(IN);
  var moments = vec4f();
  for (var i = 0u; i < STEPS; i++) {
    let n = i * WORKGROUP + lane;
    if (n < FOURS) {
      let a = vec4f(x[at.x + n]) - near.x;
      let b = vec4f(x[at.y + n]) - near.y;
      moments += vec4f(dot(a, ones), dot(b, ones), dot(a, a), dot(b, b));
    }
  }
  let m = sum_over(moments, lane, 16u) / f32(IN);
  let scale = inverseSqrt(m.zw - m.xy * m.xy + EPS);
  for (var i = 0u; i < STEPS; i++) {
    let n = i * WORKGROUP + lane;
    if (n < FOURS) {
      let to = place(n);
      space[to] = (vec4f(x[at.x + n]) - near.x - m.x) * scale.x * norm[n] + norm[FOURS + n];
      space[FOURS + to] = (vec4f(x[at.y + n]) - near.y - m.y) * scale.y * norm[n] + norm[FOURS + n];
    }
  }
  workgroupBarrier();
  return 0u;
}

fn operand(_operands: u32, r: vec2u, which: u32, k: u32) -> Eight {
  let at = which * FOURS + place(k / 4u);
  return Eight(space[at], space[at + FOURS / (TERMS / 4)]);
}
