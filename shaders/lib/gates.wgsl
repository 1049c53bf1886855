// The log of a head's decay: g = -exp(a_log) softplus(a + dt_bias), at least -88.    needs: lib/activation
// exp(-88) is below f32's smallest normal number, so a stronger decay is the same one: nothing stays. The floor keeps
// an overflowing softplus from making -inf, and -inf + inf = NaN out of sums of g.
fn log_decay(a: f32, a_log: f32, dt_bias: f32) -> f32 {
  return max(-exp(a_log) * softplus(a + dt_bias), -88.0);
}
