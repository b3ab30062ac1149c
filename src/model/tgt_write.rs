//! Writing a graph table.

use std::fmt::Write;

use super::tensor::{Subgraph, Tensor};
use super::Model;

impl Model {
    /// The model as a graph table. Absent inputs (-1) are dropped, as the format has no place for them; names lose
    /// what would break a line into other fields.
    pub fn to_tgt(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "tgt 1\nmodel {}", one_line(&self.name));
        for (key, value) in &self.attributes {
            let _ = writeln!(out, "attr {} {}", word(key), one_line(value));
        }
        for (k, graph) in self.subgraphs.iter().enumerate() {
            subgraph(&mut out, k, graph);
        }
        out
    }
}

fn subgraph(out: &mut String, k: usize, graph: &Subgraph) {
    let _ = writeln!(out, "subgraph {k} {} {} {}", word(&graph.name), graph.tensors.len(), graph.nodes.len());
    for (i, t) in graph.tensors.iter().enumerate() {
        tensor(out, i, t);
    }
    for (i, n) in graph.nodes.iter().enumerate() {
        let (inputs, outputs) = (present(&n.inputs), present(&n.outputs));
        let _ = writeln!(out, "n {i} {} {inputs} {outputs} {}", word(&n.op), join(&n.subgraphs, ","));
    }
    let _ = writeln!(out, "in {}\nout {}\nend", present(&graph.inputs), present(&graph.outputs));
}

fn tensor(out: &mut String, i: usize, t: &Tensor) {
    let size = |bytes: Option<u64>| bytes.map_or("-".into(), |b| b.to_string());
    let shape = match &t.shape {
        None => "?".into(),
        Some(dims) => shape(dims),
    };
    let signature = match &t.signature {
        None => "=".into(),
        Some(dims) => join(dims, "x"),
    };
    let (kind, flags, dtype) = (t.kind.name(), t.flags.letters(), t.dtype.name());
    let (bytes, file_bytes, name) = (size(t.bytes), size(t.file_bytes), word(&t.name));
    let _ = writeln!(out, "t {i} {kind} {flags} {dtype} {bytes} {file_bytes} {shape} {signature} {name}");
}

/// Dimensions with `?` for an unknown one, or `-1` where a lone `?` would mean an unknown rank.
fn shape(dims: &[i64]) -> String {
    match dims {
        [-1] => "-1".into(),
        _ => join(dims, "x").replace("-1", "?"),
    }
}

fn present(tensors: &[i32]) -> String {
    join(&tensors.iter().filter(|&&t| t >= 0).collect::<Vec<_>>(), ",")
}

fn join<T: ToString>(list: &[T], separator: &str) -> String {
    if list.is_empty() {
        return "-".into();
    }
    list.iter().map(T::to_string).collect::<Vec<_>>().join(separator)
}

/// `text` as one field.
fn word(text: &str) -> String {
    match text {
        "" => "-".into(),
        _ => text.replace(|c: char| c.is_whitespace() || c.is_control(), "_"),
    }
}

/// `text` without line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "tgt 1\nmodel a b\nattr source x y\nsubgraph 0 - 4 2\n\
        t 0 input d float32 32 32 1x8 -1x8 serving:0\n\
        t 1 inter u unknown - - ? = -\n\
        t 2 const - int8 1 1 - = w\n\
        t 3 inter yfdurs float32 8 4 ?x2 = z\n\
        n 0 WHILE 0 1,3 1\nn 1 CUSTOM:Foo_bar 1,2 3 -\nin 0\nout 3\nend\n\
        subgraph 1 body 0 0\nin -\nout -\nend\n";

    #[test]
    fn tables_round_trip() {
        let model = Model::from_tgt(TABLE.as_bytes()).unwrap();
        assert_eq!(model.to_tgt(), TABLE);
        assert_eq!(Model::from_tgt(TABLE.replace('\n', "\r\n").as_bytes()).unwrap().subgraphs, model.subgraphs);
        assert_eq!((model.name.as_str(), model.entries()), ("a b", vec![0]));
    }

    #[test]
    fn errors_name_line_and_field() {
        for (from, to, message) in [
            ("tgt 1", "tgt 2", "line 1: expected \"tgt 1\", got \"tgt 2\""),
            ("float32 32", "float32 x", "line 5, field 6: expected a number of bytes or -, got \"x\""),
            ("n 0 WHILE 0 1,3", "n 0 WHILE 0 1,4", "line 9, field 5: there is no tensor 4, of 4"),
            ("1,2 3 -", "1,2 3", "line 10: expected \"n INDEX OP INPUTS OUTPUTS SUBGRAPHS\", got 5 fields"),
            ("- 4 2", "- 4 99999999999", "line 11: expected \"n INDEX OP INPUTS OUTPUTS SUBGRAPHS\", got 2 fields"),
            ("1,3 1", "1,3 0", "subgraph 0: its call of subgraph 0 closes a cycle"),
            ("1,3 1", "1,3 2", "subgraph 0: it calls subgraph 2, the model has 2"),
        ] {
            let error = Model::from_tgt(TABLE.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(
            Model::from_tgt(b"").unwrap_err().to_string(),
            "line 1: the table ends where \"tgt 1\" was expected"
        );
    }
}
