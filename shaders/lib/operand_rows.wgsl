// x as rows of IN values, of which the product takes all. Indices count units of `unit` values, a divisor of IN.
// operand_window.wgsl is the sibling for convolutions.    needs: lib/rows; const IN, BK
const X_ROW = IN / 8; // from row to row, in units of 8
fn product_rows() -> u32 { return row_count(); }
fn operand_at(row: u32, k: u32, unit: u32) -> u32 { return row * (IN / unit) + k / unit; }
fn operand_has(at: u32, unit: u32) -> bool { return true; }

// Where the terms from k on lie, for whoever is `at` the BK terms before them.
fn operand_next(at: u32, row: u32, k: u32, unit: u32) -> u32 { return at + BK / unit; }
