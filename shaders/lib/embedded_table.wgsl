// embedded(): eight columns of a row of the table.    needs: lib/weight_*
fn embedded(id: u32, k: u32) -> Weight8 { return weight8(id, k); }
