// row_count(): rows of a kernel's tensors in this run.
// needs: lib/step; const ROWS (rowsOf() in src/kernels/lib/rows.ts)
fn row_count() -> u32 {
  switch i32(ROWS) {
    case -1: { return step.tokens; }
    case -2: { return step.segments; }
    case -3: { return step.chunks; }
    case -4: { return step.rows; }
    default: { return u32(max(ROWS, 0)); }
  }
}
