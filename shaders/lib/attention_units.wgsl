// What attention_matrix has in workgroup memory, and how fragments of matrix units get there and back. An index n or k
// is a literal, so that a test for a fragment that there is not costs nothing. Tint wraps an access in a branch unless
// it sees that it stays within the array: hence min().
// needs: the constants of attention_matrix
alias Left = subgroup_matrix_left<f16, FK, FM>; // columns, rows
alias Right = subgroup_matrix_right<f16, FN, FK>;
alias Sums = subgroup_matrix_result<f32, FN, FM>;

const RM = ROWS / FM; // fragments of o in each subgroup: RM x RN, at most 4 x 2
const RN = D / SUBGROUPS / FN;
const SCORES = RM * KEYS / FN; // fragments of scores, one in each of the first subgroups
const FRAGMENT = FM * FN / 4;

// Widths of rows in vec4u; one more than they hold, so that rows begin in different banks.
const WIDTH = D / 8 + 1;
const S_WIDTH = KEYS / 4 + 1;
const P_WIDTH = KEYS / 8 + 1;
const O_WIDTH = D / 4 + 1;
const TILE = max(max(2 * KEYS, ROWS) * WIDTH, FM * O_WIDTH);
const P_SIZE = max(ROWS * P_WIDTH, ROWS * FN / 4);

var<workgroup> tile: array<vec4u, TILE>; // KEYS rows of K, then of V, in halves; first q, in the end rows of o
var<workgroup> scores: array<vec4u, max(ROWS * S_WIDTH, SUBGROUPS * FRAGMENT)>; // in floats
var<workgroup> p: array<vec4u, P_SIZE>; // weights in halves; in the end the sums of rows

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn query_at(row: u32, k: u32) -> Left {
  var a: Left;
  if (k * FK < D) {
    a = subgroupMatrixLoad<Left, row_major>(&tile, min(row, ROWS - FM) * WIDTH + min(k * FK, D - FK) / 8, WIDTH);
  }
  return a;
}

// x with the products of the k-th columns of q and of the keys.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn score(k: u32, q: Left, key: u32, x: Sums) -> Sums {
  var sums = x;
  if (k * FK < D) {
    let b = subgroupMatrixLoad<Right, col_major>(&tile, min(key, KEYS - FN) * WIDTH + min(k * FK, D - FK) / 8, WIDTH);
    sums = subgroupMatrixMultiplyAccumulate(q, b, x);
  }
  return sums;
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_scores(row: u32, key: u32, x: Sums) {
  subgroupMatrixStore<row_major>(&scores, min(row, ROWS - FM) * S_WIDTH + min(key, KEYS - FN) / 4, x, S_WIDTH);
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn weight_at(m: u32, key: u32) -> Left {
  var a: Left;
  if (m < RM) {
    a = subgroupMatrixLoad<Left, row_major>(&p, min(m, RM - 1) * FM * P_WIDTH + min(key, KEYS - FK) / 8, P_WIDTH);
  }
  return a;
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn value_at(key: u32, d: u32) -> Right {
  let at = (KEYS + min(key, KEYS - FK)) * WIDTH + min(d, D - FN) / 8;
  return subgroupMatrixLoad<Right, row_major>(&tile, at, WIDTH);
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add(m: u32, a: Left, b: Right, o: Sums) -> Sums {
  var sums = o;
  if (m < RM) { sums = subgroupMatrixMultiplyAccumulate(a, b, o); }
  return sums;
}

// Rows of o from `row` on, each times its `keep`, by way of the subgroup's share of workgroup memory.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn scaled(has: bool, row: u32, o: Sums, subgroup: u32, lane: u32) -> Sums {
  var sums = o;
  if (has) {
    let at = min(subgroup, SUBGROUPS - 1) * FRAGMENT;
    workgroupBarrier();
    subgroupMatrixStore<row_major>(&scores, at, o, FN / 4);
    workgroupBarrier();
    for (var i = lane; i < FRAGMENT; i += SUBGROUP) {
      let k = keep[row + i / (FN / 4)];
      scores[at + i] = bitcast<vec4u>(bitcast<vec4f>(scores[at + i]) * k);
    }
    workgroupBarrier();
    sums = subgroupMatrixLoad<Sums, row_major>(&scores, at, FN / 4);
  }
  return sums;
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_out(d: u32, n: u32, o: Sums) {
  if (n < RN) { subgroupMatrixStore<row_major>(&tile, min(d, D - RN * FN) / 4 + min(n, RN - 1) * FN / 4, o, O_WIDTH); }
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_sums(m: u32, sums: Sums) {
  subgroupMatrixStore<row_major>(&p, min(m, RM - 1) * FRAGMENT, sums, FN / 4);
}
