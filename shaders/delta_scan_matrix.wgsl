// The serial part of the chunked delta rule on matrix units. Per segment and value head, for one chunk after the other:
//   V' = U - W S;   o = Q S + P V';   S <- exp(G[last]) S + K^T (exp(G[last] - G) V')
// where Q has its decays in it already (delta_chunk_matrix). Operands are f16, sums and S f32; V' goes into P V' as the
// sum of two halves. A workgroup of eight subgroups owns 16 columns of S of a head and segment; S stays in registers,
// eight columns of a row to an invocation, and goes through workgroup memory as an operand. A subgroup makes 16 rows of
// W S or of Q S, then of K^T V' and, where it had Q S, of P V'. What the next chunk brings is read meanwhile. Four
// barriers per chunk:
//   sums of W S and Q S | V' as halves, with and without decays, K, P | sums of K^T V', o | S as halves, W, Q
// needs: lib/segment, scan_operands, delta_fragments; alias QKV = X = P = vec4<u32>;
//   const NK, NV, DK, DV (of 16, at most 128), CHANNELS, SUBGROUP (at least 32)

@group(0) @binding(0) var<storage, read> qkv: array<QKV>;            // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> x: array<X>;                // [T, NV, 2 DK]: W, Q
@group(0) @binding(2) var<storage, read> p: array<P>;                // [T, NV, 64], zeros behind the diagonal
@group(0) @binding(3) var<storage, read> decay: array<f32>;          // [T, 2 NV]: exp(G), exp(G[last] - G)
@group(0) @binding(4) var<storage, read> u: array<vec4f>;            // [T, NV, DV]
@group(0) @binding(5) var<storage, read> segments: array<Segment>;
@group(0) @binding(6) var<storage, read_write> o: array<vec4f>;      // [T, NV, DV]
@group(0) @binding(7) var<storage, read_write> state: array<vec4f>;  // [slot, NV, DK, DV]

const WORKGROUP = 8 * SUBGROUP;
const WQ_COUNT = (CHUNK * 2 * DK8 + WORKGROUP - 1) / WORKGROUP; // vec4u of an invocation, at most 8
const WQ_MORE = max(WQ_COUNT - 4, 0);
const K_COUNT = (CHUNK * DK8 + WORKGROUP - 1) / WORKGROUP;
const P_COUNT = (CHUNK * 8 + WORKGROUP - 1) / WORKGROUP;
const O_WIDE = NV * DV / 4; // of a row of o

