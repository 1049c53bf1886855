// x + sin(alpha x)^2 / (alpha + 1e-9). The square of sin has the period pi, so n pi is taken off in two pieces: 201/64,
// whose multiples are exact, made of integers since Mesa would put both pieces together again, and the rest. Then a
// polynomial of sin over [-pi/2, pi/2], off by 5e-9. WGSL's own sin may be off by 5e-4.
fn snake(x: f32, alpha: f32) -> f32 {
  let v = alpha * x;
  let n = round(v * 0.31830988618);
  let rest = v - f32(i32(n) * 201) / 64.0 - n * 9.67653589793e-4;
  let r = clamp(rest, -1.6, 1.6); // phases of millions have no digits left, but stay bounded
  let q = r * r;
  let p = fma(fma(fma(2.600054730e-6, q, -1.9806615185e-4), q, 8.33301729133e-3), q, -0.166666570965);
  let s = fma(r * q, p, r);
  return x + s * s / (alpha + 1e-9);
}
