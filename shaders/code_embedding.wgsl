// y[t, :] = sum over k of w[k ROWS_OF_BOOK + grid[columns[t], k], :], where token t has a column; other rows stay as
// they are.    One invocation per eight values.
// needs: lib/step, lib/weight_*; alias W; const IN, BOOKS, ROWS_OF_BOOK, NONE, WORKGROUP

@group(0) @binding(0) var<storage, read> grid: array<u32>;
@group(0) @binding(1) var<storage, read> columns: array<u32>;
@group(0) @binding(2) var<storage, read> w: array<Words>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4f>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let t = at / (IN / 8u);
  if (t >= step.tokens) { return; }
  let column = columns[t];
  if (column == NONE) { return; }
  var lo = vec4f();
  var hi = vec4f();
  for (var k = 0u; k < BOOKS; k++) {
    let code = min(grid[column * BOOKS + k], ROWS_OF_BOOK - 1u);
    let values = weight8(k * ROWS_OF_BOOK + code, at % (IN / 8u) * 8u);
    lo += values.lo;
    hi += values.hi;
  }
  y[at * 2u] = lo;
  y[at * 2u + 1u] = hi;
}
