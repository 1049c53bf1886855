// delta_chunk on matrix units: f16 operands of products, f32 sums; decays, A and its inverse M = (I + A)^-1 in f32.
// Per chunk of 64 tokens (rows i, j) and value head, with D, G and A as there:
//   P[i, j] = (q[i] . k[j]) D[i, j];   x = [W | exp(G) Q] with W = (M beta exp(G)) K;   U = (M beta) V
// A workgroup of 16 subgroups owns a chunk of a head. M beta and M beta exp(G) are rounded to f16 once, beside V and K
// as they are; their diagonals, which weigh most, are multiplied in f32. Rows behind a short last chunk count as zeros
// and are not written. Much of a short run's time goes into fetching instructions: what is done alike is a loop, and
// many invocations do little each.
// needs: lib/segment, delta_fragments, chunk_decays, block_inverse, chunk_operands; alias QKV = X = vec4<u32>;
//   const NK, NV, DK, DV (of 16, at most 128), CHANNELS, SUBGROUP (at least 32)

@group(0) @binding(0) var<storage, read> qkv: array<QKV>;            // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> gates: array<f32>;          // [T, 2 NV]: g, beta
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;       // segment, first token
@group(0) @binding(4) var<storage, read_write> x: array<X>;          // [T, NV, 2 DK]
@group(0) @binding(5) var<storage, read_write> p: array<vec2u>;      // [T, NV, 64]
@group(0) @binding(6) var<storage, read_write> u: array<vec4f>;      // [T, NV, DV]
@group(0) @binding(7) var<storage, read_write> decay: array<f32>;    // [T, 2 NV]: exp(G), exp(G[last] - G)

const WORKGROUP = 16 * SUBGROUP;
const DK8 = DK / 8;
const DV8 = DV / 8;
const X_WIDE = 2 * DK8;
const WIDE = max(DK8, DV8) + 1; // of a row of Q, K and V
// q . k, then L and R, then V come where Q was; W and U at last over all.
const K_AT = 0;
const Q_AT = CHUNK * WIDE;
const A_AT = Q_AT + CHUNK * max(WIDE, 10);
const L_AT = Q_AT;
const R_AT = Q_AT + 6 * 64;
const M_AT = A_AT;         // ten blocks of halves: M beta
const MG_AT = A_AT + 320;  // M beta exp(G)
const LAST = A_AT - 15 * WIDE - 2; // where a fragment of Q, K or V begins at most
const W_PART = min(DK, 64); // columns of W, then of U, that leave at once
const OUT_WIDE = (W_PART + min(DV, 64)) / 4 + 1;
const SIZE = max(A_AT + 640, CHUNK * OUT_WIDE);

@compute @workgroup_size(WORKGROUP)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_id) subgroup: u32,
) {
  let n = group.x;
  let token = chunks[group.y].y;
  let segment = segments[chunks[group.y].x];
  let rows = min(CHUNK, segment.start + segment.length - token);

  let q_from = token * (CHANNELS / 8) + n / (NV / NK) * DK8;
  let then = lane + WORKGROUP;
  let q0 = read_eight(lane, DK8, rows, q_from);
  let q1 = read_eight(then, DK8, rows, q_from);
  let k0 = read_eight(lane, DK8, rows, q_from + NK * DK8);
  let k1 = read_eight(then, DK8, rows, q_from + NK * DK8);
  if (lane < CHUNK / 4) { put_gates(lane, rows, token, n); }
  put_eight(Q_AT, lane, DK8, q0); put_eight(Q_AT, then, DK8, q1);
  put_eight(K_AT, lane, DK8, k0); put_eight(K_AT, then, DK8, k1);
  workgroupBarrier();

  if (lane >= WORKGROUP - CHUNK / 4) { put_decays(lane - (WORKGROUP - CHUNK / 4), rows, token, n); }
  var qk: Sums; // a block of q . k, in each of the first subgroups
  for (var task = subgroup; task < 20; task += 16) { // then those of k . k
    let block = task % 10;
    let y = dots(select(u32(K_AT), Q_AT, task < 10), row_of(block), column_of(block));
    if (task < 10) { qk = y; } else { put_block(A_AT + block * 64, y); }
  }
  workgroupBarrier();
  write_q(lane, q0, rows, token, n); write_q(then, q1, rows, token, n);
  if (subgroup < 10) { put_block(Q_AT + subgroup * 64, qk); }
  workgroupBarrier();
  for (var at = lane; at < CHUNK * 16; at += WORKGROUP) { put_decayed(at / 16, at % 16, rows, token, n); }
  workgroupBarrier();

  let v_from = token * (CHANNELS / 8) + 2 * NK * DK8 + n * DV8;
  let v0 = read_eight(lane, DV8, rows, v_from);
  let v1 = read_eight(then, DV8, rows, v_from);
  if (lane < CHUNK) { invert_row(lane / 16, lane % 16); }
  workgroupBarrier();
  for (var s = 0u; s < 4; s++) {
    extend(s, lane);
    workgroupBarrier();
  }
  let m = min(lane, 319); // eight columns of a row of M
  let i = row_of(m / 32);
  let j = column_of(m / 32);
  let m_at = min(select(A_AT + m / 32 * 64, R_AT + i * 64, i == j) + m % 32 * 2, SIZE - 2);
  let below = select(16u, m % 32 / 2, i == j) - m % 2 * 8; // the column of these eight that is on the diagonal
  let m0 = select(floats(m_at), vec4f(), vec4u(0, 1, 2, 3) == vec4u(below));
  let m1 = select(floats(m_at + 1), vec4f(), vec4u(4, 5, 6, 7) == vec4u(below));
  workgroupBarrier();
  if (lane < 320) { put_m(m, m0, m1, j * 4 + m % 2 * 2); }
  put_eight(Q_AT, lane, DV8, v0); put_eight(Q_AT, then, DV8, v1);
  workgroupBarrier();

  let rows_of_m = subgroup % 4;
  let part = subgroup / 4; // 16 columns of W and U, and those 64 further on
  var w0: Sums; var w1: Sums; var u0: Sums; var u1: Sums;
  for (var j = 0u; j <= rows_of_m; j++) {
    let a = inverse_at(MG_AT, rows_of_m, j);
    w0 = add_column(w0, a, K_AT, j, part, 0, DK);
    w1 = add_column(w1, a, K_AT, j, part, 4, DK);
    let b = inverse_at(M_AT, rows_of_m, j);
    u0 = add_column(u0, b, Q_AT, j, part, 0, DV);
    u1 = add_column(u1, b, Q_AT, j, part, 4, DV);
  }
  workgroupBarrier();
  put_out(rows_of_m, part, w0, u0, 0);
  workgroupBarrier();
  write_out(lane, 0, rows, token, n);
  if (DK > 64 || DV > 64) {
    workgroupBarrier();
    put_out(rows_of_m, part, w1, u1, 4);
    workgroupBarrier();
    write_out(lane, 4, rows, token, n);
  }
}
