// delta_chunk on matrix units: f16 operands of products, f32 sums; decays, A and its inverse M = (I + A)^-1 in f32.
// Per chunk of 64 tokens (rows i, j) and value head, with D, G and A as there:
//   P[i, j] = (q[i] . k[j]) D[i, j];   U = (M beta) V;   W = (M beta exp(G)) K
//   x = [W | exp(G) Q | exp(G[last] - G) K]
// A workgroup of eight subgroups owns a chunk of a head. A subgroup makes 16 rows of k . k or of q . k, then 16 rows of
// half the columns of U and of W. M beta and M beta exp(G) are rounded to f16 once, beside V and K as they are.
// Rows behind a short last chunk count as zeros and are not written.
// needs: lib/segment, delta_fragments, decay, block_inverse, chunk_operands, chunk_fragments; alias X = vec4<u32>;
//   const NK, NV, DK, DV (of 16, at most 128), CHANNELS, SUBGROUP (at least 32)

@group(0) @binding(0) var<storage, read> qkv: array<vec4f>;          // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> gates: array<f32>;          // [T, 2 NV]: g, beta
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;       // segment, first token
@group(0) @binding(4) var<storage, read_write> x: array<X>;          // [T, NV, 3 DK]
@group(0) @binding(5) var<storage, read_write> p: array<vec2u>;      // [T, NV, 64]
@group(0) @binding(6) var<storage, read_write> u: array<vec4f>;      // [T, NV, DV]
@group(0) @binding(7) var<storage, read_write> grown: array<f32>;    // [T, NV]: exp(G)

const WORKGROUP = 8 * SUBGROUP;
const DK8 = DK / 8;
const DV8 = DV / 8;
const WIDE = max(DK8, DV8) + 1; // of a row of Q, K and V
// q . k, then R and L, then V come where Q was; W and U at last over K and Q.
const K_AT = 0;
const Q_AT = CHUNK * WIDE;
const A_AT = Q_AT + CHUNK * max(WIDE, 10);
const L_AT = Q_AT;
const R_AT = Q_AT + 6 * 64;
const M_AT = A_AT;         // ten blocks of halves: M beta
const MG_AT = A_AT + 320;  // M beta exp(G)
const OUT_WIDE = 2 * WIDE - 1; // of a row of W or U as floats
const SIZE = A_AT + 640;
const LAST = A_AT - 15 * WIDE - 2; // where a fragment of Q, K or V begins at most

const QK_COUNT = (CHUNK * 2 * DK8 + WORKGROUP - 1) / WORKGROUP; // of eight columns of an invocation, at most 8
const V_COUNT = (CHUNK * DV8 + WORKGROUP - 1) / WORKGROUP;      // at most 4

