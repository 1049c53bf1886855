// Rows of any width, read one element at a time; vector.wgsl is the faster sibling for multiples of four.
// needs: alias X, Y
const LANES = 1u;
alias Values = f32;
alias Stored = X;
alias Made = Y;
fn total(v: Values) -> f32 { return v; }
