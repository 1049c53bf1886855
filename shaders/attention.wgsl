// y[t, h] = gated(softmax(q[t, h] K^T * SCALE) V) over the keys that token t sees; head h reads KV head
// h / (HEADS / KV_HEADS). A workgroup per (chunk, head), a thread per token of the chunk; no barriers. Keys pass in
// blocks of KEYS under an online softmax. All threads of a workgroup take the same keys, so that software drivers load
// them once for all; what a token must not see weighs nothing.
// needs: lib/segment.wgsl, lib/keys.wgsl, lib/gate_*.wgsl; alias Q, KV, Y;
//        const CHUNK, HEADS, KV_HEADS, D, SCALE, CAUSAL, KEYS, Y_BINDING

@group(0) @binding(0) var<storage, read> q: array<vec4<Q>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<KV>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<vec4<Y>>;

const D4 = D / 4;
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

@compute @workgroup_size(CHUNK)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let chunk = chunks[group.x];
  let s = segments[chunk.x];
  let head = group.y;
  let end = s.start + s.length;
  let t = chunk.y + lane;
  if (t >= end) { return; }

  // D4. Compilers cannot know that and leave the loops rolled; unrolled, software drivers compile for many seconds.
  let width = select(0u, u32(D4), arrayLength(&q) > 0u);
  var query: array<vec4f, D4>;
  for (var c = 0u; c < width; c++) { query[c] = vec4f(q[(t * HEADS + head) * D4 + c]) * SCALE; }
  let visible = visible_keys(s, t - s.start);
  let most = visible_keys(s, min(chunk.y + CHUNK, end) - 1u - s.start);

  var top = LOWEST;
  var sum = 0.0;
  var o: array<vec4f, D4>;
  for (var n = 0u; n < most; n += KEYS) {
    var key: array<u32, KEYS>; // where each key begins, in vec4s; its value lies KV_HEADS heads behind
    var p = array<f32, KEYS>(); // without a value, Dawn would not clear it again each time round
    for (var j = 0u; j < KEYS; j++) {
      key[j] = (cache_row(s, min(n + j, most - 1u)) * 2 * KV_HEADS + head / (HEADS / KV_HEADS)) * D4;
    }
    for (var c = 0u; c < width; c++) {
      for (var j = 0u; j < KEYS; j++) { p[j] += dot(query[c], vec4f(kv[key[j] + c])); }
    }
    var higher = top;
    for (var j = 0u; j < KEYS; j++) {
      p[j] = select(LOWEST, p[j], n + j < visible);
      higher = max(higher, p[j]);
    }
    let keep = exp(top - higher);
    top = higher;
    sum *= keep;
    for (var j = 0u; j < KEYS; j++) {
      p[j] = exp(p[j] - top);
      sum += p[j];
    }
    for (var c = 0u; c < width; c++) {
      var v = o[c] * keep;
      for (var j = 0u; j < KEYS; j++) { v += p[j] * vec4f(kv[key[j] + KV_HEADS * D4 + c]); }
      o[c] = v;
    }
  }
  for (var c = 0u; c < width; c++) { y[(t * HEADS + head) * D4 + c] = vec4<Y>(gated(o[c] / sum, t, head, c)); }
}
