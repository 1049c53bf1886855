// weight4(words): four neighbouring weights. w: array<Words>
// Halves are unpacked by a builtin, so no shader-f16 is needed.
alias Words = vec2u;
fn weight4(words: Words) -> vec4f { return vec4f(unpack2x16float(words.x), unpack2x16float(words.y)); }
