// q[t, h] = rope(x_q[t, h])                               x row: all queries, then keys, then values
// kv[row of t] = [rope(x_k[t, h]) | x_v[t, h]]            per KV head
// A thread per vec4 of a head.
// needs: lib/step.wgsl, lib/segment.wgsl, lib/rotary.wgsl; alias X, ROPE, KV, Q;
//   const WORKGROUP, HEADS, KV_HEADS, D, INTERLEAVED

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> rope: array<vec2<ROPE>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> segmentOf: array<u32>;
@group(0) @binding(4) var<storage, read_write> q: array<vec4<Q>>;
@group(0) @binding(5) var<storage, read_write> kv: array<vec4<KV>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let c = at % D4;
  let unit = at / D4 % UNITS;
  let t = at / D4 / UNITS;
  if (t >= step.tokens) { return; }
  if (unit < HEADS) {
    q[(t * HEADS + unit) * D4 + c] = vec4<Q>(rotated(t, unit, c));
    return;
  }
  let s = segments[segmentOf[t]];
  let row = s.kv_start + s.kv_before + t - s.start;
  var y = vec4f(x[at]);
  if (unit < HEADS + KV_HEADS) { y = rotated(t, unit, c); }
  kv[(row * 2u * KV_HEADS + unit - HEADS) * D4 + c] = vec4<KV>(y);
}
