// y[t, c] = silu(sum_j w[c, j] m[t - (KERNEL - 1) + j, c]) with m = x[:, COLUMN + c]: depthwise, causal in each segment
// One invocation per token and channel. Rows before a segment's start come from its state slot (0: zeros); the
// invocations of its last token leave its last KERNEL - 1 rows of m in the slot that it writes.
// needs: lib/step, lib/segment, lib/activation; alias X; const WORKGROUP, WIDE, COLUMN, CHANNELS, KERNEL

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> segment_of: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> state: array<f32>; // [slot, KERNEL - 1, CHANNELS], oldest row first

fn slot_row(slot: u32, row: i32, c: u32) -> u32 { return (slot * (KERNEL - 1u) + u32(row)) * CHANNELS + c; }

// m at a position counted from the segment's start; KERNEL - 1 of them lie before it.
fn before_conv(segment: Segment, position: i32, c: u32) -> f32 {
  if (position >= 0) { return f32(x[(segment.start + u32(position)) * WIDE + COLUMN + c]); }
  if (segment.state_from == 0u) { return 0.0; }
  return state[slot_row(segment.state_from, position + KERNEL - 1, c)];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let i = flat_group(group) * WORKGROUP + lane;
  let t = i / CHANNELS;
  let c = i % CHANNELS;
  if (t >= step.tokens) { return; }
  let segment = segments[segment_of[t]];
  let oldest = i32(t - segment.start) - (KERNEL - 1);

  var sum = 0.0;
  for (var j = 0; j < KERNEL; j++) { sum += w[c * KERNEL + u32(j)] * before_conv(segment, oldest + j, c); }
  y[i] = silu(sum);

  if (segment.state_to != 0u && t + 1u == segment.start + segment.length) {
    for (var j = 0; j < KERNEL - 1; j++) {
      state[slot_row(segment.state_to, j, c)] = before_conv(segment, oldest + 1 + j, c);
    }
  }
}
