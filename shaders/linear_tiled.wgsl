// The formula of linear.wgsl, for devices with fast workgroup memory and no matrix units. A workgroup makes BM x BN
// sums, an invocation RM x RN of them: blocks of four rows and four columns. x and w pass in tiles of 16 terms, as f32
// whatever they are stored as: of each term quads of rows of x, then of w. The next tile waits in registers as stored.
// Unrolled by hand, so that no compiler leaves sums in memory or waits for each term (bench/attempts/linear_tiled.md).
// needs: lib/step, lib/rows, lib/operand_*, lib/columns, lib/weight4_*, lib/blocks, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES, KS, BM, BN, RM, RN, MORTON, BLOCK = BN, BK = 16, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const GROUP_X = BN / RN;
const WORKGROUP = GROUP_X * BM / RM;
const ROW = IN / 4; // from a row of w to the next
const WIDTH = (BM + BN) / 4 + 1; // odd, so that the terms of a piece lie in different banks
const A1 = select(0, 4, RM > 4); // from the first block of rows to the second
const B1 = select(0, GROUP_X, RN > 4); // of columns
// Bits of an invocation's number that count rows and columns: line by line or, where MORTON = 1, alternating. Then
// neighbours read less of the tile at once, but some compilers spend more registers.
const Y0 = select(8, 2, MORTON == 1);
const Y1 = select(16, 8, MORTON == 1);
const X1 = select(2, 4, MORTON == 1);
const X2 = select(4, 16, MORTON == 1);

var<workgroup> tile: array<vec4f, BK * WIDTH>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let rows = product_rows();
  // Quads of rows and of columns of the first block; 32 neighbours take 4 x 8 of them. Tint sees through such
  // arithmetic, unlike select() of its results, and clamps no index into the tile.
  let lane = thread % 32;
  let warp = thread / 32;
  let ty = lane / Y0 % 2 + lane / Y1 % 2 * 2 + warp / (GROUP_X / 8) * RM;
  let tx = lane % 2 + lane / X1 % 2 * 2 + lane / X2 % 2 * 4 + warp % (GROUP_X / 8) * 8;
  let place = vec2u(group.y * BM + ty * 4, group.x * BN + tx * 4);

  // A piece of a tile is four rows of four terms; an invocation carries at most one of x and one of w.
  // Rows past the last are read too: nobody stores their sums.
  let w_thread = (thread + WORKGROUP - BM % WORKGROUP) % WORKGROUP;
  let has_x = BM == WORKGROUP || thread < BM;
  let has_w = BN == WORKGROUP || w_thread < BN;
  let x_row = group.y * BM + piece_row(thread);
  let x_put = piece_term(thread) * WIDTH + piece_row(thread) / 4;
  let w_put = piece_term(w_thread) * WIDTH + piece_row(w_thread) / 4 + BM / 4;
  let begin = group.z * KS;
  let tiles = (min(begin + KS, IN) - begin) / BK;

  var s: Sums;
  var x_next: Rows;
  var w_next: Columns;
  var x_at = operand_at(x_row, begin + piece_term(thread), 4u);
  var w_at = weight_row(group.x * BN + piece_row(w_thread)) * ROW + (begin + piece_term(w_thread)) / 4;
  if (has_x) { x_next = load_x(x_at); }
  if (has_w) { w_next = load_w(w_at); }
  for (var i = 0u; i < tiles; i++) {
    if (has_x) { put(x_put, vec4f(x_next.a), vec4f(x_next.b), vec4f(x_next.c), vec4f(x_next.d)); }
    if (has_w) { put(w_put, weight4(w_next.a), weight4(w_next.b), weight4(w_next.c), weight4(w_next.d)); }
    workgroupBarrier();
    x_at = operand_next(x_at, x_row, begin + (i + 1) * BK + piece_term(thread), 4u);
    w_at += BK / 4;
    if (i + 1u < tiles) {
      if (has_x) { x_next = load_x(x_at); }
      if (has_w) { w_next = load_w(w_at); }
    }
    let a = ty;
    let b = BM / 4 + tx;
    s = add(s, tile[a + 0 * WIDTH], tile[a + 0 * WIDTH + A1], tile[b + 0 * WIDTH], tile[b + 0 * WIDTH + B1]);
    s = add(s, tile[a + 1 * WIDTH], tile[a + 1 * WIDTH + A1], tile[b + 1 * WIDTH], tile[b + 1 * WIDTH + B1]);
    s = add(s, tile[a + 2 * WIDTH], tile[a + 2 * WIDTH + A1], tile[b + 2 * WIDTH], tile[b + 2 * WIDTH + B1]);
    s = add(s, tile[a + 3 * WIDTH], tile[a + 3 * WIDTH + A1], tile[b + 3 * WIDTH], tile[b + 3 * WIDTH + B1]);
    s = add(s, tile[a + 4 * WIDTH], tile[a + 4 * WIDTH + A1], tile[b + 4 * WIDTH], tile[b + 4 * WIDTH + B1]);
    s = add(s, tile[a + 5 * WIDTH], tile[a + 5 * WIDTH + A1], tile[b + 5 * WIDTH], tile[b + 5 * WIDTH + B1]);
    s = add(s, tile[a + 6 * WIDTH], tile[a + 6 * WIDTH + A1], tile[b + 6 * WIDTH], tile[b + 6 * WIDTH + B1]);
    s = add(s, tile[a + 7 * WIDTH], tile[a + 7 * WIDTH + A1], tile[b + 7 * WIDTH], tile[b + 7 * WIDTH + B1]);
    s = add(s, tile[a + 8 * WIDTH], tile[a + 8 * WIDTH + A1], tile[b + 8 * WIDTH], tile[b + 8 * WIDTH + B1]);
    s = add(s, tile[a + 9 * WIDTH], tile[a + 9 * WIDTH + A1], tile[b + 9 * WIDTH], tile[b + 9 * WIDTH + B1]);
    s = add(s, tile[a + 10 * WIDTH], tile[a + 10 * WIDTH + A1], tile[b + 10 * WIDTH], tile[b + 10 * WIDTH + B1]);
    s = add(s, tile[a + 11 * WIDTH], tile[a + 11 * WIDTH + A1], tile[b + 11 * WIDTH], tile[b + 11 * WIDTH + B1]);
    s = add(s, tile[a + 12 * WIDTH], tile[a + 12 * WIDTH + A1], tile[b + 12 * WIDTH], tile[b + 12 * WIDTH + B1]);
    s = add(s, tile[a + 13 * WIDTH], tile[a + 13 * WIDTH + A1], tile[b + 13 * WIDTH], tile[b + 13 * WIDTH + B1]);
    s = add(s, tile[a + 14 * WIDTH], tile[a + 14 * WIDTH + A1], tile[b + 14 * WIDTH], tile[b + 14 * WIDTH + B1]);
    s = add(s, tile[a + 15 * WIDTH], tile[a + 15 * WIDTH + A1], tile[b + 15 * WIDTH], tile[b + 15 * WIDTH + B1]);
    workgroupBarrier();
  }

  finish_blocks(place, rows, group.z * COLUMNS, s.s00, s.s01);
  if (RM > 4) { finish_blocks(place + vec2u(4 * A1, 0), rows, group.z * COLUMNS, s.s10, s.s11); }
}

