// Frame: the column of codes that a run of Zonos makes, and where it lies; see Frame in src/kernels/sample_codes.ts.
struct Frame {
  column: u32,      // of the delayed grid
  end_from: u32,    // codebook 0 may not say EOS in earlier columns
  others_end: u32,  // 1: the other codebooks may say EOS
  ends: u32,        // 1: EOS in codebook 0 ends the row
  seed: u32,
  before: u32,      // frames of codes that were given
  wanted: u32,      // new frames at most
  shifted: u32,     // 1: unknown cells of a column take the codes in turn
}
