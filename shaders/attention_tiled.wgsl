// The formula of attention.wgsl, for devices with fast workgroup memory. A workgroup takes TOKENS tokens of a chunk and
// the query heads of one KV head: ROWS rows that share keys and values. LANES threads own a row, each every LANES-th
// vec4 of it. Keys pass in tiles of KEYS: every thread adds up its part of each dot product, then each thread of a row
// sums the parts in the same order. V arrives while K is in use, so that a tile costs two barriers.
// needs: lib/segment.wgsl, lib/keys.wgsl, lib/gate_*.wgsl; alias Q, KV, Y;
//        const HEADS, KV_HEADS, D, SCALE, CAUSAL, TOKENS, LANES, KEYS (a multiple of 4), Y_BINDING

@group(0) @binding(0) var<storage, read> q: array<vec4<Q>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<KV>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<vec4<Y>>;

const D4 = D / 4;
const MINE = D4 / LANES;
const HEADS_OF_KV = HEADS / KV_HEADS;
const ROWS = TOKENS * HEADS_OF_KV;
const WORKGROUP = ROWS * LANES;
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

var<workgroup> key_tile: array<vec4<KV>, KEYS * D4>;
var<workgroup> value_tile: array<vec4<KV>, KEYS * D4>;
var<workgroup> parts: array<vec4f, WORKGROUP * KEYS / 4>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let chunk = chunks[group.x];
  let s = segments[chunk.x];
  let first = chunk.y + group.y * TOKENS;
  let end = s.start + s.length;
  if (first >= end) { return; }

  let row = thread / LANES;
  let lane = thread % LANES;
  let t = first + row / HEADS_OF_KV;
  let head = group.z * HEADS_OF_KV + row % HEADS_OF_KV;
  let at = (min(t, end - 1u) * HEADS + head) * D4 + lane;
  var query: array<vec4f, MINE>;
  for (var c = 0u; c < MINE; c++) { query[c] = vec4f(q[at + c * LANES]) * SCALE; }
  let visible = visible_keys(s, t - s.start);
  let most = visible_keys(s, min(first + TOKENS, end) - 1u - s.start);

  var top = LOWEST;
  var sum = 0.0;
  var o: array<vec4f, MINE>;
  for (var n = 0u; n < most; n += KEYS) {
    for (var i = thread; i < KEYS * D4; i += WORKGROUP) { key_tile[i] = kv[address(s, n, most, group.z, i)]; }
    workgroupBarrier();
    for (var i = thread; i < KEYS * D4; i += WORKGROUP) {
      value_tile[i] = kv[address(s, n, most, group.z, i) + KV_HEADS * D4];
    }
    for (var j = 0u; j < KEYS; j += 4u) {
      var part = vec4f();
      for (var c = 0u; c < MINE; c++) {
        let k = j * D4 + lane + c * LANES;
        part += vec4f(
          dot(query[c], vec4f(key_tile[k])), dot(query[c], vec4f(key_tile[k + D4])),
          dot(query[c], vec4f(key_tile[k + 2 * D4])), dot(query[c], vec4f(key_tile[k + 3 * D4])));
      }
      parts[thread * (KEYS / 4) + j / 4u] = part;
    }
    workgroupBarrier();

    var p: array<vec4f, KEYS / 4>;
    var higher = vec4f(top);
    for (var j = 0u; j < KEYS / 4; j++) {
      var score = vec4f();
      for (var l = 0u; l < LANES; l++) { score += parts[(row * LANES + l) * (KEYS / 4) + j]; }
      p[j] = select(vec4f(LOWEST), score, n + 4u * j + vec4u(0, 1, 2, 3) < vec4u(visible));
      higher = max(higher, p[j]);
    }
    let highest = max(max(higher.x, higher.y), max(higher.z, higher.w));
    let keep = exp(top - highest);
    top = highest;
    sum *= keep;
    for (var c = 0u; c < MINE; c++) { o[c] *= keep; }
    for (var j = 0u; j < KEYS / 4; j++) {
      let e = exp(p[j] - top);
      sum += (e.x + e.y) + (e.z + e.w);
      for (var c = 0u; c < MINE; c++) {
        let v = j * 4u * D4 + lane + c * LANES;
        o[c] += e.x * vec4f(value_tile[v]) + e.y * vec4f(value_tile[v + D4])
          + e.z * vec4f(value_tile[v + 2 * D4]) + e.w * vec4f(value_tile[v + 3 * D4]);
      }
    }
  }
  if (t >= end) { return; }
  for (var c = 0u; c < MINE; c++) {
    y[at + c * LANES] = vec4<Y>(gated(o[c] / sum, t, head, lane + c * LANES));
  }
}

// Where vec4 i of the tile of keys from n on lies in the cache; behind the last key lies the last key again.
fn address(s: Segment, n: u32, most: u32, kv_head: u32, i: u32) -> u32 {
  return (cache_row(s, min(n + i / D4, most - 1u)) * 2 * KV_HEADS + kv_head) * D4 + i % D4;
}
