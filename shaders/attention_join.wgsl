// y = Σ p o / Σ p w over the SPLITS parts of a row's attention: o a sum of values, w of weights, p = exp(top - greatest
// top). A workgroup for each head of a token, four columns to a lane.
// needs: lib/step; alias Y; const HEADS, D, SPLITS, WORKGROUP = D / 4

@group(0) @binding(0) var<storage, read> x: array<vec4f>; // [T, HEADS, SPLITS, D + 4]
@group(0) @binding(1) var<storage, read_write> y: array<vec4<Y>>;

const WIDE = WORKGROUP + 1;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let head = group.y * HEADS + group.x;
  let first = head * SPLITS * WIDE;
  var top = x[first + WORKGROUP].y;
  for (var i = 1u; i < SPLITS; i++) { top = max(top, x[first + i * WIDE + WORKGROUP].y); }
  var weights = 0.0;
  var sum = vec4f();
  for (var i = 0u; i < SPLITS; i++) {
    let part = x[first + i * WIDE + WORKGROUP];
    let p = exp(part.y - top);
    weights += p * part.x;
    sum += p * x[first + i * WIDE + lane];
  }
  y[head * WORKGROUP + lane] = vec4<Y>(sum / weights);
}
