// The formula of attention.wgsl on matrix units: q, keys, values and weights in f16, sums and softmax in f32. A
// workgroup takes TOKENS tokens of a chunk and the query heads of one KV head: ROWS rows that share keys and values.
// q stays in fragments, and so does o, SUBGROUPS side by side. Keys and values pass in tiles of KEYS, scores and their
// weights exp2(score - top) by way of workgroup memory; the next tile is put there while weights are made.
// No invocation can reach into a fragment. So top moves only when scores of the row exceed it by SLACK, which they
// rarely do after the first tile (as in FlashAttention-4), and then o is scaled by way of workgroup memory. A product
// with ones sums the weights as they were rounded. All orders hang on KEYS alone, tops on the row's own scores.
// needs: lib/segment, lib/keys, lib/gate_*, lib/attention_units, _stage and _weights; alias Q, KV = vec4<u32>, Y;
//   const HEADS, KV_HEADS, D, SCALE, CAUSAL, TOKENS, KEYS, SUBGROUPS, SUBGROUP, FM, FN, FK, Y_BINDING

@group(0) @binding(0) var<storage, read> q: array<vec4<Q>>;
@group(0) @binding(1) var<storage, read> kv: array<KV>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<vec4<Y>>;

const D4 = D / 4;
const HEADS_OF_KV = HEADS / KV_HEADS;
const ROWS = TOKENS * HEADS_OF_KV;
const WORKGROUP = SUBGROUPS * SUBGROUP;

@compute @workgroup_size(WORKGROUP)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let chunk = chunks[groups.z - 1u - group.z]; // those that see most keys begin first
  let s = segments[chunk.x];
  let first = chunk.y + group.y * TOKENS;
  let end = s.start + s.length;
  if (first >= end) { return; }
  let most = visible_keys(s, min(first + TOKENS, end) - 1u - s.start);
  let t = Tile(s, first, end, group.x, most);

  var keys = load(t, 0u, 0u, thread);
  var values = load(t, 0u, KV_HEADS, thread);
  put_queries(t, thread);
  for (var i = thread; i < ROWS; i += WORKGROUP) { tops[i] = LOWEST; }
  if (thread == 0u) { exceeded = 0u; }
  workgroupBarrier();
  let scored = subgroup % RM * FM; // where the scores of this subgroup begin
  let key = subgroup / RM * FN;
  let q0 = query_at(scored, 0); let q1 = query_at(scored, 1); let q2 = query_at(scored, 2);
  let q3 = query_at(scored, 3); let q4 = query_at(scored, 4); let q5 = query_at(scored, 5);
  let q6 = query_at(scored, 6); let q7 = query_at(scored, 7); let q8 = query_at(scored, 8);
  let q9 = query_at(scored, 9); let qa = query_at(scored, 10); let qb = query_at(scored, 11);
  let qc = query_at(scored, 12); let qd = query_at(scored, 13); let qe = query_at(scored, 14);
  let qf = query_at(scored, 15);
  workgroupBarrier();
  put(0u, keys, thread);
  keys = load(t, KEYS, 0u, thread);
  workgroupBarrier();

  let d = subgroup * (RN * FN); // the first column of o in this subgroup
  let summed = min(subgroup, RM - 1u); // the fragment whose weights it sums
  let ones = Right(1);
  var sums: Sums;
  var o00: Sums; var o01: Sums; var o10: Sums; var o11: Sums;
  var o20: Sums; var o21: Sums; var o30: Sums; var o31: Sums;
  for (var n = 0u; n < most; n += KEYS) {
    if (subgroup < SCORES) {
      var x = Sums();
      x = score(0, q0, key, x); x = score(1, q1, key, x); x = score(2, q2, key, x); x = score(3, q3, key, x);
      x = score(4, q4, key, x); x = score(5, q5, key, x); x = score(6, q6, key, x); x = score(7, q7, key, x);
      x = score(8, q8, key, x); x = score(9, q9, key, x); x = score(10, qa, key, x); x = score(11, qb, key, x);
      x = score(12, qc, key, x); x = score(13, qd, key, x); x = score(14, qe, key, x); x = score(15, qf, key, x);
      put_scores(scored, key, x);
    }
    workgroupBarrier();

    put(0u, keys, thread); // of the next tile
    put(KEYS, values, thread); // of this one
    keys = load(t, n + 2u * KEYS, 0u, thread);
    values = load(t, n + KEYS, KV_HEADS, thread);
    if (weigh(t, n, thread)) { exceeded = 1u; }
    if (workgroupUniformLoad(&exceeded) == 1u) {
      raise(t, n, thread);
      workgroupBarrier();
      exceeded = 0u;
      weigh(t, n, thread);
      if (n > 0u) {
        sums = scaled(true, summed * FM, sums, subgroup, lane);
        o00 = scaled(true, 0, o00, subgroup, lane);
        o01 = scaled(RN > 1, 0, o01, subgroup, lane);
        o10 = scaled(RM > 1, 1 * FM, o10, subgroup, lane);
        o11 = scaled(RM > 1 && RN > 1, 1 * FM, o11, subgroup, lane);
        o20 = scaled(RM > 2, 2 * FM, o20, subgroup, lane);
        o21 = scaled(RM > 2 && RN > 1, 2 * FM, o21, subgroup, lane);
        o30 = scaled(RM > 3, 3 * FM, o30, subgroup, lane);
        o31 = scaled(RM > 3 && RN > 1, 3 * FM, o31, subgroup, lane);
      }
      workgroupBarrier();
    }

    for (var k = 0u; k < KEYS; k += 2 * FK) { // two steps at once
      let a0 = weight_at(0, k); let a1 = weight_at(1, k);
      let a2 = weight_at(2, k); let a3 = weight_at(3, k);
      let b0 = value_at(k, d);
      o00 = add(0, a0, b0, o00); o10 = add(1, a1, b0, o10); o20 = add(2, a2, b0, o20); o30 = add(3, a3, b0, o30);
      if (RN > 1) {
        let b1 = value_at(k, d + FN);
        o01 = add(0, a0, b1, o01); o11 = add(1, a1, b1, o11); o21 = add(2, a2, b1, o21); o31 = add(3, a3, b1, o31);
      }
      sums = add(0, weight_at(summed, k), ones, sums);
      let then = k + FK;
      if (n + then < most) {
        let a0 = weight_at(0, then); let a1 = weight_at(1, then);
        let a2 = weight_at(2, then); let a3 = weight_at(3, then);
        let b0 = value_at(then, d);
        o00 = add(0, a0, b0, o00); o10 = add(1, a1, b0, o10); o20 = add(2, a2, b0, o20); o30 = add(3, a3, b0, o30);
        if (RN > 1) {
          let b1 = value_at(then, d + FN);
          o01 = add(0, a0, b1, o01); o11 = add(1, a1, b1, o11); o21 = add(2, a2, b1, o21); o31 = add(3, a3, b1, o31);
        }
        sums = add(0, weight_at(summed, then), ones, sums);
      }
    }
  }

  workgroupBarrier();
  put_sums(summed, sums);
  finish(t, 0, o00, o01, d, thread);
  finish(t, 1, o10, o11, d, thread);
  finish(t, 2, o20, o21, d, thread);
  finish(t, 3, o30, o31, d, thread);
}
