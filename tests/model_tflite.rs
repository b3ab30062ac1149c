//! The `.tflite` reader on files built here, slot by slot: what it must read, and what it must refuse where.
#![cfg(feature = "model")]
#![allow(missing_docs)]

#[path = "model_support/builder.rs"]
mod builder;

use arenite::error::Kind;
use arenite::graph::tables::{Allocation, Call, Tables};
use arenite::model::{CallKind, DType, Effect, Flags, Model, Position, ReadError, TensorKind};
use builder::{BufferSpec, FileSpec, GraphSpec, OpSpec, Options, TensorSpec};

const CONV: u32 = 0;
const DEQUANTIZE: u32 = 1;
const CUSTOM: u32 = 2;
const NEW: u32 = 3;
const WHILE: u32 = 4;
const VAR_HANDLE: u32 = 5;
const ASSIGN: u32 = 6;
const READ: u32 = 7;
const COMPOSITE: u32 = 8;
const IF: u32 = 9;

fn codes() -> Vec<(i8, i32, Option<&'static str>)> {
    vec![
        (3, 0, None),
        (0, 6, None), // the code is the larger of the two
        (32, 32, Some("Foo bar")),
        (127, 999, None),
        (119, 119, None),
        (127, 142, None),
        (127, 144, None),
        (127, 143, None),
        (127, 206, None),
        (118, 118, None),
    ]
}

fn tensor(name: &'static str, shape: &[i32]) -> TensorSpec {
    TensorSpec { name, shape: shape.to_vec(), ..TensorSpec::default() }
}

fn op(opcode: u32, inputs: &[i32], outputs: &[i32]) -> OpSpec {
    OpSpec { opcode, inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..OpSpec::default() }
}

fn calls(mut op: OpSpec, kind: u8, second: bool, list: [i32; 2]) -> OpSpec {
    op.options = Options::Subgraphs { kind, second, list };
    op
}

/// A small file with a bit of everything.
fn sample() -> FileSpec {
    let mut weights = tensor("w", &[2, 3]);
    (weights.buffer, weights.dtype) = (1, 17);
    let mut input = tensor("x", &[1, 4]);
    input.signature = vec![-1, 4];
    let mut sparse = tensor("s", &[8, 8]);
    (sparse.buffer, sparse.sparse) = (2, true);
    let mut handle = tensor("h", &[]);
    handle.dtype = 13;
    let mut state = tensor("v", &[5]);
    state.variable = true;
    let tensors = vec![input, weights, tensor("w32", &[2, 3]), tensor("y", &[1, 4]), sparse, handle, state];
    let ops = vec![
        op(DEQUANTIZE, &[1], &[2]),
        op(CONV, &[0, 2, -1], &[3]),
        OpSpec { options: Options::VarHandle("state"), ..op(VAR_HANDLE, &[], &[5]) },
        op(ASSIGN, &[5, 3], &[]),
        op(CUSTOM, &[3, 4], &[3]),
        op(NEW, &[6], &[]),
    ];
    FileSpec {
        codes: codes(),
        graphs: vec![GraphSpec { tensors, ops, inputs: vec![0], outputs: vec![3] }],
        buffers: vec![BufferSpec::Data(vec![]), BufferSpec::Data(vec![7; 3]), BufferSpec::Data(vec![1; 40])],
        signatures: vec![("serving", 0, vec![("in", 0)], vec![("out", 3)])],
        ..FileSpec::default()
    }
}

fn load(spec: &FileSpec) -> Result<Model, ReadError> {
    Model::from_tflite(&spec.build(), "built")
}

/// The sample with one change.
fn with(change: impl FnOnce(&mut FileSpec)) -> Result<Model, ReadError> {
    let mut spec = sample();
    change(&mut spec);
    load(&spec)
}

#[test]
fn names_kinds_sizes_and_places() {
    let file = sample().build();
    let m = Model::from_tflite(&file, "built").unwrap();
    let g = &m.subgraphs[0];
    let kinds: Vec<_> = g.tensors.iter().map(|t| t.kind).collect();
    use TensorKind::{Const, Input, Inter, Persist, Var};
    assert_eq!(kinds, [Input, Const, Persist, Inter, Const, Inter, Var]);
    let sizes: Vec<_> = g.tensors.iter().map(|t| t.bytes).collect();
    assert_eq!(sizes, [Some(16), Some(3), Some(24), Some(16), Some(256), None, Some(20)], "int4 packs two");
    let ops: Vec<_> = g.nodes.iter().map(|n| &*n.op).collect();
    assert_eq!(ops, ["DEQUANTIZE", "CONV_2D", "VAR_HANDLE", "ASSIGN_VARIABLE", "CUSTOM:Foo bar", "BUILTIN_999"]);
    assert_eq!(g.nodes[1].inputs, [0, 2, -1]);
    let range = g.tensors[1].data.clone().unwrap();
    assert_eq!(file[range.start as usize..range.end as usize], [7; 3]);
    assert_eq!((m.constant_bytes, g.constant_bytes), (43, 43), "sparse data counts as stored");
    assert_eq!(g.tensors[4].flags, Flags::from_letters("s").unwrap());
    assert_eq!(g.tensors[0].signature, Some(vec![-1, 4]));
    assert_eq!((m.resources.len(), &*m.resources[0].name, m.resources[0].bytes), (1, "state", Some(16)));
    assert_eq!((g.nodes[2].resource, g.nodes[3].resource, g.nodes[0].resource), (Some(0), Some(0), None));
    let effects: Vec<_> = g.nodes.iter().map(|n| n.effect).collect();
    use Effect::{None as Pure, Writes};
    assert_eq!(effects, [Pure, Pure, Pure, Writes, Writes, Writes]);
    assert_eq!((g.variables.clone(), m.signatures[0].outputs.clone()), (vec![6], vec![("out".into(), 3)]));
    assert_eq!(g.tensor(2).allocation, Allocation::ArenaRwPersistent);
    assert_eq!((g.tensor(1).allocation, g.tensor(5).allocation), (Allocation::MmapRo, Allocation::None));
    assert!(g.tensor(6).variable);
    assert_eq!(m.warnings.len(), 1, "{:?}", m.warnings);
}

