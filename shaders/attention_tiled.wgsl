// The formula of attention.wgsl, for devices with fast workgroup memory. A workgroup takes TOKENS tokens of a chunk and
// the query heads of one KV head: ROWS rows that share keys and values. Keys pass in tiles of KEYS: slices of SLICE
// columns of q and K, transposed into vec4s of four rows or keys, then VALUES rows of V at a time; the next slice is
// loaded while one is in use. A thread owns four rows: 4 x 4 scores, then D / COLUMNS columns of o. Sums run upwards
// and top moves once a tile, so that the bits depend on KEYS alone.
// At D = 256 a tile of 64 keys takes 66 kFLOP a row; ROWS rows share the reads of its K and V, 64 KiB in f16.
// needs: lib/segment.wgsl, lib/keys.wgsl, lib/patch.wgsl, lib/gate_*.wgsl; alias Q, KV, Y;
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
const MINE = D4 / COLUMNS;               // vec4s of o in each row
const WORKGROUP = QUADS * COLUMNS;
const PITCH = QUADS + COLUMNS + 1u;      // of q | k; and one against bank conflicts
const BLOCKS = (QUADS + COLUMNS) * SLICE / 4u;
const MOST_BLOCKS = (BLOCKS + WORKGROUP - 1u) / WORKGROUP;
const MOST_VALUES = (VALUES * D4 + WORKGROUP - 1u) / WORKGROUP;
const QK_SLICES = D / SLICE;
const SLICES = QK_SLICES + KEYS / VALUES;
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

var<workgroup> slice: array<vec4f, max(PITCH * SLICE, VALUES * D4)>;
var<workgroup> p: array<vec4f, KEYS * (QUADS + 1u)>; // [key, quad of rows]
var<workgroup> tops: array<vec4f, COLUMNS * (QUADS + 1u)>;
var<private> next: array<vec4f, max(4u * MOST_BLOCKS, MOST_VALUES)>;

struct Tile { s: Segment, first: u32, end: u32, kv_head: u32, keys: u32 }

fn query_row(tile: Tile, row: u32) -> u32 {
  let t = min(tile.first + row / HEADS_OF_KV, tile.end - 1u);
  return (t * HEADS + tile.kv_head * HEADS_OF_KV + row % HEADS_OF_KV) * D4;
}

// Behind the last key lies the last key again.
fn key_row(tile: Tile, n: u32) -> u32 {
  return (cache_row(tile.s, min(n, tile.keys - 1u)) * 2u * KV_HEADS + tile.kv_head) * D4;
}

fn load(tile: Tile, n: u32, i: u32, thread: u32) {
  if (i < QK_SLICES) {
    for (var k = 0u; k < MOST_BLOCKS; k++) {
      let b = thread + k * WORKGROUP;
      let d = i * (SLICE / 4u) + b % (SLICE / 4u);
      let side = b / (SLICE / 4u);
      var rows = mat4x4f();
      if (side < QUADS) {
        for (var m = 0u; m < 4u; m++) { rows[m] = vec4f(q[query_row(tile, 4u * side + m) + d]) * SCALE; }
      } else if (b < BLOCKS) {
        for (var m = 0u; m < 4u; m++) { rows[m] = vec4f(kv[key_row(tile, n + m * COLUMNS + side - QUADS) + d]); }
      }
      rows = transpose(rows);
      for (var m = 0u; m < 4u; m++) { next[4u * k + m] = rows[m]; }
    }
  } else {
    for (var k = 0u; k < MOST_VALUES; k++) {
      let b = thread + k * WORKGROUP;
      let key = n + (i - QK_SLICES) * VALUES + b / D4;
      if (b < VALUES * D4) { next[k] = vec4f(kv[key_row(tile, key) + KV_HEADS * D4 + b % D4]); }
    }
  }
}

// Puts what was loaded where all can read it.
fn turn(i: u32, thread: u32) {
  workgroupBarrier();
  for (var k = 0u; k < MOST_BLOCKS && i < QK_SLICES; k++) {
    let b = thread + k * WORKGROUP;
    let at = b % (SLICE / 4u) * 4u * PITCH + b / (SLICE / 4u);
    for (var m = 0u; m < 4u && b < BLOCKS; m++) { slice[at + m * PITCH] = next[4u * k + m]; }
  }
  for (var k = 0u; k < MOST_VALUES && i >= QK_SLICES; k++) {
    let b = thread + k * WORKGROUP;
    if (b < VALUES * D4) { slice[b] = next[k]; }
  }
  workgroupBarrier();
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
  var visible: vec4u;
  for (var m = 0u; m < 4u; m++) { visible[m] = visible_keys(s, token[m]); }

  var top = vec4f(LOWEST);
  var sum = vec4f();
  var o: array<mat4x4f, MINE>; // a column of a matrix for each row
  load(tile, 0u, 0u, thread);
  for (var n = 0u; n < most; n += KEYS) {
    var scores = mat4x4f(); // a column for each key column + m COLUMNS
    for (var i = 0u; i < SLICES && (i < QK_SLICES || n + (i - QK_SLICES) * VALUES < most); i++) {
      turn(i, thread);
      let last = i + 1u == SLICES || (i >= QK_SLICES && n + (i + 1u - QK_SLICES) * VALUES >= most);
      load(tile, n + select(0u, u32(KEYS), last), select(i + 1u, 0u, last), thread);
      if (i < QK_SLICES) {
        for (var e = 0u; e < SLICE; e++) {
          scores += outer(slice[e * PITCH + QUADS + column], slice[e * PITCH + quad]);
        }
        if (i + 1u == QK_SLICES) {
          var higher = top;
          for (var m = 0u; m < 4u; m++) {
            scores[m] = select(vec4f(LOWEST), scores[m], vec4u(n + m * COLUMNS + column) < visible);
            higher = max(higher, scores[m]);
          }
          tops[column * (QUADS + 1u) + quad] = higher;
          workgroupBarrier();
          for (var c = 0u; c < COLUMNS; c++) { higher = max(higher, tops[c * (QUADS + 1u) + quad]); }
          let keep = exp(top - higher);
          top = higher;
          sum *= keep;
          for (var c = 0u; c < MINE; c++) { for (var m = 0u; m < 4u; m++) { o[c][m] *= keep[m]; } }
          for (var m = 0u; m < 4u; m++) { p[(m * COLUMNS + column) * (QUADS + 1u) + quad] = exp(scores[m] - top); }
        }
      } else {
        for (var e = 0u; e < VALUES; e++) {
          let weight = p[((i - QK_SLICES) * VALUES + e) * (QUADS + 1u) + quad];
          sum += weight;
          for (var c = 0u; c < MINE; c++) { o[c] += outer(weight, slice[e * D4 + column + c * COLUMNS]); }
        }
      }
    }
  }

  for (var m = 0u; m < 4u; m++) {
    let t = first + (4u * quad + m) / HEADS_OF_KV;
    if (t >= end) { continue; }
    let head = group.x * HEADS_OF_KV + (4u * quad + m) % HEADS_OF_KV;
    for (var c = 0u; c < MINE; c++) {
      let d = column + c * COLUMNS;
      y[(t * HEADS + head) * D4 + d] = vec4<Y>(gated(o[c][m] / sum[m], t, head, d));
    }
  }
}