// The first row and the first term of the i-th piece. Eight neighbours share four quads of rows and two of terms: they
// write to all banks, and 16 read whole sectors.
fn piece_row(i: u32) -> u32 { return (i / 2 % 4 + i / 16 * 4) * 4; }
fn piece_term(i: u32) -> u32 { return (i % 2 + i / 8 % 2 * 2) * 4; }

struct Rows { a: vec4<X>, b: vec4<X>, c: vec4<X>, d: vec4<X> }
struct Columns { a: Words, b: Words, c: Words, d: Words }
fn load_x(at: u32) -> Rows {
  return Rows(x_quad(at), x_quad(at + 2 * X_ROW), x_quad(at + 4 * X_ROW), x_quad(at + 6 * X_ROW));
}
fn x_quad(at: u32) -> vec4<X> {
  if (!operand_has(at, 4u)) { return vec4<X>(); }
  return x[at];
}
fn load_w(at: u32) -> Columns { return Columns(w[at], w[at + ROW], w[at + 2 * ROW], w[at + 3 * ROW]); }

fn put(to: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let at = min(to, (BK - 4) * WIDTH + WIDTH - 2); // which Tint sees to be within the tile
  tile[at] = vec4f(a.x, b.x, c.x, d.x);
  tile[at + WIDTH] = vec4f(a.y, b.y, c.y, d.y);
  tile[at + 2 * WIDTH] = vec4f(a.z, b.z, c.z, d.z);
  tile[at + 3 * WIDTH] = vec4f(a.w, b.w, c.w, d.w);
}
