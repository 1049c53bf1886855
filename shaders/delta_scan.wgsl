// The serial part of the chunked delta rule. Per segment and value head, for one chunk of 64 tokens after the other:
//   V' = U - W S;   o = exp(G) S^T q + P V';   S <- exp(G[last]) S + K^T (exp(G[last] - G) V')
// A workgroup owns TILE columns of S and V' of one head and segment. The other operands pass in slices, of which the
// next one is loaded while one is in use. An invocation owns a patch of 4 x 4: of V' in the first half of the
// workgroup, of o in the second, then of S. All sums run upwards, so that no tile size changes a bit.
// At widths of 128 and TILE 16: 0.9 MFLOP and 120 KiB read per chunk, head and tile; SLICE 8 fits 16 KiB of memory.
// needs: lib/segment, lib/patch, lib/scan_slice; const WORKGROUP = 8 TILE, NK, NV, DK (of SLICE), DV (of TILE),
//   CHANNELS, TILE, SLICE (8, 16 or 32, at most 2 TILE)

@group(0) @binding(0) var<storage, read> qkv: array<vec4f>;          // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> uw: array<vec4f>;           // [T, NV, DV + DK]
@group(0) @binding(2) var<storage, read> p: array<vec4f>;            // [T, NV, 64], zeros behind the diagonal
@group(0) @binding(3) var<storage, read> decay: array<f32>;          // [T, 2 NV]: exp(G), exp(G[last] - G)
@group(0) @binding(4) var<storage, read> segments: array<Segment>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> state: array<vec4f>;  // [slot, NV, DK, DV]

const CHUNK = 64u;
const ROWS = CHUNK / 4u; // in quads, as the next three
const DKQ = DK / 4u;
const DVQ = DV / 4u;
const COLUMNS = TILE / 4u;

var<workgroup> sv: array<vec4f, (DK + CHUNK) * COLUMNS>; // [row of S, then of V', quad of columns]

fn put_sv(at: u32, x: mat4x4f) {
  sv[at] = x[0];
  sv[at + COLUMNS] = x[1];
  sv[at + 2u * COLUMNS] = x[2];
  sv[at + 3u * COLUMNS] = x[3];
}

// y with the products of rows e .. e + 3 of the slice and of sv from b on.
fn four(y: mat4x4f, e: u32, side: u32, wide: u32, b: u32) -> mat4x4f {
  let a = place(e, side, wide);
  let y1 = add_outer(y, slice[a], sv[b]);
  let y2 = add_outer(y1, slice[a + wide], sv[b + COLUMNS]);
  let y3 = add_outer(y2, slice[a + 2u * wide], sv[b + 2u * COLUMNS]);
  return add_outer(y3, slice[a + 3u * wide], sv[b + 3u * COLUMNS]);
}
fn eight(y: mat4x4f, e: u32, side: u32, wide: u32, b: u32) -> mat4x4f {
  return four(four(y, e, side, wide, b), e + 4u, side, wide, b + TILE);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let segment = segments[group.y];
  let n = group.x / (DV / TILE);
  let quad = lane / COLUMNS; // of rows: of V', of o behind them, or of S
  let column = lane % COLUMNS;
  let tile = group.x % (DV / TILE) * COLUMNS + column; // in a row of DV
  let is_o = quad >= ROWS;
  let has_s = quad < DKQ;
  let end = segment.start + segment.length;
  var s: mat4x4f; // the patch of S
  if (has_s && segment.state_from != 0u) {
    let r = ((segment.state_from * NV + n) * DK + 4u * quad) * DVQ + tile;
    s = mat4x4f(state[r], state[r + DVQ], state[r + 2u * DVQ], state[r + 3u * DVQ]);
  }
  if (has_s) { put_sv(quad * TILE + column, s); }

  var next = load(0u, segment.start, end, n, lane);
  for (var first = segment.start; first < end; first += CHUNK) {
    let length = min(CHUNK, end - first);
    let rows = quad % ROWS * 4u + vec4u(0, 1, 2, 3); // of the chunk
    let t = first + min(rows, vec4u(length - 1u));
    let v = (DK + rows.x) * COLUMNS + column;
    let f = t * 2u * NV + n + select(u32(NV), 0u, is_o);
    let factor = vec4f(decay[f.x], decay[f.y], decay[f.z], decay[f.w]);
    let kept = decay[(first + length - 1u) * 2u * NV + n];
    var u: mat4x4f;
    if (!is_o) {
      let r = (t * NV + n) * (DVQ + DKQ) + tile;
      u = mat4x4f(uw[r.x], uw[r.y], uw[r.z], uw[r.w]);
    }
    var y = mat4x4f(); // the patch of W S, then of V'; or of o

    for (var i = 0u; i < SLICES;) {
      workgroupBarrier();
      if (lane < BLOCKS) { put(i, lane, next.a); }
      if (BLOCKS > WORKGROUP) { put(i, lane + WORKGROUP, next.b); }
      if (i == P_END && !is_o) { put_sv(v, scale_rows(y, factor)); }
      workgroupBarrier();
      let then = following(i, length);
      next = load(then % SLICES, first + select(0u, CHUNK, then == SLICES), end, n, lane);
      if (i < QK_SLICES) {
        for (var e = 0u; e < SLICE; e += 8u) { y = eight(y, e, quad, WIDE, (i * SLICE + e) * COLUMNS + column); }
        if (then == QK_SLICES) {
          if (is_o) { y = scale_rows(y, factor); } else {
            y = scale_rows(u - y, select(vec4f(), vec4f(1), rows < vec4u(length)));
            put_sv(v, y);
          }
        }
      } else if (i < P_END) {
        let j = (i - QK_SLICES) * 2u * SLICE;
        for (var e = 0u; is_o && e < 2u * SLICE && j + e <= rows.w; e += 8u) {
          y = eight(y, e, quad % ROWS, ROWS, (DK + j + e) * COLUMNS + column);
        }
        if (is_o && then == P_END) {
          let to = (t * NV + n) * DVQ + tile;
          if (rows.x < length) { o[to.x] = y[0]; }
          if (rows.y < length) { o[to.y] = y[1]; }
          if (rows.z < length) { o[to.z] = y[2]; }
          if (rows.w < length) { o[to.w] = y[3]; }
        }
      } else {
        if (i == P_END) { s *= kept; }
        let j = DK + (i - P_END) * SLICE;
        for (var e = 0u; e < SLICE; e += 8u) { s = eight(s, e, quad, WIDE, (j + e) * COLUMNS + column); }
      }
      i = then;
    }
    if (has_s) { put_sv(quad * TILE + column, s); }
  }

  if (has_s && segment.state_to != 0u) {
    let r = ((segment.state_to * NV + n) * DK + 4u * quad) * DVQ + tile;
    state[r] = s[0];
    state[r + DVQ] = s[1];
    state[r + 2u * DVQ] = s[2];
    state[r + 3u * DVQ] = s[3];
  }
}
