// residual_at(): what is added to a convolution, of y's shape.
@group(0) @binding(3) var<storage, read> residual: array<RESIDUAL>;
fn residual_at(at: u32) -> f32 { return f32(residual[at]); }
