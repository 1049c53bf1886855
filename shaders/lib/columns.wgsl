// Column c of the tiles, counted over the grid: weight_row(c) is the row of w that it sums, y_column(c) where the sum
// goes. They are the same unless HALVES = 2, when w = [gate; up]: each BLOCK columns begin with gate rows, and the up
// rows of the same columns of y follow. weight_row clamps what is past the last, row_of does not.
// needs: const OUT, HALVES, BLOCK
const COLUMNS = OUT / HALVES;
const PART = BLOCK / HALVES;

fn y_column(c: u32) -> u32 { return c / BLOCK * PART + c % PART; }
fn row_of(c: u32) -> u32 { return c % BLOCK / PART * COLUMNS + y_column(c); }
fn weight_row(c: u32) -> u32 { return c % BLOCK / PART * COLUMNS + min(y_column(c), COLUMNS - 1u); }
