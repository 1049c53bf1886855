// The keys of a token: the cache rows of its segment's prefix, then the segment's own.    needs: lib/segment.wgsl
fn cache_row(s: Segment, n: u32) -> u32 {
  return select(s.kv_start + n - s.prefix_length, s.prefix_start + n, n < s.prefix_length);
}

// How many keys token i of the segment sees.    needs: const CAUSAL
fn visible_keys(s: Segment, i: u32) -> u32 {
  return s.prefix_length + s.kv_before + select(s.length, i + 1u, CAUSAL == 1);
}
