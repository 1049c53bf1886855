// What delta_chunk_matrix reads and writes: eight halves of a row at a time, and fragments of Q, K, V and M.
// needs: its bindings and constants; lib/delta_fragments, chunk_decays, block_inverse

// The i-th eight halves of rows that begin at `first` and have `wide` of them; zeros behind the last token.
fn read_eight(i: u32, wide: u32, rows: u32, first: u32) -> vec4u {
  if (i / wide >= rows) { return vec4u(); }
  return qkv[first + i / wide * (CHANNELS / 8) + i % wide];
}
fn put_eight(at: u32, i: u32, wide: u32, e: vec4u) {
  if (i / wide < CHUNK) { tile[min(at + i / wide * WIDE + i % wide, SIZE - 1)] = e; }
}

// exp(G) q
fn write_q(i: u32, e: vec4u, rows: u32, token: u32, n: u32) {
  let row = i / DK8;
  if (row >= rows) { return; }
  let grown = grows[row / 4][row % 4];
  x[((token + row) * NV + n) * X_WIDE + DK8 + i % DK8] = halves(of_halves(e.xy) * grown, of_halves(e.zw) * grown);
}

// Block i, j of q or k times k, transposed.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn dots(at: u32, i: u32, j: u32) -> Sums {
  var y: Sums;
  for (var k = 0u; k < DK8; k += 2) {
    let a = subgroupMatrixLoad<Left, row_major>(&tile, min(at + i * 16 * WIDE + k, LAST), WIDE);
    let b = subgroupMatrixLoad<Right, col_major>(&tile, K_AT + min(j * 16 * WIDE + k, LAST), WIDE);
    y = add(a, b, y);
  }
  return y;
}

// -A and P from the products, four columns of a row.
fn put_decayed(row: u32, quad: u32, rows: u32, token: u32, n: u32) {
  var y = vec4f();
  if (quad / 4 <= row / 16) {
    let d = decays(row, quad);
    let at = min((row / 16 * (row / 16 + 1) / 2 + quad / 4) * 64 + row % 16 * 4 + quad % 4, 639);
    y = bitcast<vec4f>(tile[Q_AT + at]) * d;
    let below = quad * 4 + vec4u(0, 1, 2, 3) < vec4u(row);
    let a = bitcast<vec4f>(tile[A_AT + at]) * d * -beta[row / 4][row % 4];
    tile[A_AT + at] = bitcast<vec4u>(select(vec4f(), a, below));
  }
  if (row < rows) { p[((token + row) * NV + n) * 16 + quad] = vec2u(pack2x16float(y.xy), pack2x16float(y.zw)); }
}

// Eight columns of a row of M, from column 4 `quad` on, times beta and times beta exp(G).
fn put_m(m: u32, m0: vec4f, m1: vec4f, quad: u32) {
  let b0 = m0 * beta[quad];
  let b1 = m1 * beta[quad + 1];
  tile[M_AT + min(m, 319)] = halves(b0, b1);
  tile[MG_AT + min(m, 319)] = halves(b0 * grows[quad], b1 * grows[quad + 1]);
}

// Block i, j of M beta or M beta exp(G), which lie at `at`.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn inverse_at(at: u32, i: u32, j: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&tile, min(at + (i * (i + 1) / 2 + j) * 32, SIZE - 32), 2);
}

// y and the product with rows 16 j of K or V, if they have 16 columns `part` + `further`.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_column(y: Sums, a: Left, at: u32, j: u32, part: u32, further: u32, count: u32) -> Sums {
  if ((further + 3) * 16 >= count && (further + part) * 16 >= count) { return y; }
  let begin = min(at + j * 16 * WIDE + (further + part) * 2, LAST);
  return add(a, subgroupMatrixLoad<Right, row_major>(&tile, begin, WIDE), y);
}

// Columns 16 `further` .. of W and U: as rows of floats in workgroup memory, and from there, with what the diagonals of
// M beta exp(G) and M beta add, to x and u.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put_out(i: u32, part: u32, w: Sums, of_v: Sums, further: u32) {
  let at = i * 16 * OUT_WIDE + part * 4;
  const MOST = SIZE - 15 * OUT_WIDE - 4;
  if ((further + part) * 16 < DK) { subgroupMatrixStore<row_major>(&tile, min(at, MOST), w, OUT_WIDE); }
  if ((further + part) * 16 < DV) { subgroupMatrixStore<row_major>(&tile, min(at + W_PART / 4, MOST), of_v, OUT_WIDE); }
}
fn write_out(lane: u32, further: u32, rows: u32, token: u32, n: u32) {
  for (var i = lane; i < rows * 16; i += WORKGROUP) {
    let row = i / 16;
    let c = i % 8; // eight columns of W or U
    let is_u = i % 16 >= 8;
    if (further * 2 + c >= select(u32(DK8), DV8, is_u)) { continue; }
    let at = min(row * OUT_WIDE + select(0, u32(W_PART / 4), is_u) + c * 2, SIZE - 2);
    let to = further * 2 + c;
    let of_k = (NK + n / (NV / NK)) * DK8;
    let e = qkv[(token + row) * (CHANNELS / 8) + select(of_k, 2 * NK * DK8 + n * DV8, is_u) + to];
    let own = beta[row / 4][row % 4] * select(grows[row / 4][row % 4], 1.0, is_u);
    let a = bitcast<vec4f>(tile[at]) + own * of_halves(e.xy);
    let b = bitcast<vec4f>(tile[at + 1]) + own * of_halves(e.zw);
    if (is_u) {
      let first = (((token + row) * NV + n) * DV8 + to) * 2;
      u[first] = a;
      u[first + 1] = b;
    } else { x[((token + row) * NV + n) * X_WIDE + to] = halves(a, b); }
  }
}
