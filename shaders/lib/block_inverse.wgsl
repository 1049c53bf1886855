// M = (I + A)^-1 for A strictly lower triangular, 64 x 64, in blocks of 16 x 16, all in f32. With R the inverses of the
// diagonal blocks, by substitution, L[i, j] = R[i] A[i, j] and F = I - (I + L)^-1 below the diagonal,
//   F[i, j] = L[i, j] - sum_{j<m<i} L[i, m] F[m, j];   M[i, j] = -F[i, j] R[j];   M[i, i] = R[i]
// A block lies in `tile` row by row, four floats to a vec4u. A patch of a block is 4 x 4, its columns named as rows.
// needs: lib/delta_fragments; const A_AT (ten blocks, of which F takes three), R_AT (four), L_AT (six)

// Where block i, j of the lower triangle lies behind A_AT.
fn block_of(i: u32, j: u32) -> u32 { return A_AT + (i * (i + 1) / 2 + j) * 64; }
// Likewise L, which has no diagonal; F[1, 0], F[2, 1] and F[3, 2] are L's.
fn l_of(i: u32, j: u32) -> u32 { return L_AT + (i * (i - 1) / 2 + j) * 64; }
fn f_of(i: u32, j: u32) -> u32 { return select(block_of(i, j), l_of(i, j), i == j + 1); }

fn patch_at(block: u32, row: u32, column: u32) -> mat4x4f {
  let at = block + row * 16 + column;
  return mat4x4f(floats(at), floats(at + 4), floats(at + 8), floats(at + 12));
}
fn put_patch(block: u32, row: u32, column: u32, y: mat4x4f) {
  let at = block + row * 16 + column;
  tile[at] = bitcast<vec4u>(y[0]);
  tile[at + 4] = bitcast<vec4u>(y[1]);
  tile[at + 8] = bitcast<vec4u>(y[2]);
  tile[at + 12] = bitcast<vec4u>(y[3]);
}
// Patch (row, column) of a b.
fn product(a: u32, b: u32, row: u32, column: u32) -> mat4x4f {
  return (patch_at(b, 0, column) * patch_at(a, row, 0) + patch_at(b, 1, column) * patch_at(a, row, 1)) +
         (patch_at(b, 2, column) * patch_at(a, row, 2) + patch_at(b, 3, column) * patch_at(a, row, 3));
}

// Row r of R[b], from its end: what column c holds is taken off the columns before.
fn less(x: mat4x4f, c: f32, at: u32) -> mat4x4f {
  return x - c * mat4x4f(floats(at), floats(at + 1), floats(at + 2), floats(at + 3));
}
fn invert_row(b: u32, r: u32) {
  let unit = vec4f(vec4u(r % 4) == vec4u(0, 1, 2, 3));
  let none = vec4f();
  var x = mat4x4f(select(none, unit, r / 4 == 0), select(none, unit, r / 4 == 1),
                  select(none, unit, r / 4 == 2), select(none, unit, r / 4 == 3));
  let a = block_of(b, b);
  x = less(x, x[3].w, a + 60); x = less(x, x[3].z, a + 56); x = less(x, x[3].y, a + 52); x = less(x, x[3].x, a + 48);
  x = less(x, x[2].w, a + 44); x = less(x, x[2].z, a + 40); x = less(x, x[2].y, a + 36); x = less(x, x[2].x, a + 32);
  x = less(x, x[1].w, a + 28); x = less(x, x[1].z, a + 24); x = less(x, x[1].y, a + 20); x = less(x, x[1].x, a + 16);
  x = less(x, x[0].w, a + 12); x = less(x, x[0].z, a + 8); x = less(x, x[0].y, a + 4);
  let at = R_AT + b * 64 + r * 4;
  tile[at] = bitcast<vec4u>(x[0]);
  tile[at + 1] = bitcast<vec4u>(x[1]);
  tile[at + 2] = bitcast<vec4u>(x[2]);
  tile[at + 3] = bitcast<vec4u>(x[3]);
}

// R, L and F from A, by at least 96 invocations.
fn invert(lane: u32) {
  if (lane < CHUNK) { invert_row(lane / 16, lane % 16); }
  workgroupBarrier();
  let block = lane / 16; // of L: 1 0, 2 0, 2 1, 3 0, 3 1, 3 2
  let row = lane / 4 % 4;
  let column = lane % 4;
  if (block < 6) {
    let i = select(select(3u, 2u, block < 3), 1u, block < 1);
    let j = block - i * (i - 1) / 2;
    put_patch(l_of(i, j), row, column, product(R_AT + i * 64, block_of(i, j), row, column));
  }
  workgroupBarrier();
  if (block < 2) { // F[2, 0] and F[3, 1]
    let i = block + 2;
    let l = patch_at(l_of(i, block), row, column);
    put_patch(block_of(i, block), row, column, l - product(l_of(i, block + 1), l_of(block + 1, block), row, column));
  }
  workgroupBarrier();
  if (block == 0) {
    let l = patch_at(l_of(3, 0), row, column) - product(l_of(3, 1), l_of(1, 0), row, column);
    put_patch(block_of(3, 0), row, column, l - product(l_of(3, 2), block_of(2, 0), row, column));
  }
  workgroupBarrier();
}

// Patch (row, column) of M[i, j].
fn inverse_patch(i: u32, j: u32, row: u32, column: u32) -> mat4x4f {
  if (i == j) { return patch_at(R_AT + i * 64, row, column); }
  return -1.0 * product(f_of(i, j), R_AT + j * 64, row, column);
}
