/** x + sin²(α x) / (α + 1e-9), in double: the maths of shaders/lib/snake.wgsl (Ziyin et al. 2020, as DAC has it). */
export const snake = (x: number, alpha: number): number => x + Math.sin(alpha * x) ** 2 / (alpha + 1e-9)
