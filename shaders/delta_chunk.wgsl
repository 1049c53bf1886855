// What the chunked delta rule can do for all chunks at once. Per chunk of 64 tokens (rows i, j) and value head:
//   D[i, j] = exp(g[j + 1] + .. + g[i]) for j <= i, else 0;   G[i] = g[0] + .. + g[i]
//   A[i, j] = beta[i] (k[i] . k[j]) D[i, j] for j < i;        P[i, j] = (q[i] . k[j]) D[i, j]
//   U = (I + A)^-1 (beta V);   W = (I + A)^-1 (beta exp(G) K);   decay = [exp(G) | exp(G[last] - G)]
// A workgroup owns a chunk of one head. An invocation owns a patch of 4 x 4 of A and P, then a column of [U | W].
// q and k pass in slices of SLICE columns, transposed into vec4s of four rows; the next slice is loaded while one is in
// use, and `lower` holds the slices until A is ready. Each exponent is added up by itself: as a difference of prefix
// sums, small decays would drown in large ones. Rows beyond a short last chunk count as zeros and are not written.
// PARTS = 3 gives P, U and W to a workgroup each: runs of few chunks take all of a large device, and no bit changes.
// At widths of 128: 3.2 MFLOP, 96 KiB read and 80 KiB written per chunk and head.
// needs: lib/segment, lib/triangular, lib/patch, lib/decay, lib/chunk_rows;
//   const WORKGROUP = 256, NK, NV, DK (a multiple of SLICE), DV, CHANNELS, SLICE (8 or 16), PARTS (1 or 3)

@group(0) @binding(0) var<storage, read> qkv: array<vec4f>;          // [T, CHANNELS]: q^, k^, v
@group(0) @binding(1) var<storage, read> gates: array<f32>;          // [T, 2 NV]: g, beta
@group(0) @binding(2) var<storage, read> segments: array<Segment>;
@group(0) @binding(3) var<storage, read> chunks: array<vec2u>;       // segment, first token
@group(0) @binding(4) var<storage, read_write> uw: array<f32>;       // [T, NV, DV + DK]
@group(0) @binding(5) var<storage, read_write> p: array<vec4f>;      // [T, NV, 64]
@group(0) @binding(6) var<storage, read_write> decay: array<f32>;    // [T, 2 NV]

const CHUNK = 64u;
const QUADS = 16u;              // of rows in a chunk
const HALF = SLICE * QUADS;     // vec4s of a slice of q; k lies behind
const DEEP = SLICE / 4u;

var<workgroup> beta: array<vec4f, QUADS>;
var<workgroup> beta_decay: array<f32, CHUNK>; // beta exp(G)

// A 4 x 4 block of q, in the second half of the lanes of k: columns d + 4 (lane % DEEP) .., four rows.
// Behind the last token lies the last one again, against a beta of zero.
fn block(lane: u32, d: u32, head: u32, first: u32, length: u32) -> mat4x4f {
  let quad = lane / DEEP % QUADS;
  let column = ((select(0u, NK, lane >= HALF / 4u) + head) * DK + d) / 4u + lane % DEEP;
  let at = row_of(quad, first, length) * (CHANNELS / 4u) + column;
  return mat4x4f(qkv[at.x], qkv[at.y], qkv[at.z], qkv[at.w]);
}

