//! Arbitrary bytes as a `.tflite` file. An accepted model has valid tables, and its graph table reads back.
#![no_main]

use arenite::graph::tables::validate;
use arenite::model::Model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(mut model) = Model::from_tflite(file, "fuzz") else { return };
    for graph in &model.subgraphs {
        validate(graph).expect("indices were checked");
        for data in graph.tensors.iter().filter_map(|t| t.data.clone()) {
            assert!(data.start < data.end && data.end <= file.len() as u64);
        }
    }
    assert!(model.entries().iter().all(|&k| k < model.subgraphs.len()));
    for open in model.unresolved().into_iter().take(4) {
        let dims: Vec<i64> = open.signature.iter().map(|&d| if d < 0 { 7 } else { d }).collect();
        let _ = model.set_shape(&open.name, &dims);
    }
    let table = model.to_tgt();
    assert_eq!(Model::from_tgt(table.as_bytes()).expect("a table we wrote").to_tgt(), table);
});
