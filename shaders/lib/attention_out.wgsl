// o of attention_matrix: RM x RN fragments in each subgroup, and the sums of its share of the rows' weights. m and n
// are literals, so that a test for a fragment that there is not costs nothing.
// needs: lib/attention_units, lib/attention_stage, lib/attention_weights, lib/gate_*

struct Out {
  o00: Sums, o01: Sums,
  o10: Sums, o11: Sums,
  o20: Sums, o21: Sums,
  o30: Sums, o31: Sums,
  sums: Sums,
}

// Where the subgroup stands: its first column of o, the fragment of rows whose weights it sums.
struct Place { d: u32, summed: u32, subgroup: u32, lane: u32 }

// o with the products of weights and values from key k of the tile on.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn add_values(o: Out, at: Place, k: u32) -> Out {
  var x = o;
  if (k < KEYS) {
    let a0 = weight_at(0, k);
    let a1 = weight_at(1, k);
    let a2 = weight_at(2, k);
    let a3 = weight_at(3, k);
    let b0 = value_at(k, at.d);
    x.o00 = add(0, a0, b0, o.o00);
    x.o10 = add(1, a1, b0, o.o10);
    x.o20 = add(2, a2, b0, o.o20);
    x.o30 = add(3, a3, b0, o.o30);
    if (RN > 1) {
      let b1 = value_at(k, at.d + FN);
      x.o01 = add(0, a0, b1, o.o01);
      x.o11 = add(1, a1, b1, o.o11);
      x.o21 = add(2, a2, b1, o.o21);
      x.o31 = add(3, a3, b1, o.o31);
    }
    x.sums = add(0, weight_at(at.summed, k), Right(1), o.sums);
  }
  return x;
}

// Each row times its `keep`.
fn scale(o: Out, at: Place) -> Out {
  var x: Out;
  x.sums = scaled(true, at.summed * FM, o.sums, at.subgroup, at.lane);
  x.o00 = scaled(true, 0, o.o00, at.subgroup, at.lane);
  x.o01 = scaled(RN > 1, 0, o.o01, at.subgroup, at.lane);
  x.o10 = scaled(RM > 1, FM, o.o10, at.subgroup, at.lane);
  x.o11 = scaled(RM > 1 && RN > 1, FM, o.o11, at.subgroup, at.lane);
  x.o20 = scaled(RM > 2, 2 * FM, o.o20, at.subgroup, at.lane);
  x.o21 = scaled(RM > 2 && RN > 1, 2 * FM, o.o21, at.subgroup, at.lane);
  x.o30 = scaled(RM > 3, 3 * FM, o.o30, at.subgroup, at.lane);
  x.o31 = scaled(RM > 3 && RN > 1, 3 * FM, o.o31, at.subgroup, at.lane);
  return x;
}

fn finish(t: Tile, o: Out, at: Place, thread: u32) {
  workgroupBarrier();
  put_sums(at.summed, o.sums);
  put_out(0, at.d, 0, o.o00);
  put_out(0, at.d, 1, o.o01);
  put_out(1, at.d, 0, o.o10);
  put_out(1, at.d, 1, o.o11);
  workgroupBarrier();
  write_rows(t, 0, thread);
  if (RM > 2) {
    workgroupBarrier();
    put_out(2, at.d, 0, o.o20);
    put_out(2, at.d, 1, o.o21);
    put_out(3, at.d, 0, o.o30);
    put_out(3, at.d, 1, o.o31);
    workgroupBarrier();
    write_rows(t, 2, thread);
  }
}

// Four numbers of y: row `line` of those that lie in workgroup memory, from fragments m of o on.
struct Four { at: u32, y: vec4f, seen: bool }
fn four(t: Tile, m: u32, i: u32) -> Four {
  let line = min(i / D4, LINES - 1);
  let row = min(m * FM + line, ROWS - 1);
  let token = t.first + row / HEADS_OF_KV;
  let head = t.kv_head * HEADS_OF_KV + row % HEADS_OF_KV;
  let o = bitcast<vec4f>(tile[line * O_WIDTH + i % D4]) / bitcast<f32>(p[row * (FN / 4)].x);
  let seen = token < t.end && i / D4 < LINES && m * FM + i / D4 < ROWS;
  return Four((token * HEADS + head) * D4 + i % D4, gated(o, min(token, t.end - 1u), head, i % D4), seen);
}

fn write(x: Four) { if (x.seen) { y[x.at] = vec4<Y>(x.y); } }

fn write_rows(t: Tile, m: u32, thread: u32) {
  for (var i = thread; i < LINES * D4; i += 4 * WORKGROUP) {
    let a = four(t, m, i);
    let b = four(t, m, i + WORKGROUP);
    let c = four(t, m, i + 2 * WORKGROUP);
    let d = four(t, m, i + 3 * WORKGROUP);
    write(a);
    write(b);
    write(c);
    write(d);
  }
}
