// x as the windows of a convolution: term k of row r of the product is channel k % CHANNELS of row
// r STRIDE + k / CHANNELS DILATION - PADDING of x, and zero outside of it. Terms beyond the last tap meet zero weights.
// Indices count units of `unit` values, a divisor of CHANNELS; those below zero wrap around to far beyond x.
// needs: lib/rows; const CHANNELS, STRIDE, DILATION, PADDING; X_RATE rows of x and RATE rows of the product for each
//   row that is counted, and EXTRA rows of the product
const X_ROW = STRIDE * CHANNELS / 8; // from row to row, in units of 8
fn product_rows() -> u32 { return row_count() * RATE + EXTRA; }
fn operand_at(row: u32, k: u32, unit: u32) -> u32 {
  return (row * STRIDE + k / CHANNELS * DILATION - PADDING) * (CHANNELS / unit) + k % CHANNELS / unit;
}
fn operand_has(at: u32, unit: u32) -> bool { return at < row_count() * X_RATE * (CHANNELS / unit); }

// Where the terms from k on lie.
fn operand_next(at: u32, row: u32, k: u32, unit: u32) -> u32 { return operand_at(row, k, unit); }
