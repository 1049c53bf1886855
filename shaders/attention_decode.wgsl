// rotary_append.wgsl and attention.wgsl for rows of one new token each, which reads the cache of earlier runs and takes
// its own key and value from x. A workgroup per (head, row). TEAM lanes share a key or value, eight columns each, and
// TEAMS of them take turns; keys pass in tiles of KEYS under an online softmax. Parts of products meet in workgroup
// memory, where every lane finds the greatest score by itself: two barriers a tile.
// needs: lib/step, lib/segment, lib/keys, lib/rotary; alias X, ROPE, Y, KV;
//   const HEADS, KV_HEADS, D, INTERLEAVED, SCALE, CAUSAL, KEYS, SPACE = max(KEYS (D/8 + 1), 8 WORKGROUP), WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> rope: array<vec2<ROPE>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> segmentOf: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;
@group(0) @binding(5) var<storage, read_write> kv: array<vec4<KV>>;

const TEAM = D / 8u;
const TEAMS = WORKGROUP / TEAM;
const PITCH = TEAM + 1u; // odd, against bank conflicts
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

var<workgroup> parts: array<f32, SPACE>;
var<workgroup> scores: array<f32, KEYS>;

struct Eight { lo: vec4f, hi: vec4f }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let head = group.x;
  let t = group.y;
  let s = segments[segmentOf[t]];
  let kv_head = head / (HEADS / KV_HEADS);
  let team = lane / TEAM;
  let c = lane % TEAM * 2u;

  let query = Eight(rotated(t, head, c) * SCALE, rotated(t, head, c + 1u) * SCALE);
  let own_key = Eight(rotated(t, HEADS + kv_head, c), rotated(t, HEADS + kv_head, c + 1u));
  let given = (t * UNITS + HEADS + KV_HEADS + kv_head) * D4 + c;
  let own_value = Eight(vec4f(x[given]), vec4f(x[given + 1u]));
  if (head % (HEADS / KV_HEADS) == 0u && team == 0u) {
    let to = ((s.kv_start + s.kv_before) * 2u * KV_HEADS + kv_head) * D4 + c;
    kv[to] = vec4<KV>(own_key.lo);
    kv[to + 1u] = vec4<KV>(own_key.hi);
    kv[to + KV_HEADS * D4] = vec4<KV>(own_value.lo);
    kv[to + KV_HEADS * D4 + 1u] = vec4<KV>(own_value.hi);
  }

  let most = visible_keys(s, 0u);
  var top = LOWEST;
  var sum = 0.0;
  var o = Eight();
  for (var first = 0u; first < most; first += KEYS) {
    let keys = min(u32(KEYS), most - first);
    for (var j = team; j < keys; j += TEAMS) {
      var key = own_key;
      if (first + j + 1u < most) {
        let at = (cache_row(s, first + j) * 2u * KV_HEADS + kv_head) * D4 + c;
        key = Eight(vec4f(kv[at]), vec4f(kv[at + 1u]));
      }
      parts[j * PITCH + lane % TEAM] = dot(query.lo, key.lo) + dot(query.hi, key.hi);
    }
    workgroupBarrier();
    for (var j = lane; j < KEYS; j += WORKGROUP) {
      var score = LOWEST;
      if (j < keys) {
        score = 0.0;
        for (var i = 0u; i < TEAM; i++) { score += parts[j * PITCH + i]; }
      }
      scores[j] = score;
    }
    workgroupBarrier();
    var higher = top;
    for (var j = 0u; j < KEYS; j++) { higher = max(higher, scores[j]); }
    let keep = exp(top - higher);
    top = higher;
    sum *= keep;
    o = Eight(o.lo * keep, o.hi * keep);
    for (var j = team; j < keys; j += TEAMS) {
      let p = exp(scores[j] - top);
      var value = own_value;
      if (first + j + 1u < most) {
        let at = ((cache_row(s, first + j) * 2u + 1u) * KV_HEADS + kv_head) * D4 + c;
        value = Eight(vec4f(kv[at]), vec4f(kv[at + 1u]));
      }
      sum += p;
      o = Eight(o.lo + p * value.lo, o.hi + p * value.hi);
    }
  }

  workgroupBarrier();
  parts[lane * 8u] = o.lo.x;
  parts[lane * 8u + 1u] = o.lo.y;
  parts[lane * 8u + 2u] = o.lo.z;
  parts[lane * 8u + 3u] = o.lo.w;
  parts[lane * 8u + 4u] = o.hi.x;
  parts[lane * 8u + 5u] = o.hi.y;
  parts[lane * 8u + 6u] = o.hi.z;
  parts[lane * 8u + 7u] = o.hi.w;
  if (lane % TEAM == 0u) { scores[team] = sum; }
  workgroupBarrier();
  for (var d = lane; d < D; d += WORKGROUP) {
    var all = 0.0;
    var value = 0.0;
    for (var i = 0u; i < TEAMS; i++) {
      all += scores[i];
      value += parts[i * D + d];
    }
    y[(t * HEADS + head) * D + d] = Y(value / all);
  }
}
