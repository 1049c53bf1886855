// No store_fragment(): every sum goes through finish(). needs alias Sums
const DIRECT = false;

fn store_fragment(at: u32, sums: Sums) {}
