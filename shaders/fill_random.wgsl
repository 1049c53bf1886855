// w[i] = LOW + (HIGH - LOW) u(i), u uniform in [0, 1): a hash of the seed and i        one invocation per 16 bytes
// The seed is hashed too, so that neighbouring seeds share nothing.
// needs: lib/step, lib/hash; alias W; const ELEMENTS, FORMAT (0 f32, 1 f16, 2 bf16), LOW, HIGH, WORKGROUP

@group(0) @binding(0) var<storage, read> seed: array<u32>;
@group(0) @binding(1) var<storage, read_write> w: array<W>;

fn value(i: u32) -> f32 { return LOW + (HIGH - LOW) * f32(hash(hash(seed[0]) + i) >> 8u) / 16777216.0; }

// To nearest even.
fn to_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn word(i: u32) -> u32 {
  if (FORMAT == 0u) { return bitcast<u32>(value(i)); }
  let pair = vec2f(value(2u * i), value(2u * i + 1u));
  if (FORMAT == 1u) { return pack2x16float(pair); }
  return to_bf16(pair.x) | (to_bf16(pair.y) << 16u);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let per = select(8u, 4u, FORMAT == 0u);
  if (at * per >= ELEMENTS) { return; }
  w[at] = vec4u(word(4u * at), word(4u * at + 1u), word(4u * at + 2u), word(4u * at + 3u));
}
