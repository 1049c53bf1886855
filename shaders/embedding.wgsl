// y[t, :] = row ids[t] of the table, or of what embedded() finds instead        one invocation per eight columns
// needs: lib/step, lib/rows, lib/weight_*, lib/embedded_*; alias W; const IN, ROWS, WORKGROUP, Y_BINDING

@group(0) @binding(0) var<storage, read> ids: array<u32>;
@group(0) @binding(1) var<storage, read> w: array<W>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let t = at / (IN / 8u);
  if (t >= row_count()) { return; }
  let values = embedded(ids[t], at % (IN / 8u) * 8u);
  y[at * 2u] = values.lo;
  y[at * 2u + 1u] = values.hi;
}