#[test]
fn unknown_dimensions_count_as_one_until_they_are_set() {
    let mut m = with(|f| f.graphs[0].tensors[3].shape = vec![-1, 4]).unwrap();
    let y = &m.subgraphs[0].tensors[3];
    assert_eq!((y.bytes, y.file_bytes, y.flags.has(Flags::UNKNOWN_DIM)), (Some(16), None, true));
    assert_eq!(m.unresolved().len(), 2);
    assert_eq!(m.set_shape("in", &[3, 4]), Ok(1), "by the signature's name");
    assert_eq!(m.set_shape("y", &[3, 4]), Ok(1));
    assert_eq!(m.subgraphs[0].tensors[3].bytes, Some(48));
    assert_eq!((m.unresolved(), m.subgraphs[0].tensors[0].bytes), (vec![], Some(48)));
}

#[test]
fn br_21_shape_products_never_wrap() {
    let shaped = |shape: &[i32]| with(|f| f.graphs[0].tensors[3].shape = shape.to_vec());
    assert_eq!(shaped(&[65536, 65536]).unwrap().subgraphs[0].tensors[3].bytes, Some(17_179_869_184));
    let error = shaped(&[i32::MAX, i32::MAX, 4]).unwrap_err();
    assert_eq!(error.kind, Kind::Overflow);
    assert!(error.what.contains("tensor 3 \"y\"") && matches!(error.at, Position::Byte(b) if b > 0), "{error}");
    assert_eq!(shaped(&[0, 7]).unwrap().subgraphs[0].tensors[3].bytes, Some(0));
    assert_eq!(shaped(&[-2, 7]).unwrap_err().kind, Kind::Argument);
}

#[test]
fn br_20_offline_plans() {
    let words = |list: &[i32]| list.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let planned = |blob: Vec<u8>| {
        let graph = GraphSpec { tensors: vec![tensor("a", &[4]), tensor("b", &[4])], ..GraphSpec::default() };
        load(&FileSpec {
            graphs: vec![graph.clone(), graph],
            buffers: vec![BufferSpec::Data(vec![]), BufferSpec::Data(blob)],
            metadata: vec![("OfflineMemoryAllocation", 1), ("model_control_dependencies", 1)],
            ..FileSpec::default()
        })
    };
    let m = planned(words(&[1, 2, 4, 0, 128, 256, -1])).unwrap();
    assert_eq!(m.offline_plan, Some(vec![Some(0), Some(128), Some(256), None]));
    assert_eq!((m.offline_offset(1, 0), m.offline_offset(1, 1), m.offline_offset(2, 0)), (Some(256), None, None));
    assert_eq!((m.entries(), m.metadata.len()), (vec![0, 1], 2));
    assert!(m.control_dependencies.is_some());
    let short = planned(words(&[1, 1, 8, 0, 128, 256])).unwrap_err();
    assert_eq!(short.kind, Kind::Argument);
    assert!(short.what.contains("announces 8 offsets, 3 follow") && matches!(short.at, Position::Byte(_)), "{short}");
    assert!(planned(vec![]).is_err() && planned(vec![1; 11]).is_err());
}

