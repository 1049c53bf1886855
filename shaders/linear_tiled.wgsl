// The formula of linear.wgsl, for devices with fast workgroup memory and no matrix units. A workgroup makes BM x BN
// sums, an invocation RM x RN of them: blocks of four rows and four columns, s00 to s11 at most, as far apart as all of
// a tile's threads are wide. x and w pass in tiles of BK terms, quads of rows of both side by side for each k; the next
// tile waits in registers. Unrolled by hand, so that no compiler leaves sums in memory.
// Where x is f16, RUN terms (a divisor of BK) are added up in f16, then those sums in f32; RUN = 0: all in f32.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/blocks, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES, KS, BM, BN, BK, RM, RN, RUN, BLOCK = BN, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const GROUP_X = BN / RN;
const GROUP_Y = BM / RM;
const WORKGROUP = GROUP_X * GROUP_Y;
const QUADS = (BM + BN) / 4;
const PIECES = QUADS * BK / 8; // of four rows and eight terms
const MINE = (PIECES + WORKGROUP - 1) / WORKGROUP; // that an invocation carries, at most 2
const WIDTH = QUADS + 1; // odd, so that the terms of a piece lie in different banks
const STRETCH = select(RUN, BK, RUN == 0);

struct Eight { lo: Quad, hi: Quad }
struct Piece { a: Eight, b: Eight, c: Eight, d: Eight } // of four rows
var<workgroup> tile: array<Quad, BK * WIDTH>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let rows = row_count();
  let tx = thread % GROUP_X;
  let ty = thread / GROUP_X;

  var s00: Block; var s01: Block;
  var s10: Block; var s11: Block;
  let begin = group.z * KS;
  let end = min(begin + KS, IN);
  var next = load(group, rows, thread, begin);
  var then: Piece;
  if (MINE > 1) { then = load(group, rows, thread + WORKGROUP, begin); }
  for (var k0 = begin; k0 < end; k0 += BK) {
    put(thread, next);
    if (MINE > 1) { put(thread + WORKGROUP, then); }
    workgroupBarrier();
    if (k0 + BK < end) {
      next = load(group, rows, thread, k0 + BK);
      if (MINE > 1) { then = load(group, rows, thread + WORKGROUP, k0 + BK); }
    }
    for (var k1 = 0u; k1 < BK; k1 += STRETCH) {
      var r00 = Run(); var r01 = Run();
      var r10 = Run(); var r11 = Run();
      for (var k = k1; k < k1 + STRETCH; k++) {
        let at = k * WIDTH;
        let a0 = tile[at + ty];
        let b0 = tile[at + BM / 4 + tx];
        var a1: Quad;
        var b1: Quad;
        if (RM > 4) { a1 = tile[at + GROUP_Y + ty]; }
        if (RN > 4) { b1 = tile[at + BM / 4 + GROUP_X + tx]; }
        if (RUN == 0) {
          s00 = add_product(s00, a0, b0);
          if (RN > 4) { s01 = add_product(s01, a0, b1); }
          if (RM > 4) { s10 = add_product(s10, a1, b0); }
          if (RM > 4 && RN > 4) { s11 = add_product(s11, a1, b1); }
        } else {
          r00 = run_product(r00, a0, b0);
          if (RN > 4) { r01 = run_product(r01, a0, b1); }
          if (RM > 4) { r10 = run_product(r10, a1, b0); }
          if (RM > 4 && RN > 4) { r11 = run_product(r11, a1, b1); }
        }
      }
      if (RUN > 0) {
        s00 = add_run(s00, r00);
        if (RN > 4) { s01 = add_run(s01, r01); }
        if (RM > 4) { s10 = add_run(s10, r10); }
        if (RM > 4 && RN > 4) { s11 = add_run(s11, r11); }
      }
    }
    workgroupBarrier();
  }

  let place = vec2u(group.y * BM + ty * 4, group.x * BN + tx * 4);
  finish_blocks(place, rows, group.z * COLUMNS, s00, s01);
  if (RM > 4) { finish_blocks(place + vec2u(GROUP_Y * 4, 0), rows, group.z * COLUMNS, s10, s11); }
}

// Piece i of the tiles that begin at term k: rows of x, then rows of w. Past the last one lies the last one again.
fn load(group: vec3u, rows: u32, i: u32, k: u32) -> Piece {
  let first = min(i, PIECES - 1u) / (BK / 8) * 4;
  let term = k + i % (BK / 8) * 8;
  if (first < BM) {
    let r = min(vec4u(group.y * BM + first) + vec4u(0, 1, 2, 3), vec4u(rows - 1u));
    return Piece(load_x(r.x, term), load_x(r.y, term), load_x(r.z, term), load_x(r.w, term));
  }
  let c = group.x * BN + first - BM;
  return Piece(load_w(c, term), load_w(c + 1, term), load_w(c + 2, term), load_w(c + 3, term));
}

fn load_x(row: u32, term: u32) -> Eight {
  let at = (row * IN + term) / 4;
  return Eight(x[at], x[at + 1u]);
}

fn load_w(column: u32, term: u32) -> Eight {
  let eight = weight8(weight_row(column), term);
  return Eight(Quad(eight.lo), Quad(eight.hi));
}

fn put(i: u32, p: Piece) {
  if (i >= PIECES) { return; }
  let at = i % (BK / 8) * 8 * WIDTH + i / (BK / 8);
  tile[at] = Quad(p.a.lo.x, p.b.lo.x, p.c.lo.x, p.d.lo.x);
  tile[at + WIDTH] = Quad(p.a.lo.y, p.b.lo.y, p.c.lo.y, p.d.lo.y);
  tile[at + 2 * WIDTH] = Quad(p.a.lo.z, p.b.lo.z, p.c.lo.z, p.d.lo.z);
  tile[at + 3 * WIDTH] = Quad(p.a.lo.w, p.b.lo.w, p.c.lo.w, p.d.lo.w);
  tile[at + 4 * WIDTH] = Quad(p.a.hi.x, p.b.hi.x, p.c.hi.x, p.d.hi.x);
  tile[at + 5 * WIDTH] = Quad(p.a.hi.y, p.b.hi.y, p.c.hi.y, p.d.hi.y);
  tile[at + 6 * WIDTH] = Quad(p.a.hi.z, p.b.hi.z, p.c.hi.z, p.d.hi.z);
  tile[at + 7 * WIDTH] = Quad(p.a.hi.w, p.b.hi.w, p.c.hi.w, p.d.hi.w);
}
