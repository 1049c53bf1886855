// Rows of a multiple of four elements, read four at a time; scalar.wgsl is the sibling for other widths.
// needs: alias X, Y
const LANES = 4u;
alias Values = vec4f;
alias Stored = vec4<X>;
alias Made = vec4<Y>;
fn total(v: Values) -> f32 { return dot(v, vec4f(1.0)); }
