// Fragments of matrix units, RM x RN of sums per subgroup, at most 4 x 4. A shader names all 16; m and n are literals
// there, so that a test for rows that the tile does not have costs nothing. Every index is the sum of bounded terms:
// Tint wraps a load in a branch unless it sees that it stays within the tile.
// needs: tile: array<vec4u>, WIDTH of its rows, OWN of a slice, BK8; const SL, BM, BN, WM, WN, FM, FN, FK
alias Left = subgroup_matrix_left<f16, FK, FM>; // columns, rows
alias Right = subgroup_matrix_right<f16, FN, FK>;
alias Sums = subgroup_matrix_result<f32, FN, FM>;

const RM = BM / WM / FM;
const RN = BN / WN / FN;
const FK8 = FK / 8;

// Term f, in vec4u, of fragment m of the rows of x whose first is at `first` in the tile.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn left_at(first: u32, f: u32, m: u32) -> Left {
  var a: Left;
  let at = min(first, (SL - 1) * OWN + (BM - RM * FM) * WIDTH) + min(f, BK8 - FK8) + min(m, RM - 1) * FM * WIDTH;
  if (m < RM) { a = subgroupMatrixLoad<Left, row_major>(&tile, at, WIDTH); }
  return a;
}

// Likewise of w, whose rows lie below those of x.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn right_at(first: u32, f: u32, n: u32) -> Right {
  let at = min(first, SL * OWN - RN * FN * WIDTH) + min(f, BK8 - FK8) + min(n, RN - 1) * FN * WIDTH;
  return subgroupMatrixLoad<Right, col_major>(&tile, at, WIDTH);
}

// s + a b
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add(m: u32, a: Left, b: Right, s: Sums) -> Sums {
  var sums = s;
  if (m < RM) { sums = subgroupMatrixMultiplyAccumulate(a, b, s); }
  return sums;
}

// The sums of a subgroup, by name: arrays in loops were six times slower (bench/attempts/linear_matrix_loops.md).
struct Block {
  s00: Sums, s01: Sums, s02: Sums, s03: Sums,
  s10: Sums, s11: Sums, s12: Sums, s13: Sums,
  s20: Sums, s21: Sums, s22: Sums, s23: Sums,
  s30: Sums, s31: Sums, s32: Sums, s33: Sums,
}

// The sums with FK terms more, from term f on.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_terms(sums: Block, x_first: u32, w_first: u32, f: u32) -> Block {
  var s = sums;
  let a0 = left_at(x_first, f, 0); let a1 = left_at(x_first, f, 1);
  let a2 = left_at(x_first, f, 2); let a3 = left_at(x_first, f, 3);
  {
    let b = right_at(w_first, f, 0);
    s.s00 = add(0, a0, b, s.s00); s.s10 = add(1, a1, b, s.s10);
    s.s20 = add(2, a2, b, s.s20); s.s30 = add(3, a3, b, s.s30);
  }
  if (RN > 1) {
    let b = right_at(w_first, f, 1);
    s.s01 = add(0, a0, b, s.s01); s.s11 = add(1, a1, b, s.s11);
    s.s21 = add(2, a2, b, s.s21); s.s31 = add(3, a3, b, s.s31);
  }
  if (RN > 2) {
    let b = right_at(w_first, f, 2);
    s.s02 = add(0, a0, b, s.s02); s.s12 = add(1, a1, b, s.s12);
    s.s22 = add(2, a2, b, s.s22); s.s32 = add(3, a3, b, s.s32);
  }
  if (RN > 3) {
    let b = right_at(w_first, f, 3);
    s.s03 = add(0, a0, b, s.s03); s.s13 = add(1, a1, b, s.s13);
    s.s23 = add(2, a2, b, s.s23); s.s33 = add(3, a3, b, s.s33);
  }
  return s;
}
