//! Builds `.tflite` files by slot, good and bad ones.
#![allow(dead_code)] // each test program uses its part

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, VOffsetT, WIPOffset};

type Offset = WIPOffset<UnionWIPOffset>;
/// Names and tensors.
type Names = Vec<(&'static str, u32)>;

#[derive(Clone, Default)]
pub struct TensorSpec {
    pub shape: Vec<i32>,
    pub signature: Vec<i32>,
    pub dtype: i8,
    pub buffer: u32,
    pub name: &'static str,
    pub variable: bool,
    pub sparse: bool,
}

#[derive(Clone, Copy, Default)]
pub enum Options {
    #[default]
    None,
    /// Type and the two subgraphs; in the second union where `second`.
    Subgraphs {
        kind: u8,
        second: bool,
        list: [i32; 2],
    },
    Composite(i32),
    VarHandle(&'static str),
}

#[derive(Clone, Default)]
pub struct OpSpec {
    pub opcode: u32,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    pub options: Options,
    pub mutating: Vec<bool>,
}

#[derive(Clone, Default)]
pub struct GraphSpec {
    pub tensors: Vec<TensorSpec>,
    pub ops: Vec<OpSpec>,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
}

#[derive(Clone)]
pub enum BufferSpec {
    Data(Vec<u8>),
    External { offset: u64, size: u64 },
}

#[derive(Clone, Default)]
pub struct FileSpec {
    /// Deprecated code, code, custom name.
    pub codes: Vec<(i8, i32, Option<&'static str>)>,
    pub graphs: Vec<GraphSpec>,
    pub buffers: Vec<BufferSpec>,
    pub metadata: Vec<(&'static str, u32)>,
    /// Key, subgraph, inputs, outputs.
    pub signatures: Vec<(&'static str, u32, Names, Names)>,
}

/// A table from its fields.
fn table(b: &mut FlatBufferBuilder<'_>, fields: impl FnOnce(&mut FlatBufferBuilder<'_>)) -> Offset {
    let start = b.start_table();
    fields(b);
    b.end_table(start).as_union_value()
}

fn list(b: &mut FlatBufferBuilder<'_>, items: &[Offset]) -> Offset {
    b.create_vector(items).as_union_value()
}

fn ints(b: &mut FlatBufferBuilder<'_>, items: &[i32]) -> Offset {
    b.create_vector(items).as_union_value()
}

fn link(b: &mut FlatBufferBuilder<'_>, slot: VOffsetT, to: Offset) {
    b.push_slot_always(slot, to);
}

impl FileSpec {
    pub fn build(&self) -> Vec<u8> {
        let b = &mut FlatBufferBuilder::new();
        let codes: Vec<Offset> = self
            .codes
            .iter()
            .map(|&(old, new, custom)| {
                let custom = custom.map(|c| b.create_string(c).as_union_value());
                table(b, |b| {
                    b.push_slot(4, old, 0);
                    b.push_slot(10, new, 0);
                    custom.into_iter().for_each(|c| link(b, 6, c));
                })
            })
            .collect();
        let graphs: Vec<Offset> = self.graphs.iter().map(|g| graph(b, g)).collect();
        let buffers: Vec<Offset> = self.buffers.iter().map(|spec| buffer(b, spec)).collect();
        let metadata: Vec<Offset> = self
            .metadata
            .iter()
            .map(|&(name, index)| {
                let name = b.create_string(name).as_union_value();
                table(b, |b| {
                    link(b, 4, name);
                    b.push_slot(6, index, 0);
                })
            })
            .collect();
        let signatures: Vec<Offset> = self
            .signatures
            .iter()
            .map(|(key, graph, inputs, outputs)| {
                let key = b.create_string(key).as_union_value();
                let (inputs, outputs) = (maps(b, inputs), maps(b, outputs));
                table(b, |b| {
                    link(b, 4, inputs);
                    link(b, 6, outputs);
                    link(b, 8, key);
                    b.push_slot(12, *graph, 0);
                })
            })
            .collect();
        let parts = [(6, codes), (8, graphs), (12, buffers), (16, metadata), (18, signatures)];
        let parts: Vec<_> = parts.into_iter().map(|(slot, items)| (slot, list(b, &items))).collect();
        let root = table(b, |b| {
            b.push_slot(4, 3u32, 0);
            parts.into_iter().for_each(|(slot, at)| link(b, slot, at));
        });
        b.finish(root, Some("TFL3"));
        b.finished_data().to_vec()
    }
}

fn maps(b: &mut FlatBufferBuilder<'_>, names: &[(&'static str, u32)]) -> Offset {
    let items: Vec<Offset> = names
        .iter()
        .map(|&(name, tensor)| {
            let name = b.create_string(name).as_union_value();
            table(b, |b| {
                link(b, 4, name);
                b.push_slot(6, tensor, 0);
            })
        })
        .collect();
    list(b, &items)
}

fn buffer(b: &mut FlatBufferBuilder<'_>, spec: &BufferSpec) -> Offset {
    match spec {
        BufferSpec::Data(data) if data.is_empty() => table(b, |_| {}),
        BufferSpec::Data(data) => {
            let data = b.create_vector(data).as_union_value();
            table(b, |b| link(b, 4, data))
        }
        &BufferSpec::External { offset, size } => table(b, |b| {
            b.push_slot(6, offset, 0);
            b.push_slot(8, size, 0);
        }),
    }
}

fn graph(b: &mut FlatBufferBuilder<'_>, g: &GraphSpec) -> Offset {
    let tensors: Vec<Offset> = g.tensors.iter().map(|t| tensor(b, t)).collect();
    let ops: Vec<Offset> = g.ops.iter().map(|o| operator(b, o)).collect();
    let (tensors, ops) = (list(b, &tensors), list(b, &ops));
    let (inputs, outputs) = (ints(b, &g.inputs), ints(b, &g.outputs));
    table(b, |b| {
        for (slot, part) in [(4, tensors), (6, inputs), (8, outputs), (10, ops)] {
            link(b, slot, part);
        }
    })
}

fn tensor(b: &mut FlatBufferBuilder<'_>, t: &TensorSpec) -> Offset {
    let (shape, name) = (ints(b, &t.shape), b.create_string(t.name).as_union_value());
    let signature = (!t.signature.is_empty()).then(|| ints(b, &t.signature));
    let sparsity = t.sparse.then(|| table(b, |_| {}));
    table(b, |b| {
        link(b, 4, shape);
        b.push_slot(6, t.dtype, 0);
        b.push_slot(8, t.buffer, 0);
        link(b, 10, name);
        b.push_slot(14, t.variable, false);
        sparsity.into_iter().for_each(|s| link(b, 16, s));
        signature.into_iter().for_each(|s| link(b, 18, s));
    })
}

fn operator(b: &mut FlatBufferBuilder<'_>, o: &OpSpec) -> Offset {
    let (inputs, outputs) = (ints(b, &o.inputs), ints(b, &o.outputs));
    let mutating = (!o.mutating.is_empty()).then(|| b.create_vector(&o.mutating).as_union_value());
    let options = match o.options {
        Options::None => None,
        Options::Subgraphs { kind, second, list } => {
            let value = table(b, |b| {
                b.push_slot(4, list[0], 0);
                b.push_slot(6, list[1], 0);
            });
            Some((kind, second, value))
        }
        Options::Composite(graph) => Some((21, true, table(b, |b| b.push_slot(6, graph, 0)))),
        Options::VarHandle(name) => {
            let name = b.create_string(name).as_union_value();
            Some((111, false, table(b, |b| link(b, 6, name))))
        }
    };
    table(b, |b| {
        b.push_slot(4, o.opcode, 0);
        link(b, 6, inputs);
        link(b, 8, outputs);
        mutating.into_iter().for_each(|m| link(b, 18, m));
        if let Some((kind, second, value)) = options {
            let (type_slot, slot) = if second { (26, 28) } else { (10, 12) };
            b.push_slot(type_slot, kind, 0);
            link(b, slot, value);
        }
    })
}
