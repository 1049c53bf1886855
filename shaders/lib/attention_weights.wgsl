// The softmax of attention_matrix, in f32 from scores in workgroup memory: exp2(score - top) in f16, where a row's top
// is at most SLACK below its highest score so far. Sums are somebody else's.
// needs: lib/keys, lib/attention_units, lib/attention_stage (struct Tile); const ROWS, HEADS_OF_KV, KEYS, WORKGROUP
const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities
const SLACK = 8; // weights are at most 2^8: far from f16's largest number

var<workgroup> tops: array<f32, ROWS>;
var<workgroup> keep: array<f32, ROWS>;
var<workgroup> exceeded: u32;

fn seen(x: vec4u, key: u32, visible: u32) -> vec4f {
  return select(vec4f(LOWEST), bitcast<vec4f>(x), key + vec4u(0, 1, 2, 3) < vec4u(visible));
}
fn highest(x: vec4f) -> f32 { return max(max(x.x, x.y), max(x.z, x.w)); }

// The weights of the scores from key n on; whether a score exceeds what its row's top allows.
fn weigh(t: Tile, n: u32, thread: u32) -> bool {
  var over = false;
  for (var i = thread; i < ROWS * KEYS / 8; i += WORKGROUP) {
    let row = i / (KEYS / 8);
    let c = i % (KEYS / 8);
    let visible = visible_keys(t.s, t.first - t.s.start + row / HEADS_OF_KV);
    let at = row * S_WIDTH + 2u * c;
    let a = seen(scores[at], n + 8u * c, visible) - tops[row];
    let b = seen(scores[at + 1u], n + 8u * c + 4u, visible) - tops[row];
    over |= highest(max(a, b)) > SLACK;
    let v = exp2(a);
    let w = exp2(b);
    p[row * P_WIDTH + c] =
      vec4u(pack2x16float(v.xy), pack2x16float(v.zw), pack2x16float(w.xy), pack2x16float(w.zw));
  }
  return over;
}

// Raises the tops that scores exceed by too much.
fn raise(t: Tile, n: u32, thread: u32) {
  for (var row = thread; row < ROWS; row += WORKGROUP) {
    let visible = visible_keys(t.s, t.first - t.s.start + row / HEADS_OF_KV);
    var most = vec4f(LOWEST);
    for (var c = 0u; c < KEYS / 4; c++) { most = max(most, seen(scores[row * S_WIDTH + c], n + 4u * c, visible)); }
    let top = tops[row];
    let higher = select(top, highest(most), highest(most) - top > SLACK);
    keep[row] = exp2(top - higher);
    tops[row] = higher;
  }
}
