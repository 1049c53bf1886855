// base_at(): what a vector is added to, or taken from.
@group(0) @binding(4) var<storage, read> base: array<f32>;
fn base_at(at: u32) -> f32 { return base[at]; }
