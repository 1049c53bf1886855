// How the operands of delta_scan_matrix reach workgroup memory, and where they lie there: up to four vec4u of a kind
// that an invocation carries. Rows behind the last token are zeros.
// needs: qkv, x, p; lib/delta_fragments, its constants
const DK8 = DK / 8;
const X_WIDE = 2 * DK8; // of a row of x
const WQ_WIDE = 2 * DK8 + 1; // of a row of W | Q
const K_WIDE = DK8 + 1;
const P_WIDE = CHUNK / 8 + 1;
const N_WIDE = 3; // of a row of S and of V'
const P_AT = CHUNK * K_WIDE; // K and P come where W and Q were
const LOW_AT = P_AT + CHUNK * P_WIDE; // V' less its halves
const N_AT = CHUNK * max(WQ_WIDE, K_WIDE + P_WIDE + N_WIDE); // V' comes where S was, and then with decays
const ROWS = max(DK, CHUNK);
const SUMS_AT = N_AT + 2 * CHUNK * N_WIDE;
const SIZE = SUMS_AT + ROWS * 4;

struct Four { a: vec4u, b: vec4u, c: vec4u, d: vec4u }

fn read_x(at: vec4u, row: vec4u, rows: u32, count: u32) -> Four {
  var f: Four;
  if (count > 0 && row.x < rows) { f.a = x[at.x]; }
  if (count > 1 && row.y < rows) { f.b = x[at.y]; }
  if (count > 2 && row.z < rows) { f.c = x[at.z]; }
  if (count > 3 && row.w < rows) { f.d = x[at.w]; }
  return f;
}

fn read_k(at: vec4u, row: vec4u, rows: u32, count: u32) -> Four {
  var f: Four;
  if (count > 0 && row.x < rows) { f.a = qkv[at.x]; }
  if (count > 1 && row.y < rows) { f.b = qkv[at.y]; }
  if (count > 2 && row.z < rows) { f.c = qkv[at.z]; }
  if (count > 3 && row.w < rows) { f.d = qkv[at.w]; }
  return f;
}

fn read_p(at: vec4u, row: vec4u, rows: u32, count: u32) -> Four {
  var f: Four;
  if (count > 0 && row.x < rows) { f.a = p[at.x]; }
  if (count > 1 && row.y < rows) { f.b = p[at.y]; }
  if (count > 2 && row.z < rows) { f.c = p[at.z]; }
  if (count > 3 && row.w < rows) { f.d = p[at.w]; }
  return f;
}

fn put(to: vec4u, row: vec4u, f: Four, count: u32) {
  if (count > 0 && row.x < CHUNK) { tile[to.x] = f.a; }
  if (count > 1 && row.y < CHUNK) { tile[to.y] = f.b; }
  if (count > 2 && row.z < CHUNK) { tile[to.z] = f.c; }
  if (count > 3 && row.w < CHUNK) { tile[to.w] = f.d; }
}

// y and the product of 16 columns of W or Q and as many rows of S.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_wq(y: Sums, row: u32, side: u32, k: u32) -> Sums {
  if (k >= DK8) { return y; }
  const LAST = 48 * WQ_WIDE + 2 * DK8 - 2;
  let a = subgroupMatrixLoad<Left, row_major>(&tile, min(row * WQ_WIDE + side + k, LAST), WQ_WIDE);
  return add(a, narrow(k * 8), y);
}

// Likewise of 16 columns of P and as many rows of V'.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_p(y: Sums, row: u32, k: u32) -> Sums {
  let a = subgroupMatrixLoad<Left, row_major>(&tile, P_AT + min(row * P_WIDE + k, 48 * P_WIDE + 6), P_WIDE);
  let low = subgroupMatrixLoad<Right, row_major>(&tile, LOW_AT + min(k * 8, CHUNK - 16) * N_WIDE, N_WIDE);
  return add(a, low, add(a, narrow(k * 8), y));
}

// Likewise of 16 rows of K, transposed.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_k(y: Sums, column: u32, k: u32) -> Sums {
  let a = subgroupMatrixLoad<Left, col_major>(&tile, min(k * 8 * K_WIDE + column / 8, 48 * K_WIDE + DK8 - 2), K_WIDE);
  return add(a, narrow(CHUNK + k * 8), y);
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn narrow(row: u32) -> Right {
  return subgroupMatrixLoad<Right, row_major>(&tile, N_AT + min(row, 2 * CHUNK - 16) * N_WIDE, N_WIDE);
}