@compute @workgroup_size(WORKGROUP)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_id) subgroup: u32,
) {
  let n = group.x;
  let head = n / (NV / NK);
  let token = chunks[group.y].y;
  let segment = segments[chunks[group.y].x];
  let rows = min(CHUNK, segment.start + segment.length - token);

  if (lane < CHUNK / 4) { put_gates(lane, rows, token, n); }
  let e0 = read_qk(lane, 0, QK_COUNT, rows, token, head); let e1 = read_qk(lane, 1, QK_COUNT, rows, token, head);
  let e2 = read_qk(lane, 2, QK_COUNT, rows, token, head); let e3 = read_qk(lane, 3, QK_COUNT, rows, token, head);
  let e4 = read_qk(lane, 4, QK_COUNT, rows, token, head); let e5 = read_qk(lane, 5, QK_COUNT, rows, token, head);
  let e6 = read_qk(lane, 6, QK_COUNT, rows, token, head); let e7 = read_qk(lane, 7, QK_COUNT, rows, token, head);
  workgroupBarrier();
  if (lane < CHUNK / 4) { put_decays(lane, rows, token, n); }
  workgroupBarrier();
  put_qk(lane, 0, QK_COUNT, e0, rows, token, n); put_qk(lane, 1, QK_COUNT, e1, rows, token, n);
  put_qk(lane, 2, QK_COUNT, e2, rows, token, n); put_qk(lane, 3, QK_COUNT, e3, rows, token, n);
  put_qk(lane, 4, QK_COUNT, e4, rows, token, n); put_qk(lane, 5, QK_COUNT, e5, rows, token, n);
  put_qk(lane, 6, QK_COUNT, e6, rows, token, n); put_qk(lane, 7, QK_COUNT, e7, rows, token, n);
  workgroupBarrier();

  let i = subgroup % 4; // 16 rows
  let second = subgroup / 4;
  let from_at = select(u32(K_AT), Q_AT, second == 1);
  let y0 = dots(from_at, i, 0);
  var y1: Sums; var y2: Sums; var y3: Sums;
  if (i > 0) { y1 = dots(from_at, i, 1); }
  if (i > 1) { y2 = dots(from_at, i, 2); }
  if (i > 2) { y3 = dots(from_at, i, 3); }
  if (second == 0) { put_blocks(A_AT, i, y0, y1, y2, y3); }
  workgroupBarrier();
  if (second == 1) { put_blocks(Q_AT, i, y0, y1, y2, y3); }
  workgroupBarrier();
  if (lane < 256) { decay_patch(lane / 16, lane % 16, rows, token, n); }
  workgroupBarrier();

  let v0 = read_v(lane, 0, V_COUNT, rows, token, n); let v1 = read_v(lane, 1, V_COUNT, rows, token, n);
  let v2 = read_v(lane, 2, V_COUNT, rows, token, n); let v3 = read_v(lane, 3, V_COUNT, rows, token, n);
  invert(lane);
  let block = lane / 8; // of M
  let bi = select(select(select(0u, 1u, block > 0), 2u, block > 2), 3u, block > 5);
  let bj = block - bi * (bi + 1) / 2;
  let quad = lane / 2 % 4; // of rows; and of columns:
  let column = lane % 2 * 2;
  var m0: mat4x4f;
  var m1: mat4x4f;
  if (block < 10) {
    m0 = inverse_patch(bi, bj, quad, column);
    m1 = inverse_patch(bi, bj, quad, column + 1);
  }
  workgroupBarrier();
  if (block < 10) {
    let at = block * 32 + quad * 8 + lane % 2;
    let b0 = beta[bj * 4 + column];
    let b1 = beta[bj * 4 + column + 1];
    put_m(M_AT + at, m0, m1, b0, b1);
    put_m(MG_AT + at, m0, m1, b0 * grows[bj * 4 + column], b1 * grows[bj * 4 + column + 1]);
  }
  put_v(lane, 0, V_COUNT, v0); put_v(lane, 1, V_COUNT, v1); put_v(lane, 2, V_COUNT, v2); put_v(lane, 3, V_COUNT, v3);
  workgroupBarrier();

  var w0: Sums; var w1: Sums; var w2: Sums; var w3: Sums;
  var u0: Sums; var u1: Sums; var u2: Sums; var u3: Sums;
  for (var j = 0u; j <= i; j++) {
    let a = inverse_at(MG_AT, i, j);
    w0 = add_column(w0, a, K_AT, j, 0, second, DK); w1 = add_column(w1, a, K_AT, j, 1, second, DK);
    w2 = add_column(w2, a, K_AT, j, 2, second, DK); w3 = add_column(w3, a, K_AT, j, 3, second, DK);
    let b = inverse_at(M_AT, i, j);
    u0 = add_column(u0, b, Q_AT, j, 0, second, DV); u1 = add_column(u1, b, Q_AT, j, 1, second, DV);
    u2 = add_column(u2, b, Q_AT, j, 2, second, DV); u3 = add_column(u3, b, Q_AT, j, 3, second, DV);
  }
  let whole = rows == CHUNK;
  if (whole) {
    let at = (token * NV + n) * (DV / 4);
    write_u(u0, i, 0, second, at); write_u(u1, i, 1, second, at);
    write_u(u2, i, 2, second, at); write_u(u3, i, 3, second, at);
  }
  workgroupBarrier();
  put_out(w0, i, 0, second, DK); put_out(w1, i, 1, second, DK);
  put_out(w2, i, 2, second, DK); put_out(w3, i, 3, second, DK);
  workgroupBarrier();
  for (var at = lane; at < rows * DK8; at += WORKGROUP) {
    let out = at / DK8 * OUT_WIDE + at % DK8 * 2;
    x[((token + at / DK8) * NV + n) * 3 * DK8 + at % DK8] = halves(floats(out), floats(out + 1));
  }
  if (!whole) { // row by row
    workgroupBarrier();
    put_out(u0, i, 0, second, DV); put_out(u1, i, 1, second, DV);
    put_out(u2, i, 2, second, DV); put_out(u3, i, 3, second, DV);
    workgroupBarrier();
    for (var at = lane; at < rows * DV / 4; at += WORKGROUP) {
      let row = at / (DV / 4);
      u[((token + row) * NV + n) * (DV / 4) + at % (DV / 4)] = floats(row * OUT_WIDE + at % (DV / 4));
    }
  }
}
