// The slices in which operands of attention_tiled pass: SLICE columns of q and K, transposed into
// vec4s of four rows or keys, or VALUES rows of V. A thread loads up to one block of 4 x 4 of q and two of K, or up to
// eight vec4s of V, and converts nothing until it puts them, so that nobody waits for memory meanwhile.
// needs: lib/keys, the bindings q and kv and the constants of attention_tiled

const PITCH = QUADS + COLUMNS + 1u; // of q | k; and one against bank conflicts
const DEEP = SLICE / 4u;
const KEY_BLOCKS = COLUMNS * DEEP;
const MOST_VALUES = VALUES * D4;

var<workgroup> slice: array<vec4f, max(PITCH * SLICE, MOST_VALUES)>;

struct Tile { s: Segment, first: u32, end: u32, kv_head: u32, keys: u32 }
struct Next { q: mat4x4<Q>, a: mat4x4<KV>, b: mat4x4<KV> }

fn query(tile: Tile, row: u32, d: u32) -> vec4<Q> {
  let t = min(tile.first + row / HEADS_OF_KV, tile.end - 1u);
  return q[(t * HEADS + tile.kv_head * HEADS_OF_KV + row % HEADS_OF_KV) * D4 + d];
}

// Behind the last key lies the last key again.
fn key_row(tile: Tile, n: u32) -> u32 {
  return (cache_row(tile.s, min(n, tile.keys - 1u)) * 2u * KV_HEADS + tile.kv_head) * D4;
}

fn keys(tile: Tile, n: u32, i: u32, b: u32) -> mat4x4<KV> {
  let d = i * DEEP + b % DEEP;
  let key = n + b / DEEP;
  return mat4x4<KV>(kv[key_row(tile, key) + d], kv[key_row(tile, key + COLUMNS) + d],
                    kv[key_row(tile, key + 2u * COLUMNS) + d], kv[key_row(tile, key + 3u * COLUMNS) + d]);
}

// Slice i of q and of the keys from n on. The last threads take q.
fn load_keys(tile: Tile, n: u32, i: u32, thread: u32) -> Next {
  var x: Next;
  let b = WORKGROUP - 1u - thread;
  if (b < QUADS * DEEP) {
    let row = b / DEEP * 4u;
    let d = i * DEEP + b % DEEP;
    x.q = mat4x4<Q>(query(tile, row, d), query(tile, row + 1u, d), query(tile, row + 2u, d), query(tile, row + 3u, d));
  }
  if (thread < KEY_BLOCKS) { x.a = keys(tile, n, i, thread); }
  if (thread + WORKGROUP < KEY_BLOCKS) { x.b = keys(tile, n, i, thread + WORKGROUP); }
  return x;
}

fn value(tile: Tile, n: u32, b: u32) -> vec4<KV> {
  return kv[key_row(tile, n + b / D4) + KV_HEADS * D4 + b % D4];
}

fn values(tile: Tile, n: u32, b: u32) -> mat4x4<KV> {
  return mat4x4<KV>(value(tile, n, b), value(tile, n, b + WORKGROUP),
                    value(tile, n, b + 2u * WORKGROUP), value(tile, n, b + 3u * WORKGROUP));
}

fn load_values(tile: Tile, n: u32, thread: u32) -> Next {
  var x: Next;
  x.a = values(tile, n, thread);
  if (MOST_VALUES > 4u * WORKGROUP) { x.b = values(tile, n, thread + 4u * WORKGROUP); }
  return x;
}

fn put_block(b: u32, side: u32, x: vec4f, y: vec4f, z: vec4f, w: vec4f) {
  let at = b % DEEP * 4u * PITCH + b / DEEP + side;
  slice[at] = vec4f(x.x, y.x, z.x, w.x);
  slice[at + PITCH] = vec4f(x.y, y.y, z.y, w.y);
  slice[at + 2u * PITCH] = vec4f(x.z, y.z, z.z, w.z);
  slice[at + 3u * PITCH] = vec4f(x.w, y.w, z.w, w.w);
}

fn put_keys(x: Next, thread: u32) {
  let b = WORKGROUP - 1u - thread;
  let a2 = thread + WORKGROUP;
  if (b < QUADS * DEEP) { put_block(b, 0u, vec4f(x.q[0]), vec4f(x.q[1]), vec4f(x.q[2]), vec4f(x.q[3])); }
  if (thread < KEY_BLOCKS) { put_block(thread, QUADS, vec4f(x.a[0]), vec4f(x.a[1]), vec4f(x.a[2]), vec4f(x.a[3])); }
  if (a2 < KEY_BLOCKS) { put_block(a2, QUADS, vec4f(x.b[0]), vec4f(x.b[1]), vec4f(x.b[2]), vec4f(x.b[3])); }
}

fn put_value(b: u32, x: vec4<KV>) { if (b < MOST_VALUES) { slice[b] = vec4f(x); } }

fn put_four(b: u32, x: mat4x4<KV>) {
  put_value(b, x[0]);
  put_value(b + WORKGROUP, x[1]);
  put_value(b + 2u * WORKGROUP, x[2]);
  put_value(b + 3u * WORKGROUP, x[3]);
}

fn put_values(x: Next, thread: u32) {
  put_four(thread, x.a);
  if (MOST_VALUES > 4u * WORKGROUP) { put_four(thread + 4u * WORKGROUP, x.b); }
}
