// q[t, h] = rope(rms(x_q[t, h]) * (1 + norms[0]))                  x row: per head [query D | gate D], then k, then v
// kv[row of t] = [rope(rms(x_k[t, h]) * (1 + norms[1])) | x_v]     per KV head
// rms(x) = x / sqrt(mean(x^2) + EPS); rope turns pairs (i, i + ROTARY / 2) of the first ROTARY values.
// A thread per (token, head of q, k or v, slice): SLICES neighbours share a head and write every SLICES-th vec4; how
// they come by its sum of squares is a piece.
// needs: lib/step.wgsl, lib/segment.wgsl, lib/sum_alone.wgsl or lib/sum_shared.wgsl; alias X, NORMS, ROPE, KV, Q;
//        const WORKGROUP, HEADS, KV_HEADS, D, ROTARY, EPS, SLICES

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> norms: array<vec4<NORMS>>;
@group(0) @binding(2) var<storage, read> rope: array<vec4<ROPE>>;
@group(0) @binding(3) var<storage, read> segments: array<Segment>;
@group(0) @binding(4) var<storage, read> segmentOf: array<u32>;
@group(0) @binding(5) var<storage, read_write> q: array<vec4<Q>>;
@group(0) @binding(6) var<storage, read_write> kv: array<vec4<KV>>;

// In vec4s: a head, half of what is turned, and the columns of a row of x where keys start and where it ends.
const D4 = D / 4;
const HALF = ROTARY / 8;
const KEYS = 2 * HEADS * D4;
const WIDTH = KEYS + 2 * KV_HEADS * D4;
const UNITS = HEADS + 2 * KV_HEADS; // query heads, key heads, value heads

alias Sum = f32;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let id = flat_group(group) * WORKGROUP + lane;
  let slice = id % SLICES;
  let unit = id / SLICES % UNITS;
  let t = min(id / SLICES / UNITS, step.tokens - 1u); // whoever has no token still meets the others at their barriers

  let s = segments[segmentOf[t]];
  let cache = (s.kv_start + s.kv_before + t - s.start) * 2 * KV_HEADS * D4;
  let is_query = unit < HEADS;
  let is_value = unit >= HEADS + KV_HEADS;
  let head = t * WIDTH + select(KEYS + (unit - HEADS) * D4, unit * 2 * D4, is_query);

  var squares = 0.0;
  for (var c = first_of(slice); c < D4; c += STRIDE) {
    let v = vec4f(x[head + c]);
    squares += dot(v, v);
  }
  let scale = inverseSqrt(slices_sum(squares, lane) / f32(D) + f32(EPS));
  if (t != id / SLICES / UNITS) { return; }
  let norm = select(u32(D4), 0u, is_query);

  for (var c = slice; c < D4; c += SLICES) {
    var y = vec4f(x[head + c]);
    if (!is_value) {
      y *= scale * (1.0 + vec4f(norms[norm + c]));
      if (c < 2 * HALF) {
        let first = c < HALF;
        let partner = select(c - HALF, c + HALF, first);
        let turned = vec4f(x[head + partner]) * scale * (1.0 + vec4f(norms[norm + partner]));
        let angle = t * 2 * HALF + c % HALF;
        y = y * vec4f(rope[angle]) + select(turned, -turned, first) * vec4f(rope[angle + HALF]);
      }
    }
    if (is_query) {
      q[(t * HEADS + unit) * D4 + c] = vec4<Q>(y);
    } else {
      kv[cache + (unit - HEADS) * D4 + c] = vec4<KV>(y);
    }
  }
}
