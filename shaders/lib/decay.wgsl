// The decays between the 64 tokens of a chunk, from the logs g of each token's own, four tokens to a vec4. Each exponent
// is added up by itself: as a difference of prefix sums, small decays would drown in large ones.
var<workgroup> g: array<vec4f, 16>;

fn total(v: vec4f) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// exp(g[c + 1] + .. + g[r]) for rows r = 4 i .. 4 i + 3, a column of the matrix for each c = 4 j .. 4 j + 3; 0 for c > r.
fn decay_between(i: u32, j: u32) -> mat4x4f {
  if (j > i) { return mat4x4f(); }
  let gi = g[i];
  let gj = g[j];
  if (i == j) {
    let yz = gi.y + gi.z;
    let zw = gi.z + gi.w;
    return mat4x4f(exp(vec4f(0.0, gi.y, yz, yz + gi.w)), vec4f(0.0, 1.0, exp(gi.z), exp(zw)),
                   vec4f(0.0, 0.0, 1.0, exp(gi.w)), vec4f(0.0, 0.0, 0.0, 1.0));
  }
  var between = 0.0;
  for (var q = j + 1u; q < i; q++) { between += total(g[q]); }
  let after = vec4f((gj.y + gj.z) + gj.w, gj.z + gj.w, gj.w, 0.0) + between;
  let upto = vec4f(gi.x, gi.x + gi.y, (gi.x + gi.y) + gi.z, total(gi));
  return mat4x4f(exp(after.x + upto), exp(after.y + upto), exp(after.z + upto), exp(after.w + upto));
}
