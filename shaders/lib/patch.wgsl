// For kernels whose invocations own patches of 4 x 4 and take their operands from slices in workgroup memory.
// A patch is a value, its columns named by literals: GPU compilers put what a variable indexes into memory.

// y and the products of a patch: column m is y[m] + a[m] b.
fn add_outer(y: mat4x4f, a: vec4f, b: vec4f) -> mat4x4f {
  return mat4x4f(fma(a.xxxx, b, y[0]), fma(a.yyyy, b, y[1]), fma(a.zzzz, b, y[2]), fma(a.wwww, b, y[3]));
}

// Column m times f[m].
fn scale_rows(y: mat4x4f, f: vec4f) -> mat4x4f { return mat4x4f(y[0] * f.x, y[1] * f.y, y[2] * f.z, y[3] * f.w); }

// Where row e of a slice, `wide` vec4s wide (a multiple of 8), has its vec4 `side`: turned about so that invocations
// that write four rows each, or read one, do not meet in a bank. The same turn for the four rows of a quad.
fn place(e: u32, side: u32, wide: u32) -> u32 { return e * wide + (side ^ (e / 4u % 4u * 2u + e / 16u % 2u)); }
