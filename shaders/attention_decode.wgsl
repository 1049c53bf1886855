// rotary_append.wgsl and the first half of attention.wgsl for rows of one new token each, which reads the cache of
// earlier runs and takes its own key and value from x. The keys of a row are shared out among SPLITS workgroups, which
// leave for each head the sum of values under their own greatest score, the sum of weights and that score, for
// attention_join.wgsl. A workgroup serves up to four heads that share a key head: vec4s of scores are of these.
// TEAM lanes share a key or value, eight columns each, and TEAMS of them take turns; keys pass in tiles of KEYS under an
// online softmax. Turns are as many as a constant says and read before any is needed, so that compilers overlap them.
// needs: lib/step, lib/segment, lib/keys, lib/rotary, lib/eight; alias X, ROPE, KV; const HEADS, KV_HEADS, D, INTERLEAVED, SCALE,
//   CAUSAL, SPLITS, KEYS, at least 8, WORKGROUP, at least KEYS, SPACE = max(KEYS (D/8 + 1), 4 WORKGROUP)

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> rope: array<vec2<ROPE>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> segmentOf: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>; // [T, HEADS, SPLITS, D + 4]: sums, then weights, score
@group(0) @binding(5) var<storage, read_write> kv: array<vec4<KV>>;

const GROUP = HEADS / KV_HEADS;
const BLOCKS = (GROUP + 3) / 4; // workgroups for a key head
const TEAM = D / 8u;
const TEAMS = WORKGROUP / TEAM;
const HALF = TEAMS / 2u;
const TURNS = KEYS / TEAMS;
const PITCH = TEAM + 1u; // odd, against bank conflicts
const WIDE = D / 4 + 1;
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

var<workgroup> parts: array<vec4f, SPACE>;
var<workgroup> scores: array<vec4f, KEYS>;
var<workgroup> tops: array<vec4f, 8>;

// What a team leaves for others, and what is there already with what it has itself.
fn put(at: u32, e: Eight) {
  parts[at] = e.lo;
  parts[at + 1u] = e.hi;
}
fn leave(at: u32, o0: Eight, o1: Eight, o2: Eight, o3: Eight) {
  put(at, o0);
  put(at + D4, o1);
  put(at + 2u * D4, o2);
  put(at + 3u * D4, o3);
}
fn plus(at: u32, e: Eight) -> Eight { return Eight(parts[at] + e.lo, parts[at + 1u] + e.hi); }

fn turned(t: u32, unit: u32, c: u32, scale: f32) -> Eight {
  return scaled(Eight(rotated(t, unit, c), rotated(t, unit, c + 1u)), scale);
}

// Eight columns of key or value n, of what the cache holds; of the new one those of the one before, which nobody uses.
fn cached(s: Segment, n: u32, most: u32, column: u32) -> Eight {
  let at = cache_row(s, min(n, max(most, 2u) - 2u)) * 2u * KV_HEADS * D4 + column;
  return Eight(vec4f(kv[at]), vec4f(kv[at + 1u]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let kv_head = group.x / BLOCKS;
  let block = group.x % BLOCKS * 4u;
  let heads = min(GROUP - block, 4u);
  let head = kv_head * GROUP + block;
  let t = group.y;
  let s = segments[segmentOf[t]];
  let team = lane / TEAM;
  let c = lane % TEAM * 2u;
  let key_column = kv_head * D4 + c;
  let value_column = key_column + KV_HEADS * D4;

  let q0 = turned(t, head, c, SCALE);
  let q1 = turned(t, head + min(1u, heads - 1u), c, SCALE);
  let q2 = turned(t, head + min(2u, heads - 1u), c, SCALE);
  let q3 = turned(t, head + min(3u, heads - 1u), c, SCALE);
  let own_key = turned(t, HEADS + kv_head, c, 1.0);
  let given = (t * UNITS + HEADS) * D4 + value_column;
  let own_value = Eight(vec4f(x[given]), vec4f(x[given + 1u]));
  if (group.z == 0u && block == 0u && team == 0u) {
    let to = (s.kv_start + s.kv_before) * 2u * KV_HEADS * D4;
    kv[to + key_column] = vec4<KV>(own_key.lo);
    kv[to + key_column + 1u] = vec4<KV>(own_key.hi);
    kv[to + value_column] = vec4<KV>(own_value.lo);
    kv[to + value_column + 1u] = vec4<KV>(own_value.hi);
  }

  let most = visible_keys(s, 0u);
  let share = (most + SPLITS - 1u) / SPLITS;
  let begin = min(group.z * share, most);
  let end = min(begin + share, most);
  var top = vec4f(LOWEST);
  var sum = vec4f();
  var o0: Eight; var o1: Eight; var o2: Eight; var o3: Eight;
  for (var first = begin; first < end; first += KEYS) {
    for (var i = 0u; i < TURNS; i++) {
      let j = i * TEAMS + team;
      let key = either(cached(s, first + j, most, key_column), own_key, first + j + 1u == most);
      parts[j * PITCH + lane % TEAM] = vec4f(product(q0, key), product(q1, key), product(q2, key), product(q3, key));
    }
    workgroupBarrier();
    if (lane < KEYS) {
      var score = vec4f();
      for (var i = 0u; i < TEAM; i++) { score += parts[lane * PITCH + i]; }
      scores[lane] = select(vec4f(LOWEST), score, first + lane < end);
    }
    workgroupBarrier();
    if (lane < 8u) {
      var m = scores[lane];
      for (var j = 8u; j < KEYS; j += 8u) { m = max(m, scores[lane + j]); }
      tops[lane] = m;
    }
    workgroupBarrier();
    var higher = top;
    for (var i = 0u; i < 8u; i++) { higher = max(higher, tops[i]); }
    let keep = exp(top - higher);
    top = higher;
    sum *= keep;
    o0 = scaled(o0, keep.x);
    o1 = scaled(o1, keep.y);
    o2 = scaled(o2, keep.z);
    o3 = scaled(o3, keep.w);
    for (var i = 0u; i < TURNS; i++) {
      let j = i * TEAMS + team;
      let value = either(cached(s, first + j, most, value_column), own_value, first + j + 1u == most);
      let p = exp(scores[j] - top);
      sum += p;
      o0 = sum_of(o0, scaled(value, p.x));
      o1 = sum_of(o1, scaled(value, p.y));
      o2 = sum_of(o2, scaled(value, p.z));
      o3 = sum_of(o3, scaled(value, p.w));
    }
  }

  // Teams add up: what half of them have takes the place of parts of scores, then the others add theirs.
  workgroupBarrier();
  if (team >= HALF) { leave((team - HALF) * D + c, o0, o1, o2, o3); }
  if (lane % TEAM == 0u) { scores[team] = sum; }
  workgroupBarrier();
  if (team < HALF) {
    let at = team * D + c;
    leave(at, plus(at, o0), plus(at + D4, o1), plus(at + 2u * D4, o2), plus(at + 3u * D4, o3));
  }
  workgroupBarrier();
  for (var d = lane; d < heads * D4; d += WORKGROUP) {
    var all = vec4f();
    for (var i = 0u; i < HALF; i++) { all += parts[i * D + d]; }
    y[((t * HEADS + head + d / D4) * SPLITS + group.z) * WIDE + d % D4] = all;
  }
  if (lane < heads) {
    var weights = vec4f();
    for (var i = 0u; i < TEAMS; i++) { weights += scores[i]; }
    y[((t * HEADS + head + lane) * SPLITS + group.z) * WIDE + D4] = vec4f(component(weights, lane), component(top, lane), 0.0, 0.0);
  }
}