@compute @workgroup_size(WORKGROUP)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) lane: u32,
  @builtin(subgroup_id) subgroup: u32,
) {
  let segment = segments[group.y];
  let end = segment.start + segment.length;
  let n = group.x / (DV / 16);
  let column = group.x % (DV / 16) * 4; // vec4 of a row of DV

  // What an invocation carries: rows of the chunk, where these begin in x, qkv and p, where they go.
  let i = lane + vec4u(0, 1, 2, 3) * WORKGROUP; let then = i + 4 * WORKGROUP;
  let wq_row = i / (2 * DK8); let wq_then = then / (2 * DK8); let k_row = i / DK8; let p_row = i / 8;
  let wq_at = (wq_row * NV + n) * X_WIDE + i % (2 * DK8);
  let wq_at_then = (wq_then * NV + n) * X_WIDE + then % (2 * DK8);
  let k_at = k_row * (CHANNELS / 8) + (NK + n / (NV / NK)) * DK8 + i % DK8;
  let p_at = (p_row * NV + n) * 8 + i % 8;
  let wq_to = wq_row * WQ_WIDE + i % (2 * DK8); let wq_to_then = wq_then * WQ_WIDE + then % (2 * DK8);
  let k_to = k_row * K_WIDE + i % DK8; let p_to = P_AT + p_row * P_WIDE + i % 8;

  let row = lane / 2; let side = lane % 2; // of S and of V': eight columns
  let sums = min(SUMS_AT + row * 4 + side * 2, SIZE - 2);
  let own = N_AT + row * N_WIDE + side; let low = own - N_AT + LOW_AT;
  let o_at = row * O_WIDE + n * (DV / 4) + column + 2 * side;
  let s_at = (n * DK + row) * (DV / 4) + column + 2 * side;
  var s0: vec4f; var s1: vec4f;
  if (segment.state_from != 0 && row < DK) {
    let at = segment.state_from * (NV * DK * DV / 4) + s_at;
    s0 = state[at]; s1 = state[at + 1];
  }

  var rows = min(CHUNK, segment.length);
  let x0 = segment.start * NV * X_WIDE;
  var wq = read_x(x0 + wq_at, wq_row, rows, WQ_COUNT);
  var wq_more = read_x(x0 + wq_at_then, wq_then, rows, WQ_MORE);
  var k = read_k(segment.start * (CHANNELS / 8) + k_at, k_row, rows, K_COUNT);
  var p_own = read_p(segment.start * NV * 8 + p_at, p_row, rows, P_COUNT);
  var u0: vec4f; var u1: vec4f; var remains: f32;
  if (row < rows) {
    u0 = u[segment.start * O_WIDE + o_at];
    u1 = u[segment.start * O_WIDE + o_at + 1];
    remains = decay[(segment.start + row) * 2 * NV + NV + n];
  }
  if (row < DK) { tile[own] = halves(s0, s1); }
  put(wq_to, wq_row, wq, WQ_COUNT);
  put(wq_to_then, wq_then, wq_more, WQ_MORE);
  workgroupBarrier();

  let block = subgroup % 4 * 16; let is_o = subgroup >= 4; // rows of the chunk, of W S or of Q S
  let from_q = select(0u, DK8, is_o);
  for (var first = segment.start; first < end; first += CHUNK) {
    let kept = decay[(first + rows - 1) * 2 * NV + n];
    let next = first + CHUNK;
    let next_rows = select(0, min(CHUNK, end - next), next < end);
    wq = read_x(next * NV * X_WIDE + wq_at, wq_row, next_rows, WQ_COUNT);
    wq_more = read_x(next * NV * X_WIDE + wq_at_then, wq_then, next_rows, WQ_MORE);

    var y = add_wq(add_wq(Sums(), block, from_q, 0), block, from_q, 2);
    y = add_wq(add_wq(y, block, from_q, 4), block, from_q, 6);
    y = add_wq(add_wq(y, block, from_q, 8), block, from_q, 10);
    y = add_wq(add_wq(y, block, from_q, 12), block, from_q, 14);
    if (!is_o) { put_block(SUMS_AT + block * 4, y); }
    workgroupBarrier();

    if (row < CHUNK) { // zeros behind the last token
      let v0 = u0 - floats(sums);
      let v1 = u1 - floats(sums + 1);
      let high = halves(v0, v1);
      tile[own] = high;
      tile[low] = halves(v0 - of_halves(high.xy), v1 - of_halves(high.zw));
      tile[own + CHUNK * N_WIDE] = halves(v0 * remains, v1 * remains);
    }
    put(k_to, k_row, k, K_COUNT);
    put(p_to, p_row, p_own, P_COUNT);
    workgroupBarrier();

    k = read_k(next * (CHANNELS / 8) + k_at, k_row, next_rows, K_COUNT);
    p_own = read_p(next * NV * 8 + p_at, p_row, next_rows, P_COUNT);
    u0 = vec4f(); u1 = vec4f();
    if (row < next_rows) {
      u0 = u[next * O_WIDE + o_at];
      u1 = u[next * O_WIDE + o_at + 1];
      remains = decay[(next + row) * 2 * NV + NV + n];
    }
    if (subgroup * 16 < DK) {
      let grows = add_k(add_k(Sums(), subgroup * 16, 0), subgroup * 16, 2);
      put_block(SUMS_AT + subgroup * 64, add_k(add_k(grows, subgroup * 16, 4), subgroup * 16, 6));
    }
    if (is_o) {
      y = add_p(add_p(add_p(add_p(y, block, 0), block, 2), block, 4), block, 6);
      if (rows == CHUNK) {
        subgroupMatrixStore<row_major>(&o, (first + block) * O_WIDE + n * (DV / 4) + column, y, O_WIDE);
      }
    }
    workgroupBarrier();

    if (row < DK) {
      s0 = kept * s0 + floats(sums);
      s1 = kept * s1 + floats(sums + 1);
      tile[own] = halves(s0, s1);
    }
    put(wq_to, wq_row, wq, WQ_COUNT);
    put(wq_to_then, wq_then, wq_more, WQ_MORE);
    workgroupBarrier();

    if (rows < CHUNK) { // the last chunk: row by row
      if (is_o) { put_block(SUMS_AT + block * 4, y); }
      workgroupBarrier();
      if (row < rows) {
        o[first * O_WIDE + o_at] = floats(sums);
        o[first * O_WIDE + o_at + 1] = floats(sums + 1);
      }
    }
    rows = next_rows;
  }

  if (segment.state_to != 0 && row < DK) {
    let at = segment.state_to * (NV * DK * DV / 4) + s_at;
    state[at] = s0; state[at + 1] = s1;
  }
}
