// The gated delta rule, token by token; per value head, with S [DK, DV]:
//   S <- exp(g) S;  u = beta (v - S^T k);  o = S^T q + (q . k) u;  S <- S + k u^T
// (o = S^T q with the updated S, without a second pass.) Columns of S do not depend on each other: an invocation owns
// one of one segment and head; no barriers. Loops run over buffer indices on purpose: from 0 to QUADS, software drivers
// unroll them, which takes a hundred times longer to compile and runs slower.
// needs: lib/segment; const WORKGROUP, NK, NV, DK, DV, CHANNELS

@group(0) @binding(0) var<storage, read> qkv: array<vec4f>;       // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> gates: array<f32>;       // [T, 2 NV]: g, beta
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read_write> o: array<f32>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>; // [slot, NV, DK, DV]

const QUADS = DK / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let column = group.x * WORKGROUP + lane;
  if (column >= DV) { return; }
  let segment = segments[group.y];
  let n = group.z;
  let head = n / (NV / NK);

  var s: array<vec4f, QUADS>;
  if (segment.state_from != 0u) {
    let at = (segment.state_from * NV + n) * DK * DV + column;
    for (var d = at; d < at + DK * DV; d += 4u * DV) {
      s[(d - at) / (4u * DV)] = vec4f(state[d], state[d + DV], state[d + 2u * DV], state[d + 3u * DV]);
    }
  }

  for (var t = segment.start; t < segment.start + segment.length; t++) {
    let k = t * (CHANNELS / 4u) + (NK + head) * QUADS;
    let decay = exp(gates[t * 2u * NV + n]);
    let beta = gates[(t * 2u + 1u) * NV + n];
    var sk = 0.0;
    var sq = 0.0;
    var kq = 0.0;
    for (var i = k; i < k + QUADS; i++) {
      let ki = qkv[i];
      let qi = qkv[i - NK * QUADS];
      let si = s[i - k] * decay;
      s[i - k] = si;
      sk += dot(ki, si);
      sq += dot(qi, si);
      kq += dot(ki, qi);
    }
    let v = t * CHANNELS + 2u * NK * DK + n * DV + column;
    let u = beta * (qkv[v / 4u][v % 4u] - sk);
    o[(t * NV + n) * DV + column] = sq + kq * u;
    for (var i = k; i < k + QUADS; i++) { s[i - k] += qkv[i] * u; }
  }

  if (segment.state_to != 0u) {
    let at = (segment.state_to * NV + n) * DK * DV + column;
    for (var d = at; d < at + DK * DV; d += DV) {
      let row = (d - at) / DV;
      state[d] = s[row / 4u][row % 4u];
    }
  }
}
