// Eight columns of a head, by name: GPU compilers put what a variable indexes into memory.
struct Eight { lo: vec4f, hi: vec4f }
fn product(a: Eight, b: Eight) -> f32 { return dot(a.lo, b.lo) + dot(a.hi, b.hi); }
fn scaled(a: Eight, f: f32) -> Eight { return Eight(a.lo * f, a.hi * f); }
fn sum_of(a: Eight, b: Eight) -> Eight { return Eight(a.lo + b.lo, a.hi + b.hi); }
fn either(a: Eight, b: Eight, second: bool) -> Eight {
  return Eight(select(a.lo, b.lo, second), select(a.hi, b.hi, second));
}

fn component(v: vec4f, i: u32) -> f32 { return select(select(v.x, v.y, i == 1u), select(v.z, v.w, i == 3u), i > 1u); }
