// The slices in which delta_scan's operands pass through workgroup memory, 32 vec4s by SLICE each: W | Q transposed
// (SLICE of DK), then P transposed (16 vec4s by 2 SLICE of 64), then K (SLICE of 64 rows). An invocation loads one or
// two blocks of 4 x 4, and does nothing to the numbers until it puts them, so that nobody waits for memory meanwhile.
// needs: lib/patch; the bindings qkv, uw and p, and the constants of delta_scan

const WIDE = 32u;          // vec4s of a slice side by side
const BLOCKS = 8u * SLICE; // of 4 x 4 in a slice
const QK_SLICES = DK / SLICE;
const P_END = QK_SLICES + CHUNK / (2u * SLICE);
const SLICES = P_END + CHUNK / SLICE;

var<workgroup> slice: array<vec4f, WIDE * SLICE>;

struct Blocks { a: mat4x4f, b: mat4x4f } // what an invocation loads of a slice

fn is_p(i: u32) -> bool { return i >= QK_SLICES && i < P_END; }
// Block b of slice i: its first row in the slice, and which vec4 of it. Neighbours load what lies together.
fn spot(i: u32, b: u32) -> vec2u {
  if (i >= P_END) { return vec2u(b / WIDE * 4u, b % WIDE); }
  let deep = select(SLICE / 4u, SLICE / 2u, is_p(i));
  return vec2u(b % deep * 4u, b / deep);
}

// Four rows of W | Q, P or K for block b of slice i. Behind the last token lies the last one again, against a V' of 0.
fn block(i: u32, b: u32, first: u32, length: u32, n: u32) -> mat4x4f {
  let at = spot(i, b);
  let side = select(at.y % ROWS * 4u, (i - P_END) * SLICE + at.x, i >= P_END);
  let t = vec4u(first) + min(side + vec4u(0, 1, 2, 3), vec4u(length - 1u));
  let d = (select(i * SLICE, (i - QK_SLICES) * 2u * SLICE, is_p(i)) + at.x) / 4u;
  if (is_p(i)) {
    let r = (t * NV + n) * ROWS + d;
    return mat4x4f(p[r.x], p[r.y], p[r.z], p[r.w]);
  }
  if (i < QK_SLICES && at.y < ROWS) {
    let r = (t * NV + n) * (DVQ + DKQ) + DVQ + d;
    return mat4x4f(uw[r.x], uw[r.y], uw[r.z], uw[r.w]);
  }
  let r = t * (CHANNELS / 4u) + n / (NV / NK) * DKQ + select(d, NK * DKQ + min(at.y, DKQ - 1u), i >= P_END);
  return mat4x4f(qkv[r.x], qkv[r.y], qkv[r.z], qkv[r.w]);
}

fn load(i: u32, first: u32, end: u32, n: u32, lane: u32) -> Blocks {
  var x: Blocks;
  if (first < end && lane < BLOCKS) {
    let length = min(CHUNK, end - first);
    x.a = block(i, lane, first, length, n);
    if (BLOCKS > WORKGROUP) { x.b = block(i, lane + WORKGROUP, first, length, n); }
  }
  return x;
}

// Puts a loaded block where all can read it.
fn put(i: u32, b: u32, rows: mat4x4f) {
  var x = rows;
  if (i < P_END) { x = transpose(rows); }
  let at = spot(i, b);
  let wide = select(WIDE, ROWS, is_p(i));
  let to = place(at.x, at.y, wide);
  slice[to] = x[0];
  slice[to + wide] = x[1];
  slice[to + 2u * wide] = x[2];
  slice[to + 3u * wide] = x[3];
}

// The slice behind i that has rows of a chunk of this length, or SLICES.
fn following(i: u32, length: u32) -> u32 {
  if (is_p(i + 1u) && (i + 1u - QK_SLICES) * 2u * SLICE >= length) { return P_END; }
  return select(i + 1u, u32(SLICES), i + 1u > P_END && (i + 1u - P_END) * SLICE >= length);
}
