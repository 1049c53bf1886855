// y[t, h, :] = x[t, h, :] / sqrt(mean(x[t, h, :]^2) + EPS) * w * silu(z[t, h, :])        per head h of width D
// z is the columns from Z_COLUMN on of rows of Z_WIDTH; D is a multiple of 4. SLICES neighbours share a head and write
// every SLICES-th vector; how they come by its sum is a piece.
// needs: lib/step, lib/rows, lib/activation, lib/sum_alone or lib/sum_shared; alias X, Z, Y;
//   const HEADS, D, EPS, Z_WIDTH, Z_COLUMN, ROWS, SLICES, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> z: array<Z>;
@group(0) @binding(2) var<storage, read> w: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<Y>>;

alias Sum = f32;

// Four columns from the i-th on, which need not be a multiple of 4.
fn z_at(i: u32) -> vec4f { return vec4f(vec4<Z>(z[i], z[i + 1u], z[i + 2u], z[i + 3u])); }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let slice = at % SLICES;
  let head = min(at / SLICES, row_count() * HEADS - 1u); // of all tokens; whoever has none still meets the others
  let t = head / HEADS;
  let width = D / 4u;
  let start = head * width;
  let gate = t * Z_WIDTH + Z_COLUMN + head % HEADS * D;
  let own = min(slice, width - 1u); // asked for before the sum, so that nobody waits twice
  let own_x = vec4f(x[start + own]);
  let own_w = w[own];
  let own_z = z_at(gate + 4u * own);
  var squares = vec4f();
  for (var i = first_of(slice); i < width; i += STRIDE) {
    let v = vec4f(x[start + i]);
    squares += v * v;
  }
  let scale = inverseSqrt(slices_sum(dot(squares, vec4f(1.0)), lane) / f32(D) + EPS);
  if (head != at / SLICES) { return; }
  for (var i = slice; i < width; i += SLICES) {
    var v = own_x * scale * own_w * silu4(own_z);
    if (i != slice) { v = vec4f(x[start + i]) * scale * w[i] * silu4(z_at(gate + 4u * i)); }
    y[start + i] = vec4<Y>(v);
  }
}
