// operand(): eight terms of the layer norm of a row of x. Every workgroup finds mean and variance of its two rows: each
// lane those of its share, then partners at distance 1, 2, 4, .. merge theirs (Chan, Golub and LeVeque 1979), the same
// bits for all lanes. Two halves of the buffer take turns, so that a step costs one barrier.
// needs: struct Eight; x; const IN, EPS, WORKGROUP, a power of two
@group(0) @binding(2) var<storage, read> norm: array<vec4f>; // [2, IN]: weight, bias

struct Operands { mean: vec2f, scale: vec2f } // of both rows
struct Moments { n: f32, mean: vec2f, squares: vec2f } // values, their mean, their squared distances from it
var<workgroup> moments: array<Moments, 2 * WORKGROUP>;

fn merged(a: Moments, b: Moments) -> Moments {
  let n = max(a.n + b.n, 1.0);
  let apart = b.mean - a.mean;
  return Moments(a.n + b.n, a.mean + apart * (b.n / n), a.squares + b.squares + apart * apart * (a.n * b.n / n));
}

fn operands_of(r: vec2u, lane: u32) -> Operands {
  let at = r * (IN / 4u);
  var m: Moments;
  for (var i = lane; i < IN / 4u; i += WORKGROUP) {
    m.n += 4.0;
    m.mean += vec2f(dot(vec4f(x[at.x + i]), vec4f(1.0)), dot(vec4f(x[at.y + i]), vec4f(1.0)));
  }
  m.mean /= max(m.n, 1.0);
  for (var i = lane; i < IN / 4u; i += WORKGROUP) {
    let a = vec4f(x[at.x + i]) - m.mean.x;
    let b = vec4f(x[at.y + i]) - m.mean.y;
    m.squares += vec2f(dot(a, a), dot(b, b));
  }
  var turn = 0u;
  for (var distance = 1u; distance < WORKGROUP; distance *= 2u) {
    moments[turn + lane] = m;
    workgroupBarrier();
    let other = moments[turn + (lane ^ distance)];
    if ((lane & distance) == 0u) { m = merged(m, other); } else { m = merged(other, m); }
    turn = WORKGROUP - turn;
  }
  return Operands(m.mean, inverseSqrt(m.squares / f32(IN) + EPS));
}

fn operand(o: Operands, r: vec2u, which: u32, k: u32) -> Eight {
  let second = which == 1u;
  let at = (select(r.x, r.y, second) * IN + k) / 4u;
  let mean = select(o.mean.x, o.mean.y, second);
  let scale = select(o.scale.x, o.scale.y, second);
  let n = k / 4u;
  return Eight(
    (vec4f(x[at]) - mean) * scale * norm[n] + norm[IN / 4u + n],
    (vec4f(x[at + 1u]) - mean) * scale * norm[n + 1u] + norm[IN / 4u + n + 1u],
  );
}