#[test]
fn control_flow_runs_what_its_options_name() {
    let with_calls = |ops: Vec<OpSpec>, n: usize| {
        let mut spec = FileSpec { codes: codes(), graphs: vec![GraphSpec::default(); n], ..FileSpec::default() };
        spec.graphs[0].ops = ops;
        load(&spec)
    };
    let ops = vec![
        calls(op(WHILE, &[], &[]), 93, false, [1, 2]),
        calls(op(IF, &[], &[]), 92, false, [2, 1]),
        OpSpec { options: Options::Composite(3), ..op(COMPOSITE, &[], &[]) },
    ];
    let m = with_calls(ops, 5).unwrap();
    let g = &m.subgraphs[0];
    assert_eq!((g.node(0).call, g.node(1).call), (Call::Loop(&[1, 2]), Call::Branch(&[2, 1])));
    assert_eq!((g.node(2).call, g.nodes[2].call), (Call::Sequence(&[3]), CallKind::Sequence));
    assert_eq!(m.entries(), [0, 4]);
    for (op, expected) in [
        (calls(op(WHILE, &[], &[]), 93, false, [0, 1]), "closes a cycle"),
        (calls(op(WHILE, &[], &[]), 93, false, [1, 9]), "it calls subgraph 9, the model has 2"),
        (calls(op(WHILE, &[], &[]), 93, false, [1, -1]), "a subgraph's index is negative"),
        (calls(op(WHILE, &[], &[]), 92, false, [1, 1]), "do not name the subgraphs"),
        (op(IF, &[], &[]), "do not name the subgraphs"),
    ] {
        let error = with_calls(vec![op], 2).unwrap_err();
        assert!(error.what.contains(expected), "{error}");
    }
}

#[test]
fn buffers_behind_the_flatbuffer() {
    let spec = |offset, size| {
        let mut f = sample();
        f.buffers[1] = BufferSpec::External { offset, size };
        f
    };
    let inner = spec(9, 3).build().len() as u64;
    let mut file = spec(inner, 3).build();
    file.extend([1, 2, 3]);
    let m = Model::from_tflite(&file, "external").unwrap();
    assert_eq!(m.subgraphs[0].tensors[1].data, Some(inner..inner + 3));
    for (offset, size) in [(inner + 1, 3), (u64::MAX, 3), (2, u64::MAX)] {
        let error = Model::from_tflite(&spec(offset, size).build(), "external").unwrap_err();
        assert!(error.what.contains("past the file's end"), "{error}");
    }
    let placeholder = Model::from_tflite(&spec(1, 3).build(), "external").unwrap();
    assert_eq!(placeholder.subgraphs[0].tensors[1].data, None);
}

#[test]
fn every_index_is_checked_and_named() {
    let check = |change: fn(&mut FileSpec), expected: &str| {
        let error = with(change).unwrap_err();
        assert!(error.what.contains(expected), "{error}");
        assert!(matches!(error.at, Position::Byte(b) if b > 0), "{error}");
    };
    check(|f| f.graphs[0].inputs = vec![7], "graph input 0: there is no tensor 7, of 7");
    check(|f| f.graphs[0].outputs = vec![3, -2], "graph output 1: there is no tensor -2, of 7");
    check(|f| f.graphs[0].ops[1].inputs[1] = i32::MAX, "node 1 (\"CONV_2D\") input 1: there is no tensor 2147483647");
    check(|f| f.graphs[0].ops[0].outputs[0] = i32::MIN, "node 0 (\"DEQUANTIZE\") output 0");
    check(|f| f.graphs[0].ops[0].opcode = 10, "there is no operator kind 10, of 10");
    check(|f| f.graphs[0].tensors[1].buffer = 3, "there is no buffer 3, of 3");
    check(|f| f.metadata = vec![("m", 3)], "there is no buffer 3, of 3");
    check(|f| f.signatures[0].1 = 1, "there is no subgraph 1");
    check(|f| f.signatures[0].2[0].1 = 7, "there is no tensor 7, of 7");
    check(|f| f.graphs.clear(), "the model has no subgraph");
}

#[test]
fn oddities_are_warned_of() {
    let warnings = |change: fn(&mut FileSpec)| with(change).unwrap().warnings.join("; ");
    assert!(warnings(|f| f.graphs[0].tensors[3].dtype = 99).contains("its type 99 is not known"));
    assert!(warnings(|f| f.graphs[0].tensors[1].shape = vec![2, 4]).contains("3 bytes of data for 4"));
    assert!(warnings(|f| f.graphs[0].tensors[1].variable = true).contains("a variable with data"));
    let many = with(|f| f.graphs[0].tensors.extend(vec![TensorSpec { dtype: 99, ..tensor("n", &[1]) }; 500])).unwrap();
    assert!(many.warnings.len() <= 33, "{}", many.warnings.len());
    assert_eq!(many.subgraphs[0].tensors[9].dtype, DType::Unknown);
}

#[test]
fn resources_are_one_across_subgraphs() {
    let mut handle = tensor("h", &[]);
    handle.dtype = 13;
    let graph = |value: &[i32], opcode, inputs: &[i32], outputs: &[i32]| GraphSpec {
        tensors: vec![handle.clone(), tensor("value", value)],
        ops: vec![
            OpSpec { options: Options::VarHandle("v"), ..op(VAR_HANDLE, &[], &[0]) },
            op(opcode, inputs, outputs),
        ],
        ..GraphSpec::default()
    };
    let graphs = vec![graph(&[4], READ, &[0], &[1]), graph(&[6], ASSIGN, &[0, 1], &[])];
    let m = load(&FileSpec { codes: codes(), graphs, ..FileSpec::default() }).unwrap();
    assert_eq!((m.resources.len(), m.resources[0].bytes), (1, Some(24)));
    assert_eq!(m.subgraphs[1].nodes[1].resource, Some(0));
}
