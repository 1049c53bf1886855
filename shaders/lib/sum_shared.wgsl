// slices_sum(v, lane): the sum of v over the SLICES neighbours that share a row, the same bits for all of them. Each
// adds up every SLICES-th element; then partners at distance 1, 2, 4, .. exchange their sums. Two halves of the buffer
// take turns, from one call to the next too, so that a step costs one barrier. SLICES is a power of two that divides
// WORKGROUP.
// needs: alias Sum; const SLICES, WORKGROUP
const STRIDE = u32(SLICES);
fn first_of(slice: u32) -> u32 { return slice; }

var<workgroup> slice_sums: array<Sum, 2 * WORKGROUP>;
var<private> half = 0u;

fn slices_sum(v: Sum, lane: u32) -> Sum {
  var sum = v;
  for (var distance = 1u; distance < SLICES; distance *= 2u) {
    slice_sums[half + lane] = sum;
    workgroupBarrier();
    sum += slice_sums[half + (lane ^ distance)];
    half = WORKGROUP - half;
  }
  return sum;
}
