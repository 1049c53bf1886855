// The formula of attention.wgsl, for devices with fast workgroup memory. A workgroup takes TOKENS tokens of a chunk and
// the query heads of one KV head: ROWS rows that share keys and values. Keys pass in tiles of KEYS: slices of SLICE
// columns of q and K, transposed into vec4s of four rows or keys, then VALUES rows of V at a time. The next slice is
// loaded while one is in use, and converted only when it is put, so that nobody waits for memory meanwhile. A thread
// owns four rows: 4 x 4 scores, then 4 x 4 blocks of o, MINE of them (1 to 4) by name: GPU compilers put what a
// variable indexes into memory. Sums run upwards and top moves once a tile, so that the bits depend on KEYS alone.
// At D = 256 a tile of 64 keys takes 66 kFLOP a row; ROWS rows share the reads of its K and V, 64 KiB in f16.
// needs: lib/segment, lib/keys, lib/patch, lib/gate_*, lib/attention_slice; alias Q, KV, Y;
//        const HEADS, KV_HEADS, D, SCALE, CAUSAL, TOKENS, KEYS, SLICE, VALUES, Y_BINDING

@group(0) @binding(0) var<storage, read> q: array<vec4<Q>>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<KV>>;
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<vec4<Y>>;

const D4 = D / 4u;
const HEADS_OF_KV = u32(HEADS) / KV_HEADS;
const QUADS = TOKENS * HEADS_OF_KV / 4u; // of rows
const COLUMNS = KEYS / 4u;
const MINE = D4 / COLUMNS;
const WORKGROUP = QUADS * COLUMNS;
const QK_SLICES = D / SLICE;
const ACROSS = QUADS + 1u; // one against bank conflicts
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

var<workgroup> p: array<vec4f, KEYS * ACROSS>; // [key, quad of rows]
var<workgroup> tops: array<vec4f, COLUMNS * ACROSS>;

// scores with the products of four columns of q and K.
fn four(scores: mat4x4f, k: u32, q: u32) -> mat4x4f {
  let s1 = add_outer(scores, slice[k], slice[q]);
  let s2 = add_outer(s1, slice[k + PITCH], slice[q + PITCH]);
  let s3 = add_outer(s2, slice[k + 2u * PITCH], slice[q + 2u * PITCH]);
  return add_outer(s3, slice[k + 3u * PITCH], slice[q + 3u * PITCH]);
}

fn masked(scores: vec4f, key: u32, visible: vec4u) -> vec4f {
  return select(vec4f(LOWEST), scores * SCALE, vec4u(key) < visible);
}

// A block of o: its four rows, each divided by its sum.
fn write(o: mat4x4f, sum: vec4f, tile: Tile, row: u32, d: u32) {
  write_row(o[0] / sum.x, tile, row, d);
  write_row(o[1] / sum.y, tile, row + 1u, d);
  write_row(o[2] / sum.z, tile, row + 2u, d);
  write_row(o[3] / sum.w, tile, row + 3u, d);
}

