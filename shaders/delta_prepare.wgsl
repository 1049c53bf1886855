// qk[t] = [q^ | k^] per key head: q^ = q rsqrt(sum q^2 + 1e-6) DK^-0.5, k^ = k rsqrt(sum k^2 + 1e-6)
// gates[t] = [g | beta] per value head: g = -exp(a_log) softplus(a + dt_bias), beta = sigmoid(b)
// One invocation per four columns of qk or per value head. Those of a head each add up the whole head, reading the same
// words at the same time: cheaper than a barrier, and the sum has one order everywhere.
// needs: lib/step, lib/activation; const WORKGROUP, NK, NV, DK, CHANNELS, WIDE, B_COLUMN

@group(0) @binding(0) var<storage, read> c: array<vec4f>;       // [T, CHANNELS]: q, k, v after the convolution
@group(0) @binding(1) var<storage, read> x: array<f32>;       // [T, WIDE], b from B_COLUMN on, then a
@group(0) @binding(2) var<storage, read> a_log: array<f32>;
@group(0) @binding(3) var<storage, read> dt_bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> qk: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> gates: array<f32>;

const HEAD_QUADS = DK / 4u;
const QUADS = 2u * NK * HEAD_QUADS;

fn normalise(t: u32, quad: u32) {
  let row = t * (CHANNELS / 4u);
  let head = row + quad - quad % HEAD_QUADS;
  var sum = 0.0;
  for (var i = head; i < head + HEAD_QUADS; i++) { sum += dot(c[i], c[i]); }
  let scale = select(1.0, 1.0 / sqrt(f32(DK)), quad < NK * HEAD_QUADS);
  qk[t * QUADS + quad] = c[row + quad] * (inverseSqrt(sum + 1e-6) * scale);
}

fn gate(t: u32, n: u32) {
  let b = x[t * WIDE + B_COLUMN + n];
  let a = x[t * WIDE + B_COLUMN + NV + n];
  // exp(-88) is below f32's smallest normal number, so a stronger decay is the same one: nothing stays. The floor keeps
  // an overflowing softplus from making -inf, and -inf + inf = NaN out of sums of g.
  gates[t * 2u * NV + n] = max(-exp(a_log[n]) * softplus(a + dt_bias[n]), -88.0);
  gates[t * 2u * NV + NV + n] = sigmoid(b);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let i = flat_group(group) * WORKGROUP + lane;
  let t = i / (QUADS + NV);
  let part = i % (QUADS + NV);
  if (t >= step.tokens) { return; }
  if (part < QUADS) { normalise(t, part); } else { gate(t, part - QUADS); }
}
