// Fragments of matrix units, RM x RN of sums per subgroup, at most 4 x 4. A shader names all 16; m and n are literals
// there, so that a test for rows that the tile does not have costs nothing.
// needs: tile: array<vec4u>, WIDTH of its rows; const BM, BN, WM, WN, FM, FN, FK
alias Left = subgroup_matrix_left<f16, FK, FM>; // columns, rows
alias Right = subgroup_matrix_right<f16, FN, FK>;
alias Sums = subgroup_matrix_result<f32, FN, FM>;

const RM = BM / WM / FM;
const RN = BN / WN / FN;

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn left_at(at: u32, m: u32) -> Left {
  var a: Left;
  if (m < RM) { a = subgroupMatrixLoad<Left, row_major>(&tile, at + m * FM * WIDTH, WIDTH); }
  return a;
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn right_at(at: u32, n: u32) -> Right {
  return subgroupMatrixLoad<Right, col_major>(&tile, at + n * FN * WIDTH, WIDTH);
}

// s + a b
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add(m: u32, a: Left, b: Right, s: Sums) -> Sums {
  var sums = s;
  if (m < RM) { sums = subgroupMatrixMultiplyAccumulate(a, b, s); }
  return sums;
}
