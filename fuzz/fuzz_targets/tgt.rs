//! Arbitrary bytes as a graph table. An accepted table has valid indices, and writing it is stable.
#![no_main]

use arenite::graph::tables::validate;
use arenite::model::Model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(model) = Model::from_tgt(file) else { return };
    for graph in &model.subgraphs {
        validate(graph).expect("indices were checked");
    }
    let table = model.to_tgt();
    assert_eq!(Model::from_tgt(table.as_bytes()).expect("a table we wrote").to_tgt(), table);
});
