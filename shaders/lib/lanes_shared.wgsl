// The lanes of a workgroup, a power of two, share the elements of a row: element i belongs to lane i % LANES.
// lanes_best: the greatest score, of equal ones the first, found as slices_sum adds up, in halves that take turns with
// its own. meet: what lanes wrote to storage before, all can read.
// needs: lib/sum_shared; struct Best; const WORKGROUP
const LANES = u32(WORKGROUP);
var<workgroup> lane_bests: array<Best, 2 * WORKGROUP>;

fn meet() {
  storageBarrier();
  workgroupBarrier();
}

fn lanes_best(score: f32, index: u32, lane: u32) -> Best {
  var best = Best(score, index);
  for (var distance = 1u; distance < LANES; distance *= 2u) {
    lane_bests[half + lane] = best;
    workgroupBarrier();
    best = better(best, lane_bests[half + (lane ^ distance)]);
    half = LANES - half;
  }
  return best;
}
