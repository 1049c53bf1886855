// The lanes of a workgroup, a power of two, share the elements of a row: element i belongs to lane i % LANES.
// lanes_sum: the sum over all lanes, the same bits for each. lanes_best: the greatest score, of equal ones the first.
// meet: what lanes wrote to storage before, all can read. Two halves of the buffers take turns: a step costs one barrier.
// needs: struct Best; const WORKGROUP
const LANES = u32(WORKGROUP);
var<workgroup> lane_sums: array<f32, 2 * WORKGROUP>;
var<workgroup> lane_bests: array<Best, 2 * WORKGROUP>;
var<private> half = 0u;

fn meet() {
  storageBarrier();
  workgroupBarrier();
}

fn lanes_sum(v: f32, lane: u32) -> f32 {
  var sum = v;
  for (var distance = 1u; distance < LANES; distance *= 2u) {
    lane_sums[half + lane] = sum;
    workgroupBarrier();
    sum += lane_sums[half + (lane ^ distance)];
    half = LANES - half;
  }
  return sum;
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
