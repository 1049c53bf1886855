// qkv[t] = [q^ | k^ | v] per head: q^ = q rsqrt(sum q^2 + 1e-6) DK^-0.5, k^ = k rsqrt(sum k^2 + 1e-6), v as it is
// gates[t] = [g | beta] per value head, see lib/gates
// One invocation per four columns of qkv or per value head. Those of a head each add up the whole head, reading the
// same words at the same time: cheaper than a barrier, and the sum has one order everywhere.
// needs: lib/step, lib/activation, lib/gates; alias X, QKV; const WORKGROUP, NK, NV, DK, CHANNELS, WIDE, B_COLUMN

@group(0) @binding(0) var<storage, read> c: array<vec4f>;         // [T, CHANNELS]: q, k, v after the convolution
@group(0) @binding(1) var<storage, read> x: array<X>;             // [T, WIDE], b from B_COLUMN on, then a
@group(0) @binding(2) var<storage, read> gate_weights: array<f32>; // [2, NV]: A_log, dt_bias
@group(0) @binding(3) var<storage, read_write> qkv: array<vec4<QKV>>;
@group(0) @binding(4) var<storage, read_write> gates: array<f32>;

const HEAD_QUADS = DK / 4u;
const QUADS = CHANNELS / 4u;

fn normalise(t: u32, quad: u32) {
  let row = t * QUADS;
  var scale = 1.0;
  if (quad < 2u * NK * HEAD_QUADS) {
    let head = row + quad - quad % HEAD_QUADS;
    var sum = 0.0;
    for (var i = head; i < head + HEAD_QUADS; i++) { sum += dot(c[i], c[i]); }
    scale = inverseSqrt(sum + 1e-6) * select(1.0, 1.0 / sqrt(f32(DK)), quad < NK * HEAD_QUADS);
  }
  qkv[row + quad] = vec4<QKV>(c[row + quad] * scale);
}

fn gate(t: u32, n: u32) {
  let b = t * WIDE + B_COLUMN + n;
  gates[t * 2u * NV + n] = log_decay(f32(x[b + NV]), gate_weights[n], gate_weights[NV + n]);
  gates[t * 2u * NV + NV + n] = sigmoid(f32(x[b]));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let i = flat_group(group) * WORKGROUP + lane;
  let t = i / (QUADS + NV);
  let part = i % (QUADS + NV);
  if (t >= step.tokens) { return; }
  if (part < QUADS) { normalise(t, part); } else { gate(t, part - QUADS); }
}
