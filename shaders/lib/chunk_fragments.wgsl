// The products of delta_chunk_matrix in fragments: of rows of Q and K, and of M with columns of K and V.
// needs: lib/delta_fragments; its bindings and constants

// Rows 16 i and columns 16 j of q or k times k, transposed.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_dots(y: Sums, at: u32, i: u32, j: u32, k: u32) -> Sums {
  if (k >= DK8) { return y; }
  let a = subgroupMatrixLoad<Left, row_major>(&tile, min(at + i * 16 * WIDE + k, LAST), WIDE);
  let b = subgroupMatrixLoad<Right, col_major>(&tile, K_AT + min(j * 16 * WIDE + k, LAST), WIDE);
  return add(a, b, y);
}
fn dots(at: u32, i: u32, j: u32) -> Sums {
  var y = add_dots(add_dots(Sums(), at, i, j, 0), at, i, j, 2);
  y = add_dots(add_dots(y, at, i, j, 4), at, i, j, 6);
  y = add_dots(add_dots(y, at, i, j, 8), at, i, j, 10);
  return add_dots(add_dots(y, at, i, j, 12), at, i, j, 14);
}

// Block i, j of M beta or M beta exp(G), which lie at `at`.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn inverse_at(at: u32, i: u32, j: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&tile, min(at + (i * (i + 1) / 2 + j) * 32, SIZE - 32), 2);
}

// A subgroup owns every other 16 columns; whether its m-th are there costs nothing for a literal m.
fn has(m: u32, second: u32, count: u32) -> bool {
  return m * 32 < count && ((m + 1) * 32 <= count || m * 32 + second * 16 < count);
}

// y and the product with rows 16 j of K or V.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_column(y: Sums, a: Left, at: u32, j: u32, m: u32, second: u32, count: u32) -> Sums {
  if (!has(m, second, count)) { return y; }
  let c = 2 * m + second;
  return add(a, subgroupMatrixLoad<Right, row_major>(&tile, min(at + j * 16 * WIDE + c * 2, LAST), WIDE), y);
}

// Blocks i, 0 to i, i.
fn put_blocks(at: u32, i: u32, y0: Sums, y1: Sums, y2: Sums, y3: Sums) {
  let first = at + i * (i + 1) / 2 * 64;
  put_block(first, y0);
  if (i > 0) { put_block(first + 64, y1); }
  if (i > 1) { put_block(first + 128, y2); }
  if (i > 2) { put_block(first + 192, y3); }
}

// Fragments of W or U as rows of floats in workgroup memory; of U as they lie in u.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_out(y: Sums, i: u32, m: u32, second: u32, count: u32) {
  if (!has(m, second, count)) { return; }
  let c = 2 * m + second;
  subgroupMatrixStore<row_major>(&tile, min(i * 16 * OUT_WIDE + c * 4, SIZE - 16 * OUT_WIDE), y, OUT_WIDE);
}
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn write_u(y: Sums, i: u32, m: u32, second: u32, at: u32) {
  if (!has(m, second, DV)) { return; }
  let c = 2 * m + second;
  subgroupMatrixStore<row_major>(&u, at + i * 16 * (NV * DV / 4) + c * 4, y, NV * DV / 4);
}
