// For kernels whose invocations own patches of 4 x 4 and take their operands from slices in workgroup memory.

// The products of a patch: column m is a[m] b.
fn outer(a: vec4f, b: vec4f) -> mat4x4f { return mat4x4f(a.x * b, a.y * b, a.z * b, a.w * b); }

// Where row e of a slice, `wide` vec4s wide (a multiple of 8), has its vec4 `side`: turned about so that invocations
// that write four rows each, or read one, do not meet in a bank.
fn place(e: u32, side: u32, wide: u32) -> u32 { return e * wide + (side ^ (e / 4u % 4u * 2u)); }
