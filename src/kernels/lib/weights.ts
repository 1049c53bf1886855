import bf16 from '../../../shaders/lib/weight_bf16.wgsl' with { type: 'text' }
import f16 from '../../../shaders/lib/weight_f16.wgsl' with { type: 'text' }
import f32 from '../../../shaders/lib/weight_f32.wgsl' with { type: 'text' }
import halves from '../../../shaders/lib/weight_halves.wgsl' with { type: 'text' }
import q8 from '../../../shaders/lib/weight_q8.wgsl' with { type: 'text' }

/** How a kernel reads weights of a format as f32, from a packed binding w. */
export const weightPieces = { f32, f16: `${halves}${f16}`, bf16: `${halves}${bf16}`, q8, u32: '' }
