// slices_sum(v, lane) where each of the SLICES neighbours that share a row adds up all of it by itself: the loads are
// the same for all, so no barrier is needed. sum_shared.wgsl is the sibling for hardware.
// needs: lib/step; alias Sum
const STRIDE = 1u;
// 0. Compilers cannot know that and leave the loop rolled; unrolled, software drivers compile for many seconds.
fn first_of(slice: u32) -> u32 { return select(1u, 0u, step.tokens > 0u); }
fn slices_sum(v: Sum, lane: u32) -> Sum { return v; }
