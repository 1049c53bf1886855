// The formula of linear.wgsl for one or two rows, as when decoding: LANES lanes, a team, share the sums of PER columns,
// each lane taking TERMS terms of every TERMS LANES, one load of its weights, so that a weight is read once, and the
// terms of x once for PER columns. With SwiGLU a gate and its up count as two. Operands are a piece: rows of x, or their
// layer norm. The number of turns is a constant, so that compilers read ahead; sums are named, since they put what a
// variable indexes into memory.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/operand_*, lib/finish_*; alias X, W, Y; const IN, OUT, ROWS,
//   HALVES, BLOCK = PER, PER = 4 or 8, LANES, at least 4 PER, WORKGROUP, SPACE >= PER / 2 WORKGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const TEAMS = WORKGROUP / LANES;
const TURNS = (IN + TERMS * LANES - 1) / (TERMS * LANES);
const VECS = PER / 2u; // of a team's sums: columns 0 to 3 of row 0, of row 1, columns 4 to 7 of row 0, of row 1

var<workgroup> space: array<vec4f, SPACE>; // operands, then the sums of all lanes
var<workgroup> sums: array<vec4f, WORKGROUP + 32>;

struct Eight { lo: vec4f, hi: vec4f }
fn product(a: Eight, w: Packed, eighth: u32) -> f32 {
  let b = unpacked(w, eighth);
  return (dot(a.lo, b.lo) + dot(a.hi, b.hi)) * scale_of(w);
}
fn products(a: Eight, w0: Packed, w1: Packed, w2: Packed, w3: Packed, eighth: u32) -> vec4f {
  return vec4f(product(a, w0, eighth), product(a, w1, eighth), product(a, w2, eighth), product(a, w3, eighth));
}

// Vec4 n of a team's sums, which eight lanes have added up.
fn sum_of(n: u32) -> vec4f {
  var all = vec4f();
  for (var i = 0u; i < 8u; i++) { all += sums[8u * n + i]; }
  return all;
}

fn store(row: u32, column: u32, sum: f32, up: f32) {
  let to = y_column(column);
  if (to < COLUMNS) { finish(row, to, vec2f(sum, up)); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let rows = row_count();
  let row = group.y * 2u;
  let r = vec2u(row, min(row + 1u, rows - 1u));
  let own = lane % LANES;
  let block = group.x * TEAMS;
  let first = (block + lane / LANES) * PER;
  let w0 = weight_row(first);
  let w1 = weight_row(first + 1u);
  let w2 = weight_row(first + 2u);
  let w3 = weight_row(first + 3u);
  let operands = operands_of(r, lane);
  var s0 = vec4f();
  var s1 = vec4f();
  var s2 = vec4f();
  var s3 = vec4f();
  for (var i = 0u; i < TURNS; i++) {
    let k = TERMS * (own + i * LANES);
    if (IN % (TERMS * LANES) != 0 && k >= IN) { break; }
    let c0 = packed(w0, k);
    let c1 = packed(w1, k);
    let c2 = packed(w2, k);
    let c3 = packed(w3, k);
    var c4: Packed;
    var c5: Packed;
    var c6: Packed;
    var c7: Packed;
    if (PER > 4) {
      c4 = packed(weight_row(first + 4u), k);
      c5 = packed(weight_row(first + 5u), k);
      c6 = packed(weight_row(first + 6u), k);
      c7 = packed(weight_row(first + 7u), k);
    }
    for (var e = 0u; e < TERMS / 8; e++) {
      let a = operand(operands, r, 0u, k + 8u * e);
      let b = operand(operands, r, 1u, k + 8u * e);
      s0 += products(a, c0, c1, c2, c3, e);
      s1 += products(b, c0, c1, c2, c3, e);
      if (PER > 4) {
        s2 += products(a, c4, c5, c6, c7, e);
        s3 += products(b, c4, c5, c6, c7, e);
      }
    }
  }

  if (STAGED) { workgroupBarrier(); } // until nobody needs the operands
  space[lane] = s0;
  space[WORKGROUP + lane] = s1;
  if (PER > 4) {
    space[2u * WORKGROUP + lane] = s2;
    space[3u * WORKGROUP + lane] = s3;
  }
  workgroupBarrier();
  let n = lane / 8u; // of a team's vec4, and the team
  if (n < TEAMS * VECS) {
    var part = vec4f();
    let at = n % VECS * WORKGROUP + n / VECS * LANES + lane % 8u;
    for (var i = 0u; i < LANES / 8; i++) { part += space[at + 8u * i]; }
    sums[lane] = part;
  }
  workgroupBarrier();
  let v = lane % VECS;
  let to = row + v % 2u;
  if (lane >= TEAMS * VECS || to >= rows) { return; }
  let s = sum_of(lane);
  let column = (block + lane / VECS) * PER + v / 2u * 4u;
  if (HALVES == 1) {
    store(to, column, s.x, 0.0);
    store(to, column + 1u, s.y, 0.0);
    store(to, column + 2u, s.z, 0.0);
    store(to, column + 3u, s.w, 0.0);
  } else if (PER == 4) {
    store(to, column, s.x, s.z);
    store(to, column + 1u, s.y, s.w);
  } else if (v < 2u) {
    let up = sum_of(lane + 2u);
    store(to, column, s.x, up.x);
    store(to, column + 1u, s.y, up.y);
    store(to, column + 2u, s.z, up.z);
    store(to, column + 3u, s.w, up.w);
  }
}
