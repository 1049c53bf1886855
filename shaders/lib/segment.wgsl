// Segment: a row of tokens in a run; see src/graph/segments.ts. Bind the table as `segments: array<Segment>`.
struct Segment {
  start: u32, length: u32,                // its tokens in this run
  state_from: u32, state_to: u32,         // state slots; 0 = zeros, 0 = dropped
  prefix_start: u32, prefix_length: u32,  // cache rows that all its tokens attend to
  kv_start: u32, kv_before: u32,          // its own cache rows, and how many earlier runs wrote
}
