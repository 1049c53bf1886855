// Between storage and workgroup memory: q, up to eight vec4u (of eight halves) of keys and as many of values that an
// invocation carries, loaded a tile ahead, and rows of y. Counts are constants: a test of one costs nothing. What
// comes from afar is asked for all at once.
// needs: the bindings and constants of attention_matrix; lib/keys, lib/attention_units, lib/gate_*

const D8 = D / 8;
const LOG2_E = 1.4426950408889634;
const LOADS = KEYS * D8 / WORKGROUP;

struct Tile { s: Segment, first: u32, end: u32, kv_head: u32, keys: u32 }
struct Carried { a: vec4u, b: vec4u, c: vec4u, d: vec4u, e: vec4u, f: vec4u, g: vec4u, h: vec4u }

// Behind the last key lies the last key again. `at`: of keys 0, of values KV_HEADS heads on.
fn cached(t: Tile, n: u32, at: u32, i: u32) -> vec4u {
  let row = cache_row(t.s, min(n + i / D8, t.keys - 1u));
  return kv[(row * 2u * KV_HEADS + t.kv_head + at) * D8 + i % D8];
}

fn load(t: Tile, n: u32, at: u32, thread: u32) -> Carried {
  var x: Carried;
  x.a = cached(t, n, at, thread);
  if (LOADS > 1) { x.b = cached(t, n, at, thread + WORKGROUP); }
  if (LOADS > 2) { x.c = cached(t, n, at, thread + 2 * WORKGROUP); }
  if (LOADS > 3) { x.d = cached(t, n, at, thread + 3 * WORKGROUP); }
  if (LOADS > 4) { x.e = cached(t, n, at, thread + 4 * WORKGROUP); }
  if (LOADS > 5) { x.f = cached(t, n, at, thread + 5 * WORKGROUP); }
  if (LOADS > 6) { x.g = cached(t, n, at, thread + 6 * WORKGROUP); }
  if (LOADS > 7) { x.h = cached(t, n, at, thread + 7 * WORKGROUP); }
  return x;
}

fn put_one(row: u32, i: u32, x: vec4u) { tile[min((row + i / D8) * WIDTH + i % D8, TILE - 1)] = x; }

fn put(row: u32, x: Carried, thread: u32) {
  put_one(row, thread, x.a);
  if (LOADS > 1) { put_one(row, thread + WORKGROUP, x.b); }
  if (LOADS > 2) { put_one(row, thread + 2 * WORKGROUP, x.c); }
  if (LOADS > 3) { put_one(row, thread + 3 * WORKGROUP, x.d); }
  if (LOADS > 4) { put_one(row, thread + 4 * WORKGROUP, x.e); }
  if (LOADS > 5) { put_one(row, thread + 5 * WORKGROUP, x.f); }
  if (LOADS > 6) { put_one(row, thread + 6 * WORKGROUP, x.g); }
  if (LOADS > 7) { put_one(row, thread + 7 * WORKGROUP, x.h); }
}

// Eight numbers of q.
fn query(t: Tile, i: u32) -> array<vec4<Q>, 2> {
  let row = min(i / D8, ROWS - 1);
  let token = min(t.first + row / HEADS_OF_KV, t.end - 1u);
  let at = (token * HEADS + t.kv_head * HEADS_OF_KV + row % HEADS_OF_KV) * D4 + i % D8 * 2u;
  return array(q[at], q[at + 1u]);
}

// They times the scale, so that weights are powers of two.
fn put_query(i: u32, x: array<vec4<Q>, 2>) {
  let a = vec4f(x[0]) * (SCALE * LOG2_E);
  let b = vec4f(x[1]) * (SCALE * LOG2_E);
  let halves = vec4u(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
  if (i < ROWS * D8) { put_one(0, i, halves); }
}

fn put_queries(t: Tile, thread: u32) {
  for (var i = thread; i < ROWS * D8; i += 4 * WORKGROUP) {
    let a = query(t, i);
    let b = query(t, i + WORKGROUP);
    let c = query(t, i + 2 * WORKGROUP);
    let d = query(t, i + 3 * WORKGROUP);
    put_query(i, a);
    put_query(i + WORKGROUP, b);
    put_query(i + 2 * WORKGROUP, c);
    put_query(i + 3 * WORKGROUP, d);
  }
}

// Four numbers of y, from fragments m of o.
struct Out { at: u32, y: vec4f, seen: bool }
fn out(t: Tile, m: u32, i: u32) -> Out {
  let row = m * FM + min(i / D4, FM - 1);
  let token = t.first + row / HEADS_OF_KV;
  let head = t.kv_head * HEADS_OF_KV + row % HEADS_OF_KV;
  let d = i % D4;
  let o = bitcast<vec4f>(tile[min(i / D4, FM - 1) * O_WIDTH + d]) / bitcast<f32>(p[row * (FN / 4)].x);
  return Out((token * HEADS + head) * D4 + d, gated(o, min(token, t.end - 1u), head, d), token < t.end && i < FM * D4);
}

fn write(x: Out) { if (x.seen) { y[x.at] = vec4<Y>(x.y); } }

fn write_rows(t: Tile, m: u32, thread: u32) {
  for (var i = thread; i < FM * D4; i += 4 * WORKGROUP) {
    let a = out(t, m, i);
    let b = out(t, m, i + WORKGROUP);
    let c = out(t, m, i + 2 * WORKGROUP);
    let d = out(t, m, i + 3 * WORKGROUP);
    write(a);
    write(b);
    write(c);
    write(d);
  }
}

// Fragments m of o, from all subgroups at once.
fn finish(t: Tile, m: u32, o0: Sums, o1: Sums, d: u32, thread: u32) {
  if (m < RM) {
    put_out(d, 0, o0);
    put_out(d, 1, o1);
    workgroupBarrier();
    write_rows(t, m, thread);
    workgroupBarrier();
  }
}
