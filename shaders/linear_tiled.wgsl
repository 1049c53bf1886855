// The formula of linear.wgsl, for devices with fast workgroup memory and no matrix units. A workgroup makes BM x BN
// sums, an invocation RM x RN of them: quads of rows and of columns, a whole tile's width of threads apart. x and w
// pass in tiles of BK terms, quads of rows of both side by side for each k; the next tile waits in registers.
// Where Operand is f16, RUN terms (a divisor of BK) are added up in f16, then those sums in f32; RUN = 0: all in f32.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES, KS, BM, BN, BK, RM, RN, RUN, BLOCK = BN, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const GROUP_X = BN / RN;
const GROUP_Y = BM / RM;
const WORKGROUP = GROUP_X * GROUP_Y;
const QUADS = (BM + BN) / 4;
const PIECES = QUADS * BK / 8; // of four rows and eight terms
const MINE = (PIECES + WORKGROUP - 1) / WORKGROUP;
const WIDTH = QUADS + 1; // odd, so that the terms of a piece lie in different banks
const STRETCH = select(RUN, BK, RUN == 0);

alias Quad = vec4<X>;
struct Eight { lo: Quad, hi: Quad }
alias Piece = array<Eight, 4>;
var<workgroup> tile: array<Quad, BK * WIDTH>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let rows = row_count();
  let tx = thread % GROUP_X;
  let ty = thread / GROUP_X;

  var sum: array<array<vec4f, RN / 4>, RM>;
  var next: array<Piece, MINE>;
  let end = min((group.z + 1u) * KS, IN);
  for (var i = 0u; i < MINE; i++) { next[i] = load(group, rows, thread + i * WORKGROUP, group.z * KS); }
  for (var k0 = group.z * KS; k0 < end; k0 += BK) {
    for (var i = 0u; i < MINE; i++) { put(thread + i * WORKGROUP, next[i]); }
    workgroupBarrier();
    if (k0 + BK < end) {
      for (var i = 0u; i < MINE; i++) { next[i] = load(group, rows, thread + i * WORKGROUP, k0 + BK); }
    }
    for (var k1 = 0u; k1 < BK; k1 += STRETCH) {
      var run = array<array<Quad, RN / 4>, RM>();
      for (var k = k1; k < k1 + STRETCH; k++) {
        var b: array<Quad, RN / 4>;
        for (var n = 0u; n < RN / 4; n++) { b[n] = tile[k * WIDTH + BM / 4 + n * GROUP_X + tx]; }
        for (var q = 0u; q < RM / 4; q++) {
          let a = tile[k * WIDTH + q * GROUP_Y + ty];
          for (var m = 0u; m < 4; m++) {
            for (var n = 0u; n < RN / 4; n++) {
              if (RUN == 0) { sum[q * 4 + m][n] = fma(vec4f(f32(a[m])), vec4f(b[n]), sum[q * 4 + m][n]); }
              else { run[q * 4 + m][n] = fma(Quad(a[m]), b[n], run[q * 4 + m][n]); }
            }
          }
        }
      }
      if (RUN > 0) {
        for (var m = 0u; m < RM; m++) {
          for (var n = 0u; n < RN / 4; n++) { sum[m][n] += vec4f(run[m][n]); }
        }
      }
    }
    workgroupBarrier();
  }

  for (var m = 0u; m < RM; m++) {
    let row = group.y * BM + (m / 4 * GROUP_Y + ty) * 4 + m % 4;
    for (var n = 0u; n < RN / HALVES; n++) {
      let column = y_column(group.x * BN + (n / 4 * GROUP_X + tx) * 4 + n % 4);
      let sums = vec2f(sum[m][n / 4][n % 4], sum[m][(n + RN - RN / HALVES) / 4][n % 4]);
      if (row < rows && column < COLUMNS) { finish(row, group.z * COLUMNS + column, sums); }
    }
  }
}

// Piece i of the tiles that begin at term k: rows of x, then rows of w. Past the last one lies the last one again.
fn load(group: vec3u, rows: u32, i: u32, k: u32) -> Piece {
  let first = min(i, PIECES - 1u) / (BK / 8) * 4;
  let term = k + i % (BK / 8) * 8;
  var piece: Piece;
  for (var r = 0u; r < 4; r++) {
    if (first < BM) {
      let at = (min(group.y * BM + first + r, rows - 1u) * IN + term) / 4;
      piece[r] = Eight(x[at], x[at + 1u]);
    } else {
      let eight = weight8(weight_row(group.x * BN + first - BM + r), term);
      piece[r] = Eight(Quad(eight.lo), Quad(eight.hi));
    }
  }
  return piece;
}

fn put(i: u32, p: Piece) {
  if (i >= PIECES) { return; }
  let at = i % (BK / 8) * 8 * WIDTH + i / (BK / 8);
  for (var k = 0u; k < 4; k++) {
    tile[at + k * WIDTH] = Quad(p[0].lo[k], p[1].lo[k], p[2].lo[k], p[3].lo[k]);
    tile[at + (k + 4) * WIDTH] = Quad(p[0].hi[k], p[1].hi[k], p[2].hi[k], p[3].hi[k]);
  }
}
