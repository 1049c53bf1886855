// gated(): o * sigmoid(gate), the gate of a head lying behind its query in each row (the last of the reads).
// needs: lib/activation.wgsl; alias GATE; const D, GATE_WIDTH, Y_BINDING
@group(0) @binding(Y_BINDING - 1) var<storage, read> gate: array<vec4<GATE>>;

fn gated(o: vec4f, token: u32, head: u32, column: u32) -> vec4f {
  let g = vec4f(gate[(token * GATE_WIDTH + (2u * head + 1u) * D) / 4u + column]);
  return o * vec4f(sigmoid(g.x), sigmoid(g.y), sigmoid(g.z), sigmoid(g.w));
}
