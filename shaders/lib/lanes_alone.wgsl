// A workgroup of one lane that does everything: no barriers. lanes_shared.wgsl is the sibling for hardware.
const LANES = 1u;
fn meet() {}
fn lanes_best(score: f32, index: u32, lane: u32) -> Best { return Best(score, index); }