// y with the products of four columns of k and of k or q.
fn four(y: mat4x4f, a: u32, b: u32) -> mat4x4f {
  let half = add_outer(add_outer(y, lower[a], lower[b]), lower[a + QUADS], lower[b + QUADS]);
  return add_outer(add_outer(half, lower[a + 2u * QUADS], lower[b + 2u * QUADS]),
                   lower[a + 3u * QUADS], lower[b + 3u * QUADS]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let n = group.x;
  let head = n / (NV / NK);
  let first = chunks[group.y].y;
  let segment = segments[chunks[group.y].x];
  let length = min(CHUNK, segment.start + segment.length - first);
  let makes_p = PARTS == 1 || group.z == 0u;
  let makes_uw = PARTS == 1 || group.z > 0u;
  if (lane < QUADS) {
    g[lane] = gates_of(lane, first, length, n);
    beta[lane] = gates_of(lane, first, length, NV + n);
  }

  let i = lane / QUADS; // the patch: rows 4 i .. 4 i + 3
  let j = lane % QUADS; // columns 4 j .. 4 j + 3
  let stages = lane < HALF / 2u;
  let to = select(0u, u32(HALF), lane >= HALF / 4u) + place(lane % DEEP * 4u, lane / DEEP % QUADS, QUADS);
  var kk: mat4x4f;      // a column of the patch each, four rows
  var qq: mat4x4f;      // likewise for q . k
  var next: mat4x4f;
  if (stages) { next = block(lane, 0u, head, first, length); }
  for (var d = 0u; d < DK; d += SLICE) {
    workgroupBarrier();
    if (stages) {
      let x = transpose(next);
      lower[to] = x[0];
      lower[to + QUADS] = x[1];
      lower[to + 2u * QUADS] = x[2];
      lower[to + 3u * QUADS] = x[3];
    }
    workgroupBarrier();
    if (stages && d + SLICE < DK) { next = block(lane, d + SLICE, head, first, length); }
    for (var e = 0u; e < SLICE && j <= i; e += 4u) {
      if (makes_uw) { kk = four(kk, HALF + place(e, j, QUADS), HALF + place(e, i, QUADS)); }
      if (makes_p) { qq = four(qq, HALF + place(e, j, QUADS), place(e, i, QUADS)); }
    }
  }
  workgroupBarrier();

  let between = decay_between(i, j);
  if (makes_uw && j / 4u <= i / 4u) {
    let off = select(1.0, 0.0, i == j); // the diagonal
    let at = lower_at(i, 4u * j);
    lower[at] = kk[0] * between[0] * beta[i] * vec4f(off, 1.0, 1.0, 1.0);
    lower[at + 4u] = kk[1] * between[1] * beta[i] * vec4f(1.0, off, 1.0, 1.0);
    lower[at + 8u] = kk[2] * between[2] * beta[i] * vec4f(1.0, 1.0, off, 1.0);
    lower[at + 12u] = kk[3] * between[3] * beta[i] * vec4f(1.0, 1.0, 1.0, off);
  }
  if (makes_p) {
    let x = transpose(mat4x4f(qq[0] * between[0], qq[1] * between[1], qq[2] * between[2], qq[3] * between[3]));
    write_p(4u * i, j, first, length, n, x[0]);
    write_p(4u * i + 1u, j, first, length, n, x[1]);
    write_p(4u * i + 2u, j, first, length, n, x[2]);
    write_p(4u * i + 3u, j, first, length, n, x[3]);
  }
  if (lane < CHUNK) {
    var before = 0.0;
    var after = 0.0;
    for (var q = 0u; q < lane / 4u; q++) { before += total(g[q]); }
    for (var q = lane / 4u + 1u; q < QUADS; q++) { after += total(g[q]); }
    let own = g[lane / 4u];
    let upto = vec4u(0, 1, 2, 3) <= vec4u(lane % 4u);
    before += total(select(vec4f(), own, upto));
    after += total(select(own, vec4f(), upto));
    beta_decay[lane] = beta[lane / 4u][lane % 4u] * exp(before);
    if (lane < length && makes_p) {
      let at = (first + lane) * 2u * NV + n;
      decay[at] = exp(before);
      decay[at + NV] = exp(after);
    }
  }
  workgroupBarrier();

  let begin = select(0u, DV, PARTS == 3 && group.z == 2u);
  let stop = select(DV + DK, DV * group.z, PARTS == 3 && group.z < 2u);
  for (var column = begin + lane; column < stop; column += WORKGROUP) {
    let is_value = column < DV;
    let at = select((NK + head) * DK + column - DV, 2u * NK * DK + n * DV + column, is_value);
    var x = array<vec4f, 16>();
    for (var quad = 0u; 4u * quad < length; quad++) { x[quad] = right(quad, at, first, length, is_value); }
    solve(&x, length);
    for (var quad = 0u; 4u * quad < length; quad++) { write(quad, column, first, length, n, x[quad]); }
  }
}
