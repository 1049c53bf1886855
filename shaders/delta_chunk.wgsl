// What the chunked delta rule can do for all chunks at once. Per chunk of 64 tokens (rows i, j) and value head:
//   D[i, j] = exp(g[j + 1] + .. + g[i]) for j <= i, else 0;   G[i] = g[0] + .. + g[i]
//   A[i, j] = beta[i] (k[i] . k[j]) D[i, j] for j < i;        P[i, j] = (q[i] . k[j]) D[i, j]
//   U = (I + A)^-1 (beta V);   W = (I + A)^-1 (beta exp(G) K);   decay = [exp(G) | exp(G[last] - G)]
// A workgroup owns a chunk of one head. An invocation owns a patch of 4 x 4 of A and P, then a column of [U | W].
// Each exponent is added up by itself: as a difference of prefix sums, small decays would drown in large ones.
// Rows beyond a short last chunk count as zeros and are not written.
// needs: lib/segment, lib/triangular; const WORKGROUP = 256, NK, NV, DK (a multiple of 8), DV, CHANNELS

@group(0) @binding(0) var<storage, read> qk: array<f32>;
@group(0) @binding(1) var<storage, read> c: array<f32>;              // v from column 2 NK DK on
@group(0) @binding(2) var<storage, read> gates: array<f32>;          // [T, 2 NV]: g, beta
@group(0) @binding(3) var<storage, read> segments: array<Segment>;
@group(0) @binding(4) var<storage, read> chunks: array<vec2u>;       // segment, first token
@group(0) @binding(5) var<storage, read_write> uw: array<f32>;       // [T, NV, DV + DK]
@group(0) @binding(6) var<storage, read_write> p: array<vec4f>;      // [T, NV, 64]
@group(0) @binding(7) var<storage, read_write> decay: array<f32>;    // [T, 2 NV]

const CHUNK = 64u;
const SLICE = 8u;   // columns of q and k that are staged at once
const STRIDE = 17u; // 16 vec4 of four rows each, and one against bank conflicts
const QK_WIDE = 2u * NK * DK;

var<workgroup> q_slice: array<vec4f, SLICE * STRIDE>;
var<workgroup> k_slice: array<vec4f, SLICE * STRIDE>;
var<workgroup> g: array<f32, CHUNK>;
var<workgroup> beta: array<f32, CHUNK>;
var<workgroup> beta_decay: array<f32, CHUNK>; // beta exp(G)

fn stage(lane: u32, column: u32, first: u32, length: u32) -> vec4f {
  var v: vec4f;
  for (var m = 0u; m < 4u; m++) {
    let row = lane / SLICE % 16u * 4u + m;
    if (row < length) { v[m] = qk[(first + row) * QK_WIDE + column]; }
  }
  return v;
}

// D[4 quad .. 4 quad + 3, j].
fn decay_between(quad: u32, j: u32) -> vec4f {
  var d: vec4f;
  var sum = 0.0;
  for (var m = j + 1u; m < 4u * quad; m++) { sum += g[m]; }
  for (var m = 0u; m < 4u; m++) {
    let i = 4u * quad + m;
    if (i > j) { sum += g[i]; }
    if (i >= j) { d[m] = exp(sum); }
  }
  return d;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let n = group.x;
  let head = n / (NV / NK);
  let first = chunks[group.y].y;
  let segment = segments[chunks[group.y].x];
  let length = min(CHUNK, segment.start + segment.length - first);
  if (lane < CHUNK) {
    let gate = (first + min(lane, length - 1u)) * 2u * NV + n;
    g[lane] = select(0.0, gates[gate], lane < length);
    beta[lane] = select(0.0, gates[gate + NV], lane < length);
  }

  let i = lane / 16u; // the patch: rows 4 i .. 4 i + 3
  let j = lane % 16u; // columns 4 j .. 4 j + 3
  var kk: mat4x4f;    // a column of the patch each, four rows
  var qq: mat4x4f;    // likewise for q . k
  for (var d = 0u; d < DK; d += SLICE) {
    workgroupBarrier();
    let column = head * DK + d + lane % SLICE;
    let to = lane % SLICE * STRIDE + lane / SLICE % 16u;
    if (lane < 128u) { q_slice[to] = stage(lane, column, first, length); }
    else { k_slice[to] = stage(lane, NK * DK + column, first, length); }
    workgroupBarrier();
    for (var e = 0u; e < SLICE * STRIDE && j <= i; e += STRIDE) {
      let kj = k_slice[e + j];
      for (var m = 0u; m < 4u; m++) {
        kk[m] += k_slice[e + i] * kj[m];
        qq[m] += q_slice[e + i] * kj[m];
      }
    }
  }

  let beta_i = vec4f(beta[4u * i], beta[4u * i + 1u], beta[4u * i + 2u], beta[4u * i + 3u]);
  for (var m = 0u; m < 4u; m++) {
    let d = decay_between(i, 4u * j + m);
    qq[m] *= d;
    kk[m] *= d * beta_i;
    if (i == j) { kk[m][m] = 0.0; }
    if (j / 4u <= i / 4u) { lower[lower_at(i, 4u * j + m)] = kk[m]; }
  }
  let rows = transpose(qq);
  for (var m = 0u; m < 4u; m++) {
    let row = 4u * i + m;
    if (row < length) { p[((first + row) * NV + n) * (CHUNK / 4u) + j] = rows[m]; }
  }
  if (lane < CHUNK) {
    var before = 0.0;
    var after = 0.0;
    for (var m = 0u; m <= lane; m++) { before += g[m]; }
    for (var m = lane + 1u; m < CHUNK; m++) { after += g[m]; }
    beta_decay[lane] = beta[lane] * exp(before);
    if (lane < length) {
      let at = (first + lane) * 2u * NV + n;
      decay[at] = exp(before);
      decay[at + NV] = exp(after);
    }
  }
  workgroupBarrier();

  for (var column = lane; column < DV + DK; column += WORKGROUP) {
    var x: array<vec4f, 16>;
    for (var row = 0u; row < length; row++) {
      let t = first + row;
      if (column < DV) { x[row / 4u][row % 4u] = beta[row] * c[t * CHANNELS + QK_WIDE + n * DV + column]; }
      else { x[row / 4u][row % 4u] = beta_decay[row] * qk[t * QK_WIDE + (NK + head) * DK + column - DV]; }
    }
    solve(&x, length);
    for (var row = 0u; row < length; row++) {
      uw[((first + row) * NV + n) * (DV + DK) + column] = x[row / 4u][row % 4u];
    }
  }
}
