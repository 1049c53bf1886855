// weight4(words): four neighbouring weights. w: array<Words>
alias Words = vec4f;
fn weight4(words: Words) -> vec4f { return words; }
