// row_sum(): row t of x plus its COUNT parts, at most 8, which are added to their neighbours, and those sums to theirs:
// the order is the same whether a part is one or, where there are fewer, was already the sum of some.
// needs: lib/vector or lib/scalar; x, parts [T, COUNT, WIDTH]; const WIDTH, COUNT
fn row_sum(t: u32, i: u32) -> Values { return x[t * (WIDTH / LANES) + i] + eight(t, i); }

fn part(t: u32, n: u32, i: u32) -> Values { return parts[(t * COUNT + n) * (WIDTH / LANES) + i]; }

fn two(t: u32, n: u32, i: u32) -> Values {
  let first = part(t, n, i);
  if (n + 1 >= COUNT) { return first; }
  return first + part(t, n + 1, i);
}

fn four(t: u32, n: u32, i: u32) -> Values {
  let first = two(t, n, i);
  if (n + 2 >= COUNT) { return first; }
  return first + two(t, n + 2, i);
}

fn eight(t: u32, i: u32) -> Values {
  let first = four(t, 0, i);
  if (COUNT <= 4) { return first; }
  return first + four(t, 4, i);
}
