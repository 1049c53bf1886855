// Writes the drawn codes into a column c of the delayed grid, and reports the last columns. Codebook k of column c is
// unknown, and takes a code, where BEFORE < c - k <= BEFORE + WANTED; what is known stays. Once codebook 0 has said EOS,
// in column e, EOS walks down the codebooks: j of them have ended after column c.
//   j = min(max(c - e, 8 - W + c), 8), W = BEFORE + WANTED + 9;  cells above j become MASK, cell j EOS
// A thread per cell of the report: e, zeros; then REPORTED columns, c the last.
// needs: lib/step, lib/frame; const BOOKS = 9, EOS, MASK, REPORTED, WORKGROUP

@group(0) @binding(0) var<storage, read> drawn: array<u32>;
@group(0) @binding(1) var<storage, read> frame: Frame;
@group(0) @binding(2) var<storage, read_write> grid: array<u32>;
@group(0) @binding(3) var<storage, read_write> ended: array<u32>; // [1]: e, 0 before
@group(0) @binding(4) var<storage, read_write> report: array<f32>;

fn cell(c: u32, k: u32, e: u32) -> u32 {
  let last = frame.before + frame.wanted;
  if (c <= frame.before + k || c > last + k || c == last + BOOKS) { return grid[c * BOOKS + k]; }
  let n = k - select(0u, c - last, frame.shifted == 1u && c > last); // which code it takes
  if (e == 0u) { return drawn[n]; }
  let j = u32(min(max(i32(c - e), i32(c) - i32(last) - 1), i32(BOOKS) - 1));
  if (n < j) { return MASK; }
  return select(drawn[n], EOS, n == j);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let c = frame.column;
  // A column before c ended the row; else this one may. Whoever reads what another thread has just written finds c.
  var e = ended[0];
  if (e == 0u || e >= c) { e = select(0u, c, frame.ends == 1u && drawn[0] == EOS); }
  if (id.x == 0u) { ended[0] = e; }
  if (id.x < BOOKS) { report[id.x] = select(0.0, f32(e), id.x == 0u); }
  let at = id.x;
  if (at >= REPORTED * BOOKS) { return; }
  let back = REPORTED - 1u - at / BOOKS; // columns before c
  let k = at % BOOKS;
  var value = 0u;
  if (back == 0u) {
    value = cell(c, k, e);
    grid[c * BOOKS + k] = value;
  } else if (back <= c) {
    value = grid[(c - back) * BOOKS + k];
  }
  report[BOOKS + at] = f32(value);
}
