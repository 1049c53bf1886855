// Four rows of four sums as named vectors, in f32 or, for a run, in the format of the operands; then their way to y.
// needs: lib/columns, lib/finish_*; alias X; const HALVES, RN, GROUP_X
alias Quad = vec4<X>;
struct Block { a: vec4f, b: vec4f, c: vec4f, d: vec4f }
struct Run { a: Quad, b: Quad, c: Quad, d: Quad }

fn add_product(s: Block, rows: Quad, columns: Quad) -> Block {
  let a = vec4f(rows);
  let b = vec4f(columns);
  return Block(fma(a.xxxx, b, s.a), fma(a.yyyy, b, s.b), fma(a.zzzz, b, s.c), fma(a.wwww, b, s.d));
}

fn run_product(s: Run, a: Quad, b: Quad) -> Run {
  return Run(fma(a.xxxx, b, s.a), fma(a.yyyy, b, s.b), fma(a.zzzz, b, s.c), fma(a.wwww, b, s.d));
}

fn add_run(s: Block, r: Run) -> Block {
  return Block(s.a + vec4f(r.a), s.b + vec4f(r.b), s.c + vec4f(r.c), s.d + vec4f(r.d));
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
  if (place.x >= rows) { return; }
  finish_one(place.x, place.y, part, s.x, up.x);
  finish_one(place.x, place.y + 1u, part, s.y, up.y);
  finish_one(place.x, place.y + 2u, part, s.z, up.z);
  finish_one(place.x, place.y + 3u, part, s.w, up.w);
}

fn finish_one(row: u32, c: u32, part: u32, s: f32, up: f32) {
  let column = y_column(c);
  if (column < COLUMNS) { finish(row, part + column, vec2f(s, up)); }
}
