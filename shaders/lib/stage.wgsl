// Up to four vec4u that an invocation carries from x and from w to the tile in workgroup memory, APART rows of the tile
// from each other. Offsets are constants added to one index; a count is a constant too, so that a test of it costs
// nothing. Rows of x or w past the last are what the buffer holds there, for sums that nobody stores.
// needs: lib/columns, lib/operand_*; x, w, tile: array<vec4u>; const IN, BK8, WIDTH, WORKGROUP, BM, XS, WS (how many)
struct Four { a: vec4u, b: vec4u, c: vec4u, d: vec4u }

const APART = WORKGROUP / BK8;
const ROW = IN / 8; // of w, in vec4u

fn x_word(at: u32) -> vec4u {
  if (!operand_has(at, 8u)) { return vec4u(); }
  return x[at];
}

fn read_x(at: u32) -> Four {
  var f: Four;
  f.a = x_word(at);
  if (XS > 1) { f.b = x_word(at + APART * X_ROW); }
  if (XS > 2) { f.c = x_word(at + 2 * APART * X_ROW); }
  if (XS > 3) { f.d = x_word(at + 3 * APART * X_ROW); }
  return f;
}

fn read_w(at: u32) -> Four {
  var f: Four;
  f.a = w[at];
  if (WS > 1) { f.b = w[at + row_of(APART) * ROW]; }
  if (WS > 2) { f.c = w[at + row_of(2 * APART) * ROW]; }
  if (WS > 3) { f.d = w[at + row_of(3 * APART) * ROW]; }
  return f;
}

// The index has bounds that Tint sees, and needs no clamp: an invocation's own place, and where x or w begins.
fn put(own: u32, first: u32, f: Four, count: u32, height: u32) {
  let at = min(own, (APART - 1) * WIDTH + BK8 - 1) + min(first, BM * WIDTH);
  if (has(own, 0, height)) { tile[at] = f.a; }
  if (count > 1 && has(own, 1, height)) { tile[at + APART * WIDTH] = f.b; }
  if (count > 2 && has(own, 2, height)) { tile[at + 2 * APART * WIDTH] = f.c; }
  if (count > 3 && has(own, 3, height)) { tile[at + 3 * APART * WIDTH] = f.d; }
}

// Whether an invocation's vec4u i lies within the height of the tile: of most tiles all do.
fn has(own: u32, i: u32, height: u32) -> bool { return (i + 1) * APART <= height || own / WIDTH + i * APART < height; }
