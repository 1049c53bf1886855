// step: what this run decides, and the index of an invocation in a folded element-wise grid.
struct Step { tokens: u32, segments: u32, chunks: u32, rows: u32 }
@group(1) @binding(0) var<uniform> step: Step;

// Grids of more than 32768 workgroups fold into y (fold() in src/graph/kernel.ts).
fn flat_group(group: vec3u) -> u32 { return group.y * 32768u + group.x; }
