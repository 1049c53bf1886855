// rotated(): vec4 c of head `unit` (queries, then keys) of token t of x, turned by the token's angles: pairs are
// neighbours (2i, 2i + 1) where INTERLEAVED, else (i, i + D / 2).
// needs: x: array<vec4<X>>, rope: array<vec2<ROPE>> ([T, D]: cosines, then sines); const HEADS, KV_HEADS, D, INTERLEAVED
const D4 = D / 4u;
const UNITS = HEADS + 2u * KV_HEADS; // query heads, key heads, value heads

fn rotated(t: u32, unit: u32, c: u32) -> vec4f {
  let at = (t * UNITS + unit) * D4 + c;
  let angles = t * 2u * D4;
  let v = vec4f(x[at]);
  if (INTERLEAVED == 1) {
    let cos = vec2f(rope[angles + c]);
    let sin = vec2f(rope[angles + D4 + c]);
    return vec4f(v.x * cos.x - v.y * sin.x, v.y * cos.x + v.x * sin.x, v.z * cos.y - v.w * sin.y, v.w * cos.y + v.z * sin.y);
  }
  let first = c < D4 / 2u;
  let turned = vec4f(x[select(at - D4 / 2u, at + D4 / 2u, first)]);
  let i = angles + c % (D4 / 2u) * 2u;
  let cos = vec4f(vec2f(rope[i]), vec2f(rope[i + 1u]));
  let sin = vec4f(vec2f(rope[i + D4]), vec2f(rope[i + D4 + 1u]));
  return v * cos + select(turned, -turned, first) * sin;
}
