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

// erfc(z) for z >= 0, off by a few 1e-7: t exp(-z^2 + p(t)), t = 1 / (1 + z / 2), with p fitted to 40 digits of erfc.
fn erfc_of(z: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.5 * z);
  let high = -0.0802804316 + t * (-0.696251899 + t * (1.15673376 + t * (-0.680827178 + t * 0.144930214)));
  let p = -1.265448 + t * (0.998632783 + t * (0.386640412 + t * (0.0346028002 + t * (0.00126758597 + t * high))));
  return t * exp(max(p - z * z, -87.0));
}

// x P(X <= x) of a normal X, by the error function.
fn gelu(x: f32) -> f32 {
  let tail = 0.5 * erfc_of(abs(x) * 0.70710678);
  return x * select(tail, 1.0 - tail, x >= 0.0);
}

// The same by PyTorch's 'tanh' formula: x (1 + tanh(u)) / 2 = x sigmoid(2u).
fn gelu_tanh(x: f32) -> f32 { return x * sigmoid(1.5957691216 * (x + 0.044715 * x * x * x)); }
