// RM x RN sums as named blocks of four rows of four, and their way to y.
// needs: lib/columns, lib/finish_*; const HALVES, RM, RN, GROUP_X
struct Block { a: vec4f, b: vec4f, c: vec4f, d: vec4f }
struct Sums { s00: Block, s01: Block, s10: Block, s11: Block }

// One more term: a quad or two of rows times a quad or two of columns.
fn add(s: Sums, a0: vec4f, a1: vec4f, b0: vec4f, b1: vec4f) -> Sums {
  var sum = s;
  sum.s00 = add_product(s.s00, a0, b0);
  if (RN > 4) { sum.s01 = add_product(s.s01, a0, b1); }
  if (RM > 4) { sum.s10 = add_product(s.s10, a1, b0); }
  if (RM > 4 && RN > 4) { sum.s11 = add_product(s.s11, a1, b1); }
  return sum;
}

fn add_product(s: Block, a: vec4f, b: vec4f) -> Block {
  return Block(fma(a.xxxx, b, s.a), fma(a.yyyy, b, s.b), fma(a.zzzz, b, s.c), fma(a.wwww, b, s.d));
}

// Blocks of the same rows from the row and column `place` on, counted over the tiles. Of SwiGLU they are gate and up.
fn finish_blocks(place: vec2u, rows: u32, part: u32, s: Block, next: Block) {
  if (HALVES == 2) {
    finish_block(place, rows, part, s, next);
  } else {
    finish_block(place, rows, part, s, s);
    if (RN > 4) { finish_block(place + vec2u(0, GROUP_X * 4), rows, part, next, next); }
  }
}

fn finish_block(place: vec2u, rows: u32, part: u32, s: Block, up: Block) {
  finish_quad(place, rows, part, s.a, up.a);
  finish_quad(place + vec2u(1, 0), rows, part, s.b, up.b);
  finish_quad(place + vec2u(2, 0), rows, part, s.c, up.c);
  finish_quad(place + vec2u(3, 0), rows, part, s.d, up.d);
}

fn finish_quad(place: vec2u, rows: u32, part: u32, s: vec4f, up: vec4f) {
  let column = y_column(place.y); // the next three follow: parts of a tile are whole quads
  if (place.x >= rows || column >= COLUMNS) { return; }
  let whole = COLUMNS % 4 == 0;
  finish(place.x, part + column, vec2f(s.x, up.x));
  if (whole || column + 1 < COLUMNS) { finish(place.x, part + column + 1, vec2f(s.y, up.y)); }
  if (whole || column + 2 < COLUMNS) { finish(place.x, part + column + 2, vec2f(s.z, up.z)); }
  if (whole || column + 3 < COLUMNS) { finish(place.x, part + column + 3, vec2f(s.w, up.w)); }
}
