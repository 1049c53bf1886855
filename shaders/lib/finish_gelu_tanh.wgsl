// finish(): y = gelu(sum + bias), by PyTorch's 'tanh' formula.
// needs: lib/activation; y: array<Y>; const COLUMNS, Y_WIDTH, Y_BINDING (the bias is the last of the reads)
@group(0) @binding(Y_BINDING - 1) var<storage, read> bias: array<BIAS>;

fn finish(row: u32, column: u32, sums: vec2f) { y[row * Y_WIDTH + column] = Y(gelu_tanh(sums.x + f32(bias[column]))); }
