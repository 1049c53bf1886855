// What delta_chunk_matrix reads and writes outside of fragments, eight columns of a row or 4 x 4 at a time.
// needs: its bindings and constants; lib/delta_fragments, decay, block_inverse

var<workgroup> beta: array<vec4f, CHUNK / 4>;
var<workgroup> grows: array<vec4f, CHUNK / 4>;   // exp(G)
var<workgroup> remains: array<vec4f, CHUNK / 4>; // exp(G[last] - G)

// g and beta of a quad of rows; behind the last token nothing decays and beta is zero.
fn put_gates(quad: u32, rows: u32, token: u32, n: u32) {
  let row = quad * 4 + vec4u(0, 1, 2, 3);
  let at = (token + min(row, vec4u(rows - 1))) * 2 * NV + n;
  let inside = row < vec4u(rows);
  g[quad] = select(vec4f(), vec4f(gates[at.x], gates[at.y], gates[at.z], gates[at.w]), inside);
  let to = at + NV;
  beta[quad] = select(vec4f(), vec4f(gates[to.x], gates[to.y], gates[to.z], gates[to.w]), inside);
}

// The decays from the chunk's start and to its end, of a quad of rows.
fn put_decays(quad: u32, rows: u32, token: u32, n: u32) {
  var before = 0.0;
  var after = 0.0;
  for (var q = 0u; q < quad; q++) { before += total(g[q]); }
  for (var q = quad + 1; q < CHUNK / 4; q++) { after += total(g[q]); }
  let own = g[quad];
  let grown_own = exp(before + vec4f(own.x, own.x + own.y, (own.x + own.y) + own.z, total(own)));
  grows[quad] = grown_own;
  remains[quad] = exp(after + vec4f((own.y + own.z) + own.w, own.z + own.w, own.w, 0.0));
  let at = (token + quad * 4) * NV + n;
  if (quad * 4 < rows) { grown[at] = grown_own.x; }
  if (quad * 4 + 1 < rows) { grown[at + NV] = grown_own.y; }
  if (quad * 4 + 2 < rows) { grown[at + 2 * NV] = grown_own.z; }
  if (quad * 4 + 3 < rows) { grown[at + 3 * NV] = grown_own.w; }
}

// Eight columns of a row.
struct Eight { a: vec4f, b: vec4f }
fn eight(at: u32) -> Eight { return Eight(qkv[at], qkv[at + 1]); }

// The m-th of an invocation's `count` of q and k; zeros behind the last token.
fn read_qk(lane: u32, m: u32, count: u32, rows: u32, token: u32, head: u32) -> Eight {
  let row = (lane + m * WORKGROUP) / (2 * DK8);
  let column = (lane + m * WORKGROUP) % (2 * DK8);
  if (m >= count || row >= rows) { return Eight(); }
  let side = head + select(0u, NK - 1, column >= DK8);
  return eight((token + row) * (CHANNELS / 4) + side * (DK / 4) + column * 2);
}
// As halves in the tile, and with their decays in x.
fn put_qk(lane: u32, m: u32, count: u32, e: Eight, rows: u32, token: u32, n: u32) {
  let row = (lane + m * WORKGROUP) / (2 * DK8);
  let column = (lane + m * WORKGROUP) % (2 * DK8);
  if (m >= count || row >= CHUNK) { return; }
  let is_k = column >= DK8;
  tile[select(Q_AT + column, K_AT + column - DK8, is_k) + row * WIDE] = halves(e.a, e.b);
  let decay = select(grows[row / 4], remains[row / 4], is_k)[row % 4];
  if (row < rows) { x[((token + row) * NV + n) * 3 * DK8 + DK8 + column] = halves(e.a * decay, e.b * decay); }
}

// Likewise of v, without decays.
fn read_v(lane: u32, m: u32, count: u32, rows: u32, token: u32, n: u32) -> Eight {
  let i = lane + m * WORKGROUP;
  if (m >= count || i / DV8 >= rows) { return Eight(); }
  return eight((token + i / DV8) * (CHANNELS / 4) + (2 * NK * DK + n * DV) / 4 + i % DV8 * 2);
}
fn put_v(lane: u32, m: u32, count: u32, e: Eight) {
  let i = lane + m * WORKGROUP;
  if (m < count && i / DV8 < CHUNK) { tile[Q_AT + i / DV8 * WIDE + i % DV8] = halves(e.a, e.b); }
}

// A and P from the products, rows 4 i and columns 4 j on.
fn decay_patch(i: u32, j: u32, rows: u32, token: u32, n: u32) {
  var y = mat4x4f();
  if (j / 4 <= i / 4) {
    let d = transpose(decay_between(i, j));
    let block = (i / 4 * (i / 4 + 1) / 2 + j / 4) * 64;
    let k = patch_at(A_AT + block, i % 4, j % 4);
    let q = patch_at(Q_AT + block, i % 4, j % 4);
    let b = beta[i];
    let off = select(1.0, 0.0, i == j); // the diagonal
    put_patch(A_AT + block, i % 4, j % 4,
              mat4x4f(k[0] * d[0] * b.x * vec4f(off, 1, 1, 1), k[1] * d[1] * b.y * vec4f(1, off, 1, 1),
                      k[2] * d[2] * b.z * vec4f(1, 1, off, 1), k[3] * d[3] * b.w * vec4f(1, 1, 1, off)));
    y = mat4x4f(q[0] * d[0], q[1] * d[1], q[2] * d[2], q[3] * d[3]);
  }
  let at = ((token + i * 4) * NV + n) * 16 + j;
  if (i * 4 < rows) { p[at] = four_halves(y[0]); }
  if (i * 4 + 1 < rows) { p[at + NV * 16] = four_halves(y[1]); }
  if (i * 4 + 2 < rows) { p[at + NV * 32] = four_halves(y[2]); }
  if (i * 4 + 3 < rows) { p[at + NV * 48] = four_halves(y[3]); }
}
fn four_halves(v: vec4f) -> vec2u { return vec2u(pack2x16float(v.xy), pack2x16float(v.zw)); }

// Four rows of eight columns of M, times factors of its columns.
fn put_m(at: u32, m0: mat4x4f, m1: mat4x4f, b0: vec4f, b1: vec4f) {
  tile[at] = halves(m0[0] * b0, m1[0] * b1);
  tile[at + 2] = halves(m0[1] * b0, m1[1] * b1);
  tile[at + 4] = halves(m0[2] * b0, m1[2] * b1);
  tile[at + 6] = halves(m0[3] * b0, m1[3] * b1);
}
