// The serial part of the chunked delta rule. Per segment and value head, for one chunk of 64 tokens after the other:
//   V' = U - W S;   o = exp(G) S^T q + P V';   S <- exp(G[last]) S + (exp(G[last] - G) K)^T V'
// A workgroup owns TILE = 16 columns of S and V' of one head and segment, both in workgroup memory. For V' and o an
// invocation owns a row and four columns; for S, which is written in place, a share of its vec4s.
// needs: lib/segment; const WORKGROUP = 256, NK, NV, DK, DV (a multiple of 16)

@group(0) @binding(0) var<storage, read> qk: array<vec4f>;
@group(0) @binding(1) var<storage, read> uw: array<vec4f>;           // [T, NV, DV + DK]
@group(0) @binding(2) var<storage, read> p: array<vec4f>;            // [T, NV, 64]
@group(0) @binding(3) var<storage, read> decay: array<f32>;          // [T, 2 NV]: exp(G), exp(G[last] - G)
@group(0) @binding(4) var<storage, read> segments: array<Segment>;
@group(0) @binding(5) var<storage, read_write> o: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> state: array<vec4f>;  // [slot, NV, DK, DV]

const CHUNK = 64u;
const TILE = 4u;        // in vec4
const STRIDE = DK + 1u; // against bank conflicts

var<workgroup> s: array<vec4f, TILE * STRIDE>; // [quad, dk]
var<workgroup> v: array<vec4f, CHUNK * TILE>;  // [row, quad]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let tiles = DV / 4u / TILE;
  let n = group.x / tiles;
  let tile = group.x % tiles * TILE; // first vec4 of the tile in a row of DV
  let head = n / (NV / NK);
  let segment = segments[group.y];
  let quad = lane % TILE;
  let row = lane / TILE;

  for (var d = row; d < DK; d += CHUNK) {
    var start = vec4f();
    if (segment.state_from != 0u) {
      start = state[((segment.state_from * NV + n) * DK + d) * (DV / 4u) + tile + quad];
    }
    s[quad * STRIDE + d] = start;
  }

  let end = segment.start + segment.length;
  for (var first = segment.start; first < end; first += CHUNK) {
    let t = first + row;
    let length = min(CHUNK, end - first);
    var vt = vec4f(); // rows beyond the chunk stay zero
    var ot = vec4f();
    workgroupBarrier();
    if (row < length) {
      let u = (t * NV + n) * ((DV + DK) / 4u);
      let w = u + DV / 4u;
      let q = (t * 2u * NK + head) * (DK / 4u);
      vt = uw[u + tile + quad];
      for (var d = 0u; d < DK / 4u; d++) {
        let wt = uw[w + d];
        let qt = qk[q + d];
        for (var m = 0u; m < 4u; m++) {
          let sd = s[quad * STRIDE + 4u * d + m];
          vt -= wt[m] * sd;
          ot += qt[m] * sd;
        }
      }
      ot *= decay[t * 2u * NV + n];
    }
    v[lane] = vt;
    workgroupBarrier();

    if (row < length) {
      for (var j = 0u; j <= row / 4u; j++) {
        let pt = p[(t * NV + n) * (CHUNK / 4u) + j];
        for (var m = 0u; m < 4u; m++) { ot += pt[m] * v[(4u * j + m) * TILE + quad]; }
      }
      o[(t * NV + n) * (DV / 4u) + tile + quad] = ot;
    }

    let kept = decay[(first + length - 1u) * 2u * NV + n];
    for (var e = lane; e < DK * TILE; e += WORKGROUP) {
      let d = e % DK; // neighbours share a row of k
      let at = e / DK * STRIDE + d;
      var sum = kept * s[at];
      for (var j = 0u; j < length; j++) {
        let k = qk[(((first + j) * 2u + 1u) * NK + head) * (DK / 4u) + d / 4u][d % 4u];
        sum += (decay[((first + j) * 2u + 1u) * NV + n] * k) * v[j * TILE + e / DK];
      }
      s[at] = sum;
    }
  }

  workgroupBarrier();
  if (segment.state_to != 0u) {
    for (var d = row; d < DK; d += CHUNK) {
      state[((segment.state_to * NV + n) * DK + d) * (DV / 4u) + tile + quad] = s[quad * STRIDE + d];
    }
  }
}
