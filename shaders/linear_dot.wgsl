// The formula of linear.wgsl for few rows, as in a readout: all WORKGROUP lanes share the sum of one column, each taking
// eight terms of every 8 WORKGROUP, for four rows at once, so that a weight is read once. z cuts the sum into parts.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/sum_shared, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES = 1, KS, BLOCK = 1, WORKGROUP, SLICES = WORKGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

alias Sum = vec4f; // of a row each

fn product(row: u32, k: u32, b: Weight8) -> f32 {
  let at = (row * IN + k) / 4u;
  return dot(vec4f(x[at]), b.lo) + dot(vec4f(x[at + 1u]), b.hi);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let rows = row_count();
  let row = group.y * 4u;
  let r = min(row + vec4u(0, 1, 2, 3), vec4u(rows - 1u));
  let end = min((group.z + 1u) * KS, IN);
  var sums: Sum;
  for (var k = group.z * KS + 8u * lane; k < end; k += 8u * WORKGROUP) {
    let b = weight8(weight_row(group.x), k);
    sums += Sum(product(r.x, k, b), product(r.y, k, b), product(r.z, k, b), product(r.w, k, b));
  }
  sums = slices_sum(sums, lane);
  if (lane < 4u && row + lane < rows) { finish(row + lane, group.z * COLUMNS + group.x, vec2f(sums[lane])); }
}
