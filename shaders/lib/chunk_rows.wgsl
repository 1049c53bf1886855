// What delta_chunk reads and writes, four rows at a time.    needs: its bindings and constants

// The rows of a quad. Behind the last token lies the last one again, against a beta of zero.
fn row_of(quad: u32, first: u32, length: u32) -> vec4u {
  return first + min(4u * quad + vec4u(0, 1, 2, 3), vec4u(length - 1u));
}

// Four rows of a column of beta V, or of beta exp(G) K. Behind the last token beta is zero.
fn right(quad: u32, column: u32, first: u32, length: u32, is_value: bool) -> vec4f {
  let at = row_of(quad, first, length) * (CHANNELS / 4u) + column / 4u;
  let c = column % 4u;
  let b = 4u * quad;
  let grown = vec4f(beta_decay[b], beta_decay[b + 1u], beta_decay[b + 2u], beta_decay[b + 3u]);
  return vec4f(qkv[at.x][c], qkv[at.y][c], qkv[at.z][c], qkv[at.w][c]) * select(grown, beta[quad], is_value);
}

// Four rows of a column of [U | W].
fn write(quad: u32, column: u32, first: u32, length: u32, n: u32, x: vec4f) {
  let at = ((first + 4u * quad) * NV + n) * (DV + DK) + column;
  const NEXT = NV * (DV + DK);
  uw[at] = x.x;
  if (4u * quad + 1u < length) { uw[at + NEXT] = x.y; }
  if (4u * quad + 2u < length) { uw[at + 2u * NEXT] = x.z; }
  if (4u * quad + 3u < length) { uw[at + 3u * NEXT] = x.w; }
}

fn write_p(row: u32, j: u32, first: u32, length: u32, n: u32, x: vec4f) {
  if (row < length) { p[((first + row) * NV + n) * QUADS + j] = x; }
}

fn gates_of(quad: u32, first: u32, length: u32, at: u32) -> vec4f {
  let i = row_of(quad, first, length) * 2u * NV + at;
  let inside = 4u * quad + vec4u(0, 1, 2, 3) < vec4u(length);
  return select(vec4f(), vec4f(gates[i.x], gates[i.y], gates[i.z], gates[i.w]), inside);
}
