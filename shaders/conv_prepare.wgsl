// causal_conv and delta_prepare in one: per head of q, k or v, with m = the first CHANNELS columns of x,
//   c[t] = silu(sum_j taps[j] m[t - (KERNEL - 1) + j]);   q^, k^: c normalised per head, v = c;   gates from b and a
// A workgroup takes 4 tokens of a chunk and WORKGROUP / SLICES heads; SLICES lanes share a head, each four columns of
// it for all 4 tokens, so that a row of x is read once for its taps and the sums of 4 tokens are one vec4. Rows before
// a segment's start come from its state slot (0: zeros); its last lanes leave its last rows of m in the slot it writes.
// needs: lib/segment, lib/activation, lib/gates, lib/sum_shared;
//   const WORKGROUP, SLICES, NK, NV, DK, DV, CHANNELS, WIDE (a multiple of 4), B_COLUMN, KERNEL

@group(0) @binding(0) var<storage, read> x: array<vec4f>;              // [T, WIDE]: q k v, z, b, a
@group(0) @binding(1) var<storage, read> w: array<f32>;                // [CHANNELS, KERNEL]
@group(0) @binding(2) var<storage, read> gate_weights: array<f32>;     // [2, NV]: A_log, dt_bias
@group(0) @binding(3) var<storage, read> segments: array<Segment>;
@group(0) @binding(4) var<storage, read> chunks: array<vec2u>;         // segment, first token
@group(0) @binding(5) var<storage, read_write> qkv: array<vec4f>;      // [T, CHANNELS]
@group(0) @binding(6) var<storage, read_write> gates: array<f32>;      // [T, 2 NV]
@group(0) @binding(7) var<storage, read_write> state: array<vec4f>;    // [slot, KERNEL - 1, CHANNELS], oldest row first

alias Sum = vec4f; // of a token each
const QUADS = CHANNELS / 4u;
const PAST = KERNEL - 1;

fn slot_row(slot: u32, row: i32, quad: u32) -> u32 { return (slot * u32(PAST) + u32(row)) * QUADS + quad; }

// Four columns of m at a position counted from the segment's start; PAST rows lie before it.
fn m_at(segment: Segment, position: i32, quad: u32) -> vec4f {
  if (position >= 0) { return x[(segment.start + u32(position)) * (WIDE / 4u) + quad]; }
  if (segment.state_from == 0u) { return vec4f(); }
  return state[slot_row(segment.state_from, position + PAST, quad)];
}

fn x_at(t: u32, column: u32) -> f32 {
  let i = t * WIDE + column;
  return x[i / 4u][i % 4u];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let segment = segments[chunks[group.x].x];
  let first = chunks[group.x].y + group.y * 4u;
  let end = segment.start + segment.length;
  if (first >= end) { return; }

  let head = group.z * (WORKGROUP / SLICES) + lane / SLICES; // of q, k and v in a row
  let slice = lane % SLICES;
  let is_value = head >= 2u * NK;
  let width = select(DK / 4u, DV / 4u, is_value);
  let start = select(head * DK, 2u * NK * DK + (head - 2u * NK) * DV, is_value) / 4u;
  let alive = head < 2u * NK + NV && slice < width;
  let quad = select(0u, start + slice, alive); // all lanes meet at the barriers

  let oldest = i32(first - segment.start) - PAST;
  let last = i32(segment.length) - 1;
  var y0: vec4f; // of a token each, by name: GPU compilers put what a variable indexes into memory
  var y1: vec4f;
  var y2: vec4f;
  var y3: vec4f;
  var m0 = m_at(segment, oldest, quad); // the rows under a tap
  var m1 = m_at(segment, min(oldest + 1, last), quad);
  var m2 = m_at(segment, min(oldest + 2, last), quad);
  for (var j = 0; j < KERNEL; j++) {
    let m3 = m_at(segment, min(oldest + j + 3, last), quad);
    let at = quad * 4u * KERNEL + u32(j);
    let tap = vec4f(w[at], w[at + KERNEL], w[at + 2u * KERNEL], w[at + 3u * KERNEL]);
    y0 += m0 * tap;
    y1 += m1 * tap;
    y2 += m2 * tap;
    y3 += m3 * tap;
    m0 = m1;
    m1 = m2;
    m2 = m3;
  }
  y0 = silu4(y0);
  y1 = silu4(y1);
  y2 = silu4(y2);
  y3 = silu4(y3);
  let squares = vec4f(dot(y0, y0), dot(y1, y1), dot(y2, y2), dot(y3, y3));
  let sums = slices_sum(select(vec4f(), squares, alive), lane);
  if (!alive) { return; }

  let scale = select(1.0, 1.0 / sqrt(f32(DK)), head < NK);
  let norm = select(inverseSqrt(sums + 1e-6) * scale, vec4f(1.0), is_value);
  let to = first * QUADS + quad;
  qkv[to] = y0 * norm.x;
  if (first + 1u < end) { qkv[to + QUADS] = y1 * norm.y; }
  if (first + 2u < end) { qkv[to + 2u * QUADS] = y2 * norm.z; }
  if (first + 3u < end) { qkv[to + 3u * QUADS] = y3 * norm.w; }
  if (is_value) {
    let n = head - 2u * NK;
    for (var t = first + slice; t < min(first + 4u, end); t += width) {
      gates[t * 2u * NV + n] = log_decay(x_at(t, B_COLUMN + NV + n), gate_weights[n], gate_weights[NV + n]);
      gates[t * 2u * NV + NV + n] = sigmoid(x_at(t, B_COLUMN + n));
    }
  }
  if (segment.state_to != 0u && first + 4u >= end) {
    for (var j = 0; j < PAST; j++) {
      state[slot_row(segment.state_to, j, quad)] = m_at(segment, last + 1 - PAST + j, quad);
    }
  }
}
