// Up to eight vec4u that an invocation carries from x and from w to the tile in workgroup memory, APART rows of it from
// each other. A count is a constant, so that a test of it costs nothing, and so are offsets, but where gate and up rows
// alternate out of step with them. Rows past the last are what the buffer holds there, for sums that nobody stores.
// needs: lib/columns, lib/operand_*; x, w, tile: array<vec4u>;
//   const IN, BK8, WIDTH, CREW, OWN, SL, BM, XS, WS (how many)
struct Carried { a: vec4u, b: vec4u, c: vec4u, d: vec4u, e: vec4u, f: vec4u, g: vec4u, h: vec4u }

const APART = CREW / BK8;
const ROW = IN / 8; // of w, in vec4u
const IN_STEP = HALVES == 1 || APART % BLOCK == 0 || PART % APART == 0;

fn read_x(at: u32) -> Carried {
  var c: Carried;
  c.a = x_word(at, 0);
  if (XS > 1) { c.b = x_word(at, 1); }
  if (XS > 2) { c.c = x_word(at, 2); }
  if (XS > 3) { c.d = x_word(at, 3); }
  if (XS > 4) { c.e = x_word(at, 4); }
  if (XS > 5) { c.f = x_word(at, 5); }
  if (XS > 6) { c.g = x_word(at, 6); }
  if (XS > 7) { c.h = x_word(at, 7); }
  return c;
}

fn x_word(first: u32, i: u32) -> vec4u {
  let at = first + i * APART * X_ROW;
  if (!operand_has(at, 8u)) { return vec4u(); }
  return x[at];
}

// `column` is that of the first, counted over the tiles.
fn read_w(at: u32, column: u32) -> Carried {
  var c: Carried;
  c.a = w[at];
  if (WS > 1) { c.b = w[at + w_rows(column, 1) * ROW]; }
  if (WS > 2) { c.c = w[at + w_rows(column, 2) * ROW]; }
  if (WS > 3) { c.d = w[at + w_rows(column, 3) * ROW]; }
  if (WS > 4) { c.e = w[at + w_rows(column, 4) * ROW]; }
  if (WS > 5) { c.f = w[at + w_rows(column, 5) * ROW]; }
  if (WS > 6) { c.g = w[at + w_rows(column, 6) * ROW]; }
  if (WS > 7) { c.h = w[at + w_rows(column, 7) * ROW]; }
  return c;
}

// Rows of w from the first to the i-th.
fn w_rows(column: u32, i: u32) -> u32 {
  if (IN_STEP) { return row_of(i * APART); }
  return row_of(column + i * APART) - row_of(column);
}

// The index has bounds that Tint sees, and needs no clamp: a crew's tile, a member's place, and where x or w begins.
fn put(crew: u32, place: u32, first: u32, c: Carried, count: u32, height: u32) {
  let at = min(crew, SL - 1) * OWN + min(place, (APART - 1) * WIDTH + BK8 - 1) + min(first, BM * WIDTH);
  if (has(place, 0, height)) { tile[at] = c.a; }
  if (count > 1 && has(place, 1, height)) { tile[at + APART * WIDTH] = c.b; }
  if (count > 2 && has(place, 2, height)) { tile[at + 2 * APART * WIDTH] = c.c; }
  if (count > 3 && has(place, 3, height)) { tile[at + 3 * APART * WIDTH] = c.d; }
  if (count > 4 && has(place, 4, height)) { tile[at + 4 * APART * WIDTH] = c.e; }
  if (count > 5 && has(place, 5, height)) { tile[at + 5 * APART * WIDTH] = c.f; }
  if (count > 6 && has(place, 6, height)) { tile[at + 6 * APART * WIDTH] = c.g; }
  if (count > 7 && has(place, 7, height)) { tile[at + 7 * APART * WIDTH] = c.h; }
}

// Whether vec4u i of a member lies within the height of the tile: of most tiles all do.
fn has(place: u32, i: u32, height: u32) -> bool {
  return (i + 1) * APART <= height || place / WIDTH + i * APART < height;
}
