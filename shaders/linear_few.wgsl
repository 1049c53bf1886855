// The formula of linear.wgsl for one or two rows, as when decoding: all WORKGROUP lanes share the sums of PER columns,
// each lane taking eight terms of every 8 WORKGROUP, so that a weight is read once, and the terms of x once for PER
// columns. With SwiGLU a gate and its up count as two. Operands are a piece: rows of x, or their layer norm. Sums are
// named, since GPU compilers put what a variable indexes into memory: columns 0 to 3 of both rows, then 4 to 7.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/operand_*, lib/sum_shared, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES, BLOCK = PER, PER = 4 or 8, WORKGROUP, SLICES = WORKGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

alias Sum = mat4x4f;
struct Eight { lo: vec4f, hi: vec4f }

fn product(a: Eight, b: Weight8) -> f32 { return dot(a.lo, b.lo) + dot(a.hi, b.hi); }

fn store(row: u32, first: u32, n: u32, sum: f32, up: f32) {
  let to = y_column(first + n);
  if (to < COLUMNS) { finish(row, to, vec2f(sum, up)); }
}

// A lane per row and column, after the sums are known.
fn finish_column(row: u32, first: u32, n: u32, lo: vec4f, hi: vec4f) {
  let quad = select(lo, hi, n > 3u);
  if (HALVES == 1) {
    store(row, first, n, quad[n % 4u], 0.0);
  } else if (n < PER / 2u) {
    if (PER == 4) { store(row, first, n, lo[n], lo[n + 2u]); } else { store(row, first, n, lo[n], hi[n]); }
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let rows = row_count();
  let row = group.y * 2u;
  let r = vec2u(row, min(row + 1u, rows - 1u));
  let first = group.x * PER;
  let operands = operands_of(r, lane);
  let w0 = weight_row(first);
  let w1 = weight_row(first + 1u);
  let w2 = weight_row(first + 2u);
  let w3 = weight_row(first + 3u);
  var sums = Sum(); // columns 0 to 3 of row 0, of row 1, columns 4 to 7 of row 0, of row 1
  for (var k = 8u * lane; k < IN; k += 8u * WORKGROUP) {
    let a = operand(operands, r, 0u, k);
    let b = operand(operands, r, 1u, k);
    let c0 = weight8(w0, k);
    let c1 = weight8(w1, k);
    let c2 = weight8(w2, k);
    let c3 = weight8(w3, k);
    sums[0] += vec4f(product(a, c0), product(a, c1), product(a, c2), product(a, c3));
    sums[1] += vec4f(product(b, c0), product(b, c1), product(b, c2), product(b, c3));
    if (PER > 4) {
      let c4 = weight8(weight_row(first + 4u), k);
      let c5 = weight8(weight_row(first + 5u), k);
      let c6 = weight8(weight_row(first + 6u), k);
      let c7 = weight8(weight_row(first + 7u), k);
      sums[2] += vec4f(product(a, c4), product(a, c5), product(a, c6), product(a, c7));
      sums[3] += vec4f(product(b, c4), product(b, c5), product(b, c6), product(b, c7));
    }
  }
  sums = slices_sum(sums, lane);
  if (lane >= 2u * PER || row + lane / PER >= rows) { return; }
  if (lane < PER) {
    finish_column(row, first, lane, sums[0], sums[2]);
  } else {
    finish_column(row + 1u, first, lane - PER, sums[1], sums[3]);
  }
}
