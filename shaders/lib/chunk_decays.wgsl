// The gates of a chunk of 64 tokens in workgroup memory, and what decays between its rows, in sums of g that are never
// differences of long ones: from a row's block of 16 on, behind the row to the block's end, and of whole blocks.
// needs: lib/decay (g and total); bindings gates and decay; const CHUNK, NV

var<workgroup> beta: array<vec4f, CHUNK / 4>;
var<workgroup> grows: array<vec4f, CHUNK / 4>;  // exp(G)
var<workgroup> upto: array<vec4f, CHUNK / 4>;   // sums of g in a row's block, up to the row
var<workgroup> beyond: array<vec4f, CHUNK / 4>; // and behind it
var<workgroup> middle: vec2f;                   // of the second and the third block

// g and beta of a quad of rows; behind the last token nothing decays and beta is zero.
fn put_gates(quad: u32, rows: u32, token: u32, n: u32) {
  let row = quad * 4 + vec4u(0, 1, 2, 3);
  let at = (token + min(row, vec4u(rows - 1))) * 2 * NV + n;
  let inside = row < vec4u(rows);
  g[quad] = select(vec4f(), vec4f(gates[at.x], gates[at.y], gates[at.z], gates[at.w]), inside);
  let to = at + NV;
  beta[quad] = select(vec4f(), vec4f(gates[to.x], gates[to.y], gates[to.z], gates[to.w]), inside);
}

// Of the quads of a block.
fn totals(block: u32) -> vec4f {
  let at = min(block * 4, CHUNK / 4 - 4);
  return vec4f(total(g[at]), total(g[at + 1]), total(g[at + 2]), total(g[at + 3]));
}

fn put_decays(quad: u32, rows: u32, token: u32, n: u32) {
  let index = vec4u(0, 1, 2, 3);
  let blocks = vec4f(total(totals(0)), total(totals(1)), total(totals(2)), total(totals(3)));
  let quads = totals(quad / 4);
  let own = g[quad];
  let up = total(select(vec4f(), quads, index < vec4u(quad % 4))) +
           vec4f(own.x, own.x + own.y, (own.x + own.y) + own.z, total(own));
  let down = total(select(vec4f(), quads, index > vec4u(quad % 4))) +
             vec4f((own.y + own.z) + own.w, own.z + own.w, own.w, 0.0);
  upto[quad] = up;
  beyond[quad] = down;
  if (quad == 0) { middle = blocks.yz; }
  let grown = exp(total(select(vec4f(), blocks, index < vec4u(quad / 4))) + up);
  let remains = exp(total(select(vec4f(), blocks, index > vec4u(quad / 4))) + down);
  grows[quad] = grown;
  let at = (token + quad * 4) * 2 * NV + n;
  if (quad * 4 < rows) { decay[at] = grown.x; decay[at + NV] = remains.x; }
  if (quad * 4 + 1 < rows) { decay[at + 2 * NV] = grown.y; decay[at + 3 * NV] = remains.y; }
  if (quad * 4 + 2 < rows) { decay[at + 4 * NV] = grown.z; decay[at + 5 * NV] = remains.z; }
  if (quad * 4 + 3 < rows) { decay[at + 6 * NV] = grown.w; decay[at + 7 * NV] = remains.w; }
}

// D[row, 4 quad .. 4 quad + 3]; zeros behind the diagonal.
fn decays(row: u32, quad: u32) -> vec4f {
  let own = upto[row / 4][row % 4];
  let between = select(0.0, middle.x, quad < 4 && row >= 32) + select(0.0, middle.y, quad < 8 && row >= 48);
  let sum = select(own + (beyond[quad] + between), own - upto[quad], vec4<bool>(quad / 4 == row / 16));
  return exp(select(sum, vec4f(-200), quad * 4 + vec4u(0, 1, 2, 3) > vec4u(row))); // exp(-200) is 0
}
