// y[t] = argmax_n cos(x[t], codebook[n]), the first of several: one invocation per row
// The length of x[t] does not matter to the argmax and is left out.
// needs: lib/step, lib/rows; const ROWS, SIZE, WIDTH, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> codebook: array<CODEBOOK>;
@group(0) @binding(2) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let t = flat_group(group) * WORKGROUP + lane;
  if (t >= row_count()) { return; }
  var best = 0u;
  var most = -3.4e38;
  for (var n = 0u; n < SIZE; n++) {
    var product = 0.0;
    var square = 0.0;
    for (var d = 0u; d < WIDTH; d++) {
      let c = codebook[n * WIDTH + d];
      product += x[t * WIDTH + d] * c;
      square += c * c;
    }
    let cosine = product / max(sqrt(square), 1e-12);
    if (cosine > most) {
      most = cosine;
      best = n;
    }
  }
  y[t] = best;
}
