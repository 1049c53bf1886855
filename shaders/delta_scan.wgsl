// The serial part of the chunked delta rule. Per segment and value head, for one chunk of 64 tokens after the other:
//   V' = U - W S;   o = exp(G) S^T q + P V';   S <- exp(G[last]) S + (exp(G[last] - G) K)^T V'
// A workgroup owns TILE columns of S and V' of one head and segment. The other operands pass in slices of 32 vec4s by
// SLICE: W | Q transposed (SLICE of DK), P transposed (16 vec4s by 2 SLICE of 64), K (SLICE of 64 rows). The next slice
// is loaded while one is in use. An invocation owns a patch of 4 x 4: of V' in the first half of the workgroup, of o in
// the second, then of S. All sums run upwards, so that no tile size changes a bit. At widths of 128 and TILE 16:
// 0.9 MFLOP and 120 KiB read per chunk, head and tile; SLICE 8 fits 16 KiB of workgroup memory.
// needs: lib/segment, lib/patch; const WORKGROUP = 8 TILE, NK, NV, DK (of SLICE), DV (of TILE), CHANNELS, TILE, SLICE

@group(0) @binding(0) var<storage, read> qkv: array<vec4f>;          // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> uw: array<vec4f>;           // [T, NV, DV + DK]
@group(0) @binding(2) var<storage, read> p: array<vec4f>;            // [T, NV, 64]
@group(0) @binding(3) var<storage, read> decay: array<f32>;          // [T, 2 NV]: exp(G), exp(G[last] - G)
@group(0) @binding(4) var<storage, read> segments: array<Segment>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> state: array<vec4f>;  // [slot, NV, DK, DV]

const CHUNK = 64u;
const WIDE = 32u;        // vec4s of a slice side by side
const ROWS = CHUNK / 4u; // in quads, as the next three
const DKQ = DK / 4u;
const DVQ = DV / 4u;
const COLUMNS = TILE / 4u;
const BLOCKS = 8u * SLICE; // of 4 x 4 in a slice
const MINE = (BLOCKS + WORKGROUP - 1u) / WORKGROUP;
const QK_SLICES = DK / SLICE;
const P_END = QK_SLICES + CHUNK / (2u * SLICE);
const SLICES = P_END + CHUNK / SLICE;

var<workgroup> s: array<vec4f, DK * COLUMNS>;    // [dk, quad of columns]
var<workgroup> v: array<vec4f, CHUNK * COLUMNS>; // [row, quad of columns]
var<workgroup> slice: array<vec4f, WIDE * SLICE>;
var<private> next: array<mat4x4f, MINE>;

fn is_p(i: u32) -> bool { return i >= QK_SLICES && i < P_END; }
// Block b of slice i: its first row in the slice, and which vec4 of it. Neighbours load what lies together.
fn spot(i: u32, b: u32) -> vec2u {
  if (i >= P_END) { return vec2u(b / WIDE * 4u, b % WIDE); }
  let deep = select(SLICE / 4u, SLICE / 2u, is_p(i));
  return vec2u(b % deep * 4u, b / deep);
}

// Block b of slice i: W | Q, then P, then K. Behind the last token lies the last one again, against a V' of zeros.
fn block(i: u32, b: u32, first: u32, length: u32, n: u32) -> mat4x4f {
  var rows = mat4x4f();
  let head = n / (NV / NK);
  let at = spot(i, b);
  if (i >= P_END) {
    for (var m = 0u; m < 4u; m++) {
      let t = first + min((i - P_END) * SLICE + at.x + m, length - 1u);
      rows[m] = qkv[t * (CHANNELS / 4u) + (NK + head) * DKQ + min(at.y, DKQ - 1u)] * decay[(t * 2u + 1u) * NV + n];
    }
    return rows;
  }
  let row = vec4u(first) + min(at.y % ROWS * 4u + vec4u(0, 1, 2, 3), vec4u(length - 1u));
  let d = (select(i * SLICE, (i - QK_SLICES) * 2u * SLICE, is_p(i)) + at.x) / 4u;
  if (is_p(i)) {
    for (var m = 0u; m < 4u; m++) { rows[m] = p[(row[m] * NV + n) * ROWS + d]; }
  } else if (at.y < ROWS) {
    for (var m = 0u; m < 4u; m++) { rows[m] = -uw[(row[m] * NV + n) * (DVQ + DKQ) + DVQ + d]; }
  } else {
    for (var m = 0u; m < 4u; m++) { rows[m] = qkv[row[m] * (CHANNELS / 4u) + head * DKQ + d]; }
  }
  return transpose(rows);
}