fn write_row(o: vec4f, tile: Tile, row: u32, d: u32) {
  let t = tile.first + row / HEADS_OF_KV;
  let head = tile.kv_head * HEADS_OF_KV + row % HEADS_OF_KV;
  if (t < tile.end) { y[(t * HEADS + head) * D4 + d] = vec4<Y>(gated(o, t, head, d)); }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let chunk = chunks[groups.z - 1u - group.z]; // those that see most keys begin first
  let s = segments[chunk.x];
  let first = chunk.y + group.y * TOKENS;
  let end = s.start + s.length;
  if (first >= end) { return; }
  let most = visible_keys(s, min(first + TOKENS, end) - 1u - s.start);
  let tile = Tile(s, first, end, group.x, most);
  let quad = thread / COLUMNS;
  let column = thread % COLUMNS;
  let token = first - s.start + (vec4u(0, 1, 2, 3) + 4u * quad) / HEADS_OF_KV; // of each row, from the segment's start
  let visible = vec4u(visible_keys(s, token.x), visible_keys(s, token.y),
                      visible_keys(s, token.z), visible_keys(s, token.w));

  var top = vec4f(LOWEST);
  var sum = vec4f();
  var o0: mat4x4f; // a column of a matrix for each row
  var o1: mat4x4f;
  var o2: mat4x4f;
  var o3: mat4x4f;
  var next = load_keys(tile, 0u, 0u, thread);
  for (var n = 0u; n < most; n += KEYS) {
    var x = mat4x4f(); // scores: a column for each key column + m COLUMNS
    for (var i = 1u; i <= QK_SLICES; i++) {
      workgroupBarrier();
      put_keys(next, thread);
      workgroupBarrier();
      if (i < QK_SLICES) { next = load_keys(tile, n, i, thread); } else { next = load_values(tile, n, thread); }
      for (var at = quad; at < SLICE * PITCH; at += 8u * PITCH) {
        let k = at - quad + QUADS + column;
        x = four(four(x, k, at), k + 4u * PITCH, at + 4u * PITCH);
      }
    }

    let key = n + column;
    x = mat4x4f(masked(x[0], key, visible), masked(x[1], key + COLUMNS, visible),
                masked(x[2], key + 2u * COLUMNS, visible), masked(x[3], key + 3u * COLUMNS, visible));
    var higher = max(max(max(top, x[0]), max(x[1], x[2])), x[3]);
    tops[column * ACROSS + quad] = higher;
    workgroupBarrier();
    for (var c = quad; c < COLUMNS * ACROSS; c += ACROSS) { higher = max(higher, tops[c]); }
    let keep = exp(top - higher);
    top = higher;
    sum *= keep;
    o0 = scale_rows(o0, keep);
    if (MINE > 1) { o1 = scale_rows(o1, keep); }
    if (MINE > 2) { o2 = scale_rows(o2, keep); }
    if (MINE > 3) { o3 = scale_rows(o3, keep); }
    let mine = column * ACROSS + quad;
    p[mine] = exp(x[0] - top);
    p[mine + COLUMNS * ACROSS] = exp(x[1] - top);
    p[mine + 2u * COLUMNS * ACROSS] = exp(x[2] - top);
    p[mine + 3u * COLUMNS * ACROSS] = exp(x[3] - top);

    for (var j = 0u; j < min(u32(KEYS), most - n); j += VALUES) {
      workgroupBarrier();
      put_values(next, thread);
      workgroupBarrier();
      let then = j + VALUES;
      if (then < min(u32(KEYS), most - n)) { next = load_values(tile, n + then, thread); }
      else { next = load_keys(tile, n + KEYS, 0u, thread); }
      var w = j * ACROSS + quad;
      for (var at = column; at < MOST_VALUES; at += 2u * D4) {
        let w0 = p[w];
        let w1 = p[w + ACROSS];
        sum = sum + w0 + w1;
        o0 = add_outer(add_outer(o0, w0, slice[at]), w1, slice[at + D4]);
        let b = at + COLUMNS;
        if (MINE > 1) { o1 = add_outer(add_outer(o1, w0, slice[b]), w1, slice[b + D4]); }
        let c = at + 2u * COLUMNS;
        if (MINE > 2) { o2 = add_outer(add_outer(o2, w0, slice[c]), w1, slice[c + D4]); }
        let d = at + 3u * COLUMNS;
        if (MINE > 3) { o3 = add_outer(add_outer(o3, w0, slice[d]), w1, slice[d + D4]); }
        w += 2u * ACROSS;
      }
    }
  }

  write(o0, sum, tile, 4u * quad, column);
  if (MINE > 1) { write(o1, sum, tile, 4u * quad, column + COLUMNS); }
  if (MINE > 2) { write(o2, sum, tile, 4u * quad, column + 2u * COLUMNS); }
  if (MINE > 3) { write(o3, sum, tile, 4u * quad, column + 3u * COLUMNS); }
}
