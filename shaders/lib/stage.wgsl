// Up to four vec4u that an invocation carries from x and from w to the tile in workgroup memory. A count is a constant,
// so that a test of it costs nothing.    needs: x, w, tile: array<vec4u>; const XS, WS, how many are carried
struct Four { a: vec4u, b: vec4u, c: vec4u, d: vec4u }

fn read_x(at: vec4u) -> Four {
  var f: Four;
  f.a = x[at.x];
  if (XS > 1) { f.b = x[at.y]; }
  if (XS > 2) { f.c = x[at.z]; }
  if (XS > 3) { f.d = x[at.w]; }
  return f;
}

fn read_w(at: vec4u) -> Four {
  var f: Four;
  f.a = w[at.x];
  if (WS > 1) { f.b = w[at.y]; }
  if (WS > 2) { f.c = w[at.z]; }
  if (WS > 3) { f.d = w[at.w]; }
  return f;
}

fn put(at: vec4u, f: Four, count: u32) {
  tile[at.x] = f.a;
  if (count > 1) { tile[at.y] = f.b; }
  if (count > 2) { tile[at.z] = f.c; }
  if (count > 3) { tile[at.w] = f.d; }
}
