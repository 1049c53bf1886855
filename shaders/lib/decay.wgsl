// The decays between the 64 tokens of a chunk, from the logs g of each token's own, four tokens to a vec4. Each exponent
// is added up by itself: as a difference of prefix sums, small decays would drown in large ones.
var<workgroup> g: array<vec4f, 16>;

fn total(v: vec4f) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// exp(g[c + 1] + .. + g[r]) for rows r = 4 i .. 4 i + 3, a column of the matrix for each c = 4 j .. 4 j + 3; 0 for c > r.
fn decay_between(i: u32, j: u32) -> mat4x4f {
  var d = mat4x4f();
  if (j > i) { return d; }
  let gi = g[i];
  let gj = g[j];
  if (i == j) {
    for (var m = 0u; m < 4u; m++) {
      var sum = 0.0;
      for (var r = m; r < 4u; r++) {
        if (r > m) { sum += gi[r]; }
        d[m][r] = exp(sum);
      }
    }
    return d;
  }
  var between = 0.0;
  for (var q = j + 1u; q < i; q++) { between += total(g[q]); }
  let after = vec4f((gj.y + gj.z) + gj.w, gj.z + gj.w, gj.w, 0.0);
  let upto = vec4f(gi.x, gi.x + gi.y, (gi.x + gi.y) + gi.z, total(gi));
  for (var m = 0u; m < 4u; m++) { d[m] = exp(after[m] + between + upto); }
  return d;
}
