// M = (I - A)^-1 for A strictly lower triangular, 64 x 64, in blocks of 16 x 16, all in f32. With R the inverses of the
// diagonal blocks, by substitution, and L[i, j] = R[i] A[i, j],
//   M[i, i] = R[i];   M[i, j] = sum_{j<=m<i} L[i, m] M[m, j]
// A block lies in `tile` row by row, four floats to a vec4u.
// needs: lib/delta_fragments; const A_AT (ten blocks; M takes the places of those that are not diagonal), R_AT (four),
//   L_AT (six)

// The blocks of the lower triangle, counted row by row.
fn row_of(block: u32) -> u32 { return select(select(select(0u, 1u, block > 0), 2u, block > 2), 3u, block > 5); }
fn column_of(block: u32) -> u32 { let i = row_of(block); return block - i * (i + 1) / 2; }
fn block_of(i: u32, j: u32) -> u32 { return A_AT + (i * (i + 1) / 2 + j) * 64; }
fn l_of(i: u32, j: u32) -> u32 { return L_AT + (i * (i - 1) / 2 + j) * 64; } // L has no diagonal

// x with its column c, a multiple of a row of A that has its first 4, 8, 12 or 16 columns.
fn more(x: mat4x4f, c: f32, at: u32, quads: u32) -> mat4x4f {
  var y = x;
  y[0] += c * bitcast<vec4f>(tile[at]);
  if (quads > 1) { y[1] += c * bitcast<vec4f>(tile[at + 1]); }
  if (quads > 2) { y[2] += c * bitcast<vec4f>(tile[at + 2]); }
  if (quads > 3) { y[3] += c * bitcast<vec4f>(tile[at + 3]); }
  return y;
}

// Row r of R[b], from its end: what column c holds is added to the columns before.
fn invert_row(b: u32, r: u32) {
  let unit = vec4f(vec4u(r % 4) == vec4u(0, 1, 2, 3));
  let none = vec4f();
  var x = mat4x4f(select(none, unit, r / 4 == 0), select(none, unit, r / 4 == 1),
                  select(none, unit, r / 4 == 2), select(none, unit, r / 4 == 3));
  let a = min(block_of(b, b), SIZE - 64);
  x = more(x, x[3].w, a + 60, 4); x = more(x, x[3].z, a + 56, 4); x = more(x, x[3].y, a + 52, 4);
  x = more(x, x[3].x, a + 48, 3); x = more(x, x[2].w, a + 44, 3); x = more(x, x[2].z, a + 40, 3);
  x = more(x, x[2].y, a + 36, 3); x = more(x, x[2].x, a + 32, 2); x = more(x, x[1].w, a + 28, 2);
  x = more(x, x[1].z, a + 24, 2); x = more(x, x[1].y, a + 20, 2); x = more(x, x[1].x, a + 16, 1);
  x = more(x, x[0].w, a + 12, 1); x = more(x, x[0].z, a + 8, 1); x = more(x, x[0].y, a + 4, 1);
  let at = min(R_AT + b * 64 + r * 4, SIZE - 4);
  tile[at] = bitcast<vec4u>(x[0]);
  tile[at + 1] = bitcast<vec4u>(x[1]);
  tile[at + 2] = bitcast<vec4u>(x[2]);
  tile[at + 3] = bitcast<vec4u>(x[3]);
}

fn rows_at(at: u32) -> mat4x4f {
  let b = min(at, SIZE - 13);
  return mat4x4f(bitcast<vec4f>(tile[b]), bitcast<vec4f>(tile[b + 4]),
                 bitcast<vec4f>(tile[b + 8]), bitcast<vec4f>(tile[b + 12]));
}
// Four columns of a row of a b.
fn product(a: u32, b: u32) -> vec4f {
  let at = min(a, SIZE - 4);
  return (rows_at(b) * bitcast<vec4f>(tile[at]) + rows_at(b + 16) * bitcast<vec4f>(tile[at + 1])) +
         (rows_at(b + 32) * bitcast<vec4f>(tile[at + 2]) + rows_at(b + 48) * bitcast<vec4f>(tile[at + 3]));
}

// Step 0 makes L, steps 1 to 3 a term of M each, by at least 384 invocations: four columns of a row of a block each.
fn extend(s: u32, lane: u32) {
  let block = lane / 64; // of L: 1 0, 2 0, 2 1, 3 0, 3 1, 3 2
  let i = select(select(3u, 2u, block < 3), 1u, block < 1);
  let j = block - i * (i - 1) / 2;
  if (block >= 6 || (s > 1 && i - j < s)) { return; }
  let m = j + max(s, 1) - 1;
  let a = select(l_of(i, m), R_AT + i * 64, s == 0);
  let b = select(select(block_of(m, j), R_AT + j * 64, s == 1), block_of(i, j), s == 0);
  let at = lane % 64;
  var y = product(a + at / 4 * 4, b + at % 4);
  let to = min(select(block_of(i, j), l_of(i, j), s == 0) + at, SIZE - 1);
  if (s > 1) { y += bitcast<vec4f>(tile[to]); }
  tile[to] = bitcast<vec4u>(y);
}
