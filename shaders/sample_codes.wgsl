// For each codebook k: logits mixed by guidance, repetition penalty, softmax, filters, then one draw.
//   l[i] = u[i] + (c[i] - u[i]) GUIDANCE;  l <- l f or l / f with f = PENALTY per time that i is in the last columns
//   p = softmax(l / TEMPERATURE);  unified: p = softmax(lp (LINEAR + H CONFIDENCE) - lp^2 QUADRATIC), lp = ln p
//   top-p drops i where more probable codes already have more than TOP_P, top-k where TOP_K are more probable, min-p
//   where p[i] < MIN_P max p;  code = argmax p[i] / E[i], E exponential: Gumbel-max. TEMPERATURE 0: argmax l.
// A workgroup per codebook; how its lanes share the codes is a piece. scores[0] are p before filters, scores[1] after.
// needs: lib/step, lib/hash, lib/frame, lib/sum_* and lib/lanes_* (both alone or both shared);
//   const BOOKS, CODES, EOS, UNKNOWN, WORKGROUP, SLICES = WORKGROUP

alias Sum = f32;

struct Sampling {
  guidance: f32, temperature: f32, linear: f32, confidence: f32, quadratic: f32,
  top_p: f32, top_k: f32, min_p: f32, penalty: f32, window: f32,
}
struct Best { score: f32, index: u32 }

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [1 or 2 rows, BOOKS, CODES]: conditional, unconditional
@group(0) @binding(1) var<storage, read> grid: array<u32>;
@group(0) @binding(2) var<storage, read> frame: Frame;
@group(0) @binding(3) var<storage, read> sampling: Sampling;
@group(0) @binding(4) var<storage, read_write> scores: array<f32>; // [2, BOOKS, CODES]
@group(0) @binding(5) var<storage, read_write> drawn: array<u32>;

const LOWEST: f32 = -1e30; // finite: WGSL may assume that there are no infinities

fn better(a: Best, b: Best) -> Best {
  if (b.score > a.score || (b.score == a.score && b.index < a.index)) { return b; }
  return a;
}

fn banned(k: u32, i: u32) -> bool {
  if (i != EOS) { return false; }
  return select(frame.others_end == 0u, frame.column < frame.end_from, k == 0u);
}

fn logit(k: u32, i: u32) -> f32 {
  if (banned(k, i)) { return LOWEST; }
  let at = k * CODES + i;
  var l = logits[at];
  if (step.rows > 1u) { l = logits[BOOKS * CODES + at] + (l - logits[BOOKS * CODES + at]) * sampling.guidance; }
  var factor = 1.0;
  for (var n = 1u; n <= min(u32(sampling.window), frame.column); n++) {
    if (grid[(frame.column - n) * BOOKS + k] == i) { factor *= sampling.penalty; }
  }
  return select(l / factor, l * factor, l <= 0.0);
}

// Exponential with mean 1; near 1 the logarithm is a series, since WGSL's loses its digits there.
fn exponential(k: u32, i: u32) -> f32 {
  let bits = hash(hash(hash(frame.seed) + frame.column) + k * CODES + i) >> 9u;
  let v = (f32(8388607u - bits) + 0.5) / 8388608.0; // 1 - u
  let series = v * (1.0 + v * (0.5 + v * (1.0 / 3.0 + v * 0.25)));
  return select(-log((f32(bits) + 0.5) / 8388608.0), series, v < 0.01);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let k = group.x;
  let own = k * CODES;
  let filtered = (BOOKS + k) * CODES;

  var best = Best(LOWEST, u32(UNKNOWN));
  for (var i = lane; i < CODES; i += LANES) {
    let l = logit(k, i);
    scores[filtered + i] = l;
    if (l > best.score) { best = Best(l, i); }
  }
  best = lanes_best(best.score, best.index, lane);
  if (sampling.temperature == 0.0) {
    if (lane == 0u) { drawn[k] = best.index; }
    return;
  }

  var sum = 0.0;
  for (var i = lane; i < CODES; i += LANES) {
    let p = exp((scores[filtered + i] - best.score) / sampling.temperature);
    scores[filtered + i] = p;
    sum += p;
  }
  sum = slices_sum(sum, lane);
  for (var i = lane; i < CODES; i += LANES) { scores[filtered + i] /= sum; }

  if (sampling.linear > 0.0) {
    var entropy = 0.0;
    for (var i = lane; i < CODES; i += LANES) {
      let p = scores[filtered + i];
      entropy -= p * log(max(p, 1e-20));
    }
    let slope = sampling.linear + slices_sum(entropy, lane) * sampling.confidence;
    var top = LOWEST;
    for (var i = lane; i < CODES; i += LANES) {
      let lp = log(max(scores[filtered + i], 1e-20));
      let s = select(lp * slope - lp * lp * sampling.quadratic, LOWEST, banned(k, i));
      scores[filtered + i] = s;
      top = max(top, s);
    }
    top = lanes_best(top, 0u, lane).score;
    sum = 0.0;
    for (var i = lane; i < CODES; i += LANES) {
      let p = exp(scores[filtered + i] - top);
      scores[filtered + i] = p;
      sum += p;
    }
    sum = slices_sum(sum, lane);
    for (var i = lane; i < CODES; i += LANES) { scores[filtered + i] /= sum; }
  }

  var most = 0.0;
  for (var i = lane; i < CODES; i += LANES) {
    scores[own + i] = scores[filtered + i];
    most = max(most, scores[own + i]);
  }
  most = lanes_best(most, 0u, lane).score;
  let ranked = sampling.top_p > 0.0 || sampling.top_k > 0.0;
  if (ranked) { meet(); }
  sum = 0.0;
  for (var i = lane; i < CODES; i += LANES) {
    let p = scores[own + i];
    var above = vec2f(); // of more probable codes: their probability, their number
    if (ranked) {
      for (var j = 0u; j < CODES; j++) {
        let other = scores[own + j];
        above += select(vec2f(), vec2f(other, 1.0), other > p);
      }
    }
    let dropped = (sampling.top_p > 0.0 && above.x > sampling.top_p) ||
                  (sampling.top_k > 0.0 && above.y >= sampling.top_k) || p < sampling.min_p * most;
    scores[filtered + i] = select(p, 0.0, dropped);
    sum += select(p, 0.0, dropped);
  }
  sum = slices_sum(sum, lane);

  best = Best(0.0, u32(UNKNOWN));
  for (var i = lane; i < CODES; i += LANES) {
    let p = scores[filtered + i] / sum;
    scores[filtered + i] = p;
    let score = p / exponential(k, i);
    if (score > best.score) { best = Best(score, i); }
  }
  best = lanes_best(best.score, best.index, lane);
  if (lane == 0u) { drawn[k] = best.index; }
}
