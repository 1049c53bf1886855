// embedded(): eight columns of a row of the table, or from id FIRST on of a row of `also`.
// needs: lib/weight_*; const IN, FIRST
@group(0) @binding(2) var<storage, read> also: array<vec4f>;

fn embedded(id: u32, k: u32) -> Weight8 {
  if (id < FIRST) { return weight8(id, k); }
  let at = ((id - FIRST) * IN + k) / 4u;
  return Weight8(also[at], also[at + 1u]);
}
