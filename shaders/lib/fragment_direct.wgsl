// store_fragment(): a whole fragment goes from its subgroup to y. needs alias Sums; y: array<f32>; const Y_WIDTH
const DIRECT = true;

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn store_fragment(at: u32, sums: Sums) { subgroupMatrixStore<row_major>(&y, at, sums, Y_WIDTH); }
