// Activations that neither overflow nor lose small values: exp only ever sees an argument of at most 20.
fn sigmoid(x: f32) -> f32 {
  let e = exp(-abs(x));
  return select(e, 1.0, x >= 0.0) / (1.0 + e);
}

fn silu(x: f32) -> f32 { return x * sigmoid(x); }
fn silu4(x: vec4f) -> vec4f { return x * sigmoid4(x); }

fn sigmoid4(x: vec4f) -> vec4f {
  let e = exp(-abs(x));
  return select(e, vec4f(1.0), x >= vec4f()) / (1.0 + e);
}

// log(1 + exp(x)); WGSL has no log1p, so small exp(x) goes through 2 atanh(e / (2 + e)).
fn softplus(x: f32) -> f32 {
  let e = exp(min(x, 20.0));
  let s = e / (2.0 + e);
  let q = s * s;
  let small = 2.0 * s * (1.0 + q * (1.0 / 3.0 + q * (0.2 + q / 7.0)));
  return select(select(log(1.0 + e), small, e < 0.25), x, x > 20.0);
}

// tanh that cannot overflow; off by a few 1e-8.
fn tanh_of(x: f32) -> f32 {
  let e = exp(-2.0 * abs(x));
  return sign(x) * (1.0 - e) / (1.0 + e);
}