fn load(i: u32, first: u32, end: u32, n: u32, lane: u32) {
  for (var k = 0u; k < MINE; k++) {
    let b = lane + k * WORKGROUP;
    if (b < BLOCKS && first < end) { next[k] = block(i, b, first, min(CHUNK, end - first), n); }
  }
}

// The slice behind i that has rows of a chunk of this length, or SLICES.
fn following(i: u32, length: u32) -> u32 {
  if (is_p(i + 1u) && (i + 1u - QK_SLICES) * 2u * SLICE >= length) { return P_END; }
  return select(i + 1u, u32(SLICES), i + 1u > P_END && (i + 1u - P_END) * SLICE >= length);
}

// Puts what was loaded where all can read it.
fn turn(i: u32, lane: u32) {
  workgroupBarrier();
  for (var k = 0u; k < MINE; k++) {
    let b = lane + k * WORKGROUP;
    let at = spot(i, b);
    let wide = select(WIDE, ROWS, is_p(i));
    for (var m = 0u; m < 4u && b < BLOCKS; m++) { slice[place(at.x, at.y, wide) + m * wide] = next[k][m]; }
  }
  workgroupBarrier();
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let segment = segments[group.y];
  let n = group.x / (DV / TILE);
  let quad = lane / COLUMNS; // of rows: of V', of o behind them, or of S
  let column = lane % COLUMNS;
  let tile = group.x % (DV / TILE) * COLUMNS + column; // in a row of DV
  let is_o = quad >= ROWS;
  let end = segment.start + segment.length;
  var sp: mat4x4f; // the patch of S
  for (var m = 0u; m < 4u && quad < DKQ; m++) {
    let d = 4u * quad + m;
    if (segment.state_from != 0u) { sp[m] = state[((segment.state_from * NV + n) * DK + d) * DVQ + tile]; }
    s[d * COLUMNS + column] = sp[m];
  }

  load(0u, segment.start, end, n, lane);
  for (var first = segment.start; first < end; first += CHUNK) {
    let length = min(CHUNK, end - first);
    let row = quad % ROWS * 4u; // of the chunk
    var y = mat4x4f(); // the patch of V', beginning with U, or of o
    var grown = vec4f();
    for (var m = 0u; m < 4u && row + m < length; m++) {
      let t = first + row + m;
      if (is_o) { grown[m] = decay[t * 2u * NV + n]; } else { y[m] = uw[(t * NV + n) * (DVQ + DKQ) + tile]; }
    }
    sp *= decay[(first + length - 1u) * 2u * NV + n];

    for (var i = 0u; i < SLICES;) {
      turn(i, lane);
      let then = following(i, length);
      load(then % SLICES, first + select(0u, CHUNK, then == SLICES), end, n, lane);
      if (i < QK_SLICES) {
        let d = i * SLICE;
        for (var e = 0u; e < SLICE; e++) { y += outer(slice[place(e, quad, WIDE)], s[(d + e) * COLUMNS + column]); }
        for (var m = 0u; m < 4u && then == QK_SLICES; m++) {
          if (is_o) { y[m] *= grown[m]; } else { v[(row + m) * COLUMNS + column] = y[m] * f32(row + m < length); }
        }
      } else if (i < P_END) {
        let j = (i - QK_SLICES) * 2u * SLICE;
        for (var e = 0u; e < 2u * SLICE && is_o && j < row + 4u; e++) {
          y += outer(slice[place(e, row / 4u, ROWS)], v[(j + e) * COLUMNS + column]);
        }
        for (var m = 0u; m < 4u && then == P_END; m++) {
          if (is_o && row + m < length) { o[((first + row + m) * NV + n) * DVQ + tile] = y[m]; }
        }
      } else {
        let j = (i - P_END) * SLICE;
        for (var e = 0u; e < SLICE; e++) { sp += outer(slice[place(e, quad, WIDE)], v[(j + e) * COLUMNS + column]); }
      }
      i = then;
    }
    for (var m = 0u; m < 4u && quad < DKQ; m++) { s[(4u * quad + m) * COLUMNS + column] = sp[m]; }
  }

  for (var m = 0u; m < 4u && quad < DKQ && segment.state_to != 0u; m++) {
    state[((segment.state_to * NV + n) * DK + 4u * quad + m) * DVQ + tile] = sp[m];
  }
}
