// causal_conv and delta_prepare in one: per head of q, k or v, with m = the first CHANNELS columns of x,
//   c[t] = silu(sum_j taps[j] m[t - 3 + j]);   q^, k^: c normalised per head, v = c;   gates from b and a
// A workgroup takes TOKENS tokens of a chunk and WORKGROUP / SLICES heads; SLICES lanes share a head, each four columns
// of it, for 4 tokens at a time, so that a row of x is read once for its taps and the sums of 4 tokens are one vec4.
// Rows before a segment's start come from its state slot (0: zeros); its last lanes leave its last rows of m in the
// slot it writes.
// needs: lib/segment, lib/activation, lib/gates, lib/sum_shared; alias X, QKV;
//   const WORKGROUP, SLICES, TOKENS, NK, NV, DK, DV, CHANNELS, WIDE (a multiple of 4), B_COLUMN

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;            // [T, WIDE]: q k v, z, b, a
@group(0) @binding(1) var<storage, read> w: array<vec4f>;              // [CHANNELS, 4]: the taps, the last of the token
@group(0) @binding(2) var<storage, read> gate_weights: array<f32>;     // [2, NV]: A_log, dt_bias
@group(0) @binding(3) var<storage, read> segments: array<Segment>;
@group(0) @binding(4) var<storage, read> chunks: array<vec2u>;         // segment, first token
@group(0) @binding(5) var<storage, read_write> qkv: array<vec4<QKV>>;  // [T, CHANNELS]
@group(0) @binding(6) var<storage, read_write> gates: array<f32>;      // [T, 2 NV]
@group(0) @binding(7) var<storage, read_write> state: array<vec4f>;    // [slot, 3, CHANNELS], oldest row first

alias Sum = vec4f; // of a token each
const QUADS = CHANNELS / 4u;
const HEADS = WORKGROUP / SLICES; // of a workgroup
const PAST = 3;

fn slot_row(slot: u32, row: i32, quad: u32) -> u32 { return (slot * u32(PAST) + u32(row)) * QUADS + quad; }

// Four columns of m at a position counted from the segment's start; PAST rows lie before it.
fn m_at(segment: Segment, position: i32, quad: u32) -> vec4f {
  if (position >= 0) { return vec4f(x[(segment.start + u32(position)) * (WIDE / 4u) + quad]); }
  if (segment.state_from == 0u) { return vec4f(); }
  return state[slot_row(segment.state_from, position + PAST, quad)];
}

fn x_at(t: u32, column: u32) -> f32 {
  let i = t * WIDE + column;
  return f32(x[i / 4u][i % 4u]);
}

fn put(t: u32, end: u32, quad: u32, y: vec4f) { if (t < end) { qkv[t * QUADS + quad] = vec4<QKV>(y); } }

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let segment = segments[chunks[group.x].x];
  let start = chunks[group.x].y + group.y * TOKENS;
  let end = segment.start + segment.length;
  if (start >= end) { return; }

  let head = group.z * HEADS + lane / SLICES; // of q, k and v in a row
  let slice = lane % SLICES;
  let is_value = head >= 2u * NK;
  let width = select(DK / 4u, DV / 4u, is_value);
  let first_quad = select(head * DK, 2u * NK * DK + (head - 2u * NK) * DV, is_value) / 4u;
  let alive = head < 2u * NK + NV && slice < width;
  let quad = select(0u, first_quad + slice, alive); // all lanes meet at the barriers
  let ends = select(0u, end, alive); // of what this lane writes
  let scale = select(1.0, 1.0 / sqrt(f32(DK)), head < NK);

  let taps = transpose(mat4x4f(w[quad * 4u], w[quad * 4u + 1u], w[quad * 4u + 2u], w[quad * 4u + 3u]));
  let last = i32(segment.length) - 1;
  let oldest = i32(start - segment.start) - PAST;
  var m0 = m_at(segment, oldest, quad); // by name: GPU compilers put what a variable indexes into memory
  var m1 = m_at(segment, min(oldest + 1, last), quad);
  var m2 = m_at(segment, min(oldest + 2, last), quad);
  for (var first = start; first < min(start + TOKENS, end); first += 4u) {
    let position = i32(first - segment.start);
    let m3 = m_at(segment, position, quad);
    let m4 = m_at(segment, min(position + 1, last), quad);
    let m5 = m_at(segment, min(position + 2, last), quad);
    let m6 = m_at(segment, min(position + 3, last), quad);
    let y0 = silu4(m0 * taps[0] + m1 * taps[1] + m2 * taps[2] + m3 * taps[3]);
    let y1 = silu4(m1 * taps[0] + m2 * taps[1] + m3 * taps[2] + m4 * taps[3]);
    let y2 = silu4(m2 * taps[0] + m3 * taps[1] + m4 * taps[2] + m5 * taps[3]);
    let y3 = silu4(m3 * taps[0] + m4 * taps[1] + m5 * taps[2] + m6 * taps[3]);
    m0 = m4;
    m1 = m5;
    m2 = m6;
    var norm = vec4f(1.0);
    if (group.z * HEADS < 2u * NK) { // some head of q or k
      let squares = vec4f(dot(y0, y0), dot(y1, y1), dot(y2, y2), dot(y3, y3));
      let sums = slices_sum(select(vec4f(), squares, alive), lane);
      norm = select(inverseSqrt(sums + 1e-6) * scale, vec4f(1.0), is_value);
    }
    put(first, ends, quad, y0 * norm.x);
    put(first + 1u, ends, quad, y1 * norm.y);
    put(first + 2u, ends, quad, y2 * norm.z);
    put(first + 3u, ends, quad, y3 * norm.w);
  }
  if (!alive) { return; }
  if (is_value) {
    let n = head - 2u * NK;
    for (var t = start + slice; t < min(start + TOKENS, end); t += width) {
      gates[t * 2u * NV + n] = log_decay(x_at(t, B_COLUMN + NV + n), gate_weights[n], gate_weights[NV + n]);
      gates[t * 2u * NV + NV + n] = sigmoid(x_at(t, B_COLUMN + n));
    }
  }
  if (segment.state_to != 0u && start + TOKENS >= end) {
    for (var j = 0; j < PAST; j++) {
      state[slot_row(segment.state_to, j, quad)] = m_at(segment, last + 1 - PAST + j, quad);
    }
  }
}
