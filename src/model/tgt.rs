//! Reading a graph table (`.tgt`): a model's tensors and nodes as text, one a line.
//!
//! ```text
//! tgt 1
//! model ID
//! attr KEY VALUE...
//! subgraph K NAME T N
//! t INDEX KIND FLAGS DTYPE BYTES FILEBYTES SHAPE SIGNATURE NAME
//! n INDEX OP INPUTS OUTPUTS SUBGRAPHS
//! in TENSORS
//! out TENSORS
//! end
//! ```
//!
//! Fields are separated by single blanks, `-` is an empty one, lists are joined by commas, shapes by `x` (`-` is a
//! scalar, `?` an unknown rank or dimension), `=` stands for a signature equal to the shape.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use super::error::{quoted, Position, ReadError};
use super::ops::{builtin_code, CallKind};
use super::tensor::{Flags, Node, Subgraph, Tensor, TensorKind};
use super::{DType, Model};

impl Model {
    /// Reads a graph table.
    pub fn from_tgt(file: &[u8]) -> Result<Model, ReadError> {
        let mut reader = Reader { lines: file.split(|&b| b == b'\n'), line: 0, names: HashMap::new() };
        let mut model = reader.model(file.len() as u64)?;
        let order = model.call_order()?;
        model.spread_effects(&order);
        Ok(model)
    }
}

struct Reader<'a, L> {
    lines: L,
    line: u64,
    /// Operator names, each kept once.
    names: HashMap<&'a str, Arc<str>>,
}

/// The fields of one line.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: u64,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn refuse<T>(self, field: u32, what: impl Into<String>) -> Result<T, ReadError> {
        Err(ReadError::new(Position::Line { line: self.number, field }, what))
    }

    /// Exactly `N` fields, the keyword included.
    fn fields<const N: usize>(self, form: &str) -> Result<[&'a str; N], ReadError> {
        let mut fields = [""; N];
        let mut count = 0;
        for field in self.text.split(' ') {
            if count < N {
                fields[count] = field;
            }
            count += 1;
        }
        if count != N {
            return self.refuse(0, format!("expected {form:?}, got {count} fields"));
        }
        Ok(fields)
    }

    fn number<T: FromStr>(self, field: u32, text: &str, what: &str) -> Result<T, ReadError> {
        match text.parse() {
            Ok(n) => Ok(n),
            Err(_) => self.refuse(field, format!("expected {what}, got {}", quoted(text))),
        }
    }

    /// `-` or a number.
    fn size(self, field: u32, text: &str) -> Result<Option<u64>, ReadError> {
        if text == "-" {
            return Ok(None);
        }
        self.number(field, text, "a number of bytes or -").map(Some)
    }

    /// `-` or numbers joined by commas.
    fn list<T: FromStr>(self, field: u32, text: &str, what: &str) -> Result<Vec<T>, ReadError> {
        if text == "-" {
            return Ok(Vec::new());
        }
        text.split(',').map(|n| self.number(field, n, what)).collect()
    }

    /// `?`, `-`, or dimensions joined by `x`.
    fn shape(self, field: u32, text: &str) -> Result<Option<Vec<i64>>, ReadError> {
        match text {
            "?" => Ok(None),
            "-" => Ok(Some(Vec::new())),
            _ => text
                .split('x')
                .map(|d| match d {
                    "?" | "-1" => Ok(-1),
                    _ => match d.parse::<i64>() {
                        Ok(n) if n >= 0 => Ok(n),
                        _ => self.refuse(field, format!("expected dimensions joined by x, got {}", quoted(text))),
                    },
                })
                .collect::<Result<_, _>>()
                .map(Some),
        }
    }

    /// Tensor indices below `tensors`.
    fn tensors(self, field: u32, text: &str, tensors: usize) -> Result<Vec<i32>, ReadError> {
        let list: Vec<i32> = self.list(field, text, "tensor indices joined by commas")?;
        match list.iter().find(|&&t| t < -1 || (t >= 0 && t as usize >= tensors)) {
            Some(t) => self.refuse(field, format!("there is no tensor {t}, of {tensors}")),
            None => Ok(list),
        }
    }
}

impl<'a, L: Iterator<Item = &'a [u8]>> Reader<'a, L> {
    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<Line<'a>>, ReadError> {
        for raw in self.lines.by_ref() {
            self.line += 1;
            let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
            if raw.is_empty() {
                continue;
            }
            return match std::str::from_utf8(raw) {
                Ok(text) => Ok(Some(Line { number: self.line, text })),
                Err(_) => Err(ReadError::new(Position::line(self.line), "expected UTF-8")),
            };
        }
        Ok(None)
    }

    fn expect(&mut self, what: &str) -> Result<Line<'a>, ReadError> {
        let found = self.next()?;
        found.ok_or_else(|| {
            ReadError::new(Position::line(self.line), format!("the table ends where {what} was expected"))
        })
    }

    fn model(&mut self, file_bytes: u64) -> Result<Model, ReadError> {
        let first = self.expect("\"tgt 1\"")?;
        if first.text != "tgt 1" {
            return first.refuse(0, format!("expected \"tgt 1\", got {}", quoted(first.text)));
        }
        let mut model = Model { file_bytes, ..Model::default() };
        while let Some(line) = self.next()? {
            match line.text.split_once(' ') {
                Some(("model", name)) => model.name = name.to_string(),
                Some(("attr", rest)) => {
                    let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
                    model.attributes.push((key.to_string(), value.to_string()));
                }
                Some(("subgraph", _)) => {
                    let graph = self.subgraph(line, model.subgraphs.len())?;
                    model.constant_bytes = model.constant_bytes.saturating_add(graph.constant_bytes);
                    model.subgraphs.push(graph);
                }
                _ => return line.refuse(0, "expected model, attr or subgraph"),
            }
        }
        if model.subgraphs.is_empty() {
            return Err(ReadError::new(Position::line(self.line), "the table has no subgraph"));
        }
        model.warn_unknown_dims();
        Ok(model)
    }

    fn subgraph(&mut self, head: Line<'a>, index: usize) -> Result<Subgraph, ReadError> {
        let [_, k, name, tensors, nodes] = head.fields("subgraph K NAME T N")?;
        if head.number::<usize>(2, k, "the subgraph's index")? != index {
            return head.refuse(2, format!("expected subgraph {index}, got {k}"));
        }
        let tensors: usize = head.number(4, tensors, "the number of tensors")?;
        let nodes: usize = head.number(5, nodes, "the number of nodes")?;
        // Rows are counted as they come: the numbers announced are no reason to allocate.
        let mut graph = Subgraph { name: empty_or(name), ..Subgraph::default() };
        for i in 0..tensors {
            let line = self.expect("a tensor")?;
            graph.tensors.push(tensor(line, i)?);
        }
        for i in 0..nodes {
            let line = self.expect("a node")?;
            graph.nodes.push(self.node(line, i, tensors)?);
        }
        for (word, list) in [("in", &mut graph.inputs), ("out", &mut graph.outputs)] {
            let line = self.expect(word)?;
            let [found, indices] = line.fields("in TENSORS, then out TENSORS")?;
            if found != word {
                return line.refuse(1, format!("expected {word:?}, got {}", quoted(found)));
            }
            *list = line.tensors(2, indices, tensors)?;
        }
        let end = self.expect("end")?;
        if end.text != "end" {
            return end.refuse(0, format!("expected \"end\", got {}", quoted(end.text)));
        }
        for (i, t) in graph.tensors.iter().enumerate() {
            match t.kind {
                TensorKind::Const => {
                    graph.constant_bytes = graph.constant_bytes.saturating_add(t.file_bytes.unwrap_or(0));
                }
                TensorKind::Var => graph.variables.push(i as i32),
                _ => {}
            }
        }
        Ok(graph)
    }

    fn node(&mut self, line: Line<'a>, index: usize, tensors: usize) -> Result<Node, ReadError> {
        let [word, i, op, inputs, outputs, subgraphs] = line.fields("n INDEX OP INPUTS OUTPUTS SUBGRAPHS")?;
        if word != "n" || line.number::<usize>(2, i, "the node's index")? != index {
            return line.refuse(0, format!("expected node {index}"));
        }
        let subgraphs: Vec<u32> = line.list(6, subgraphs, "subgraphs joined by commas")?;
        let name = self.names.entry(op).or_insert_with(|| op.into());
        Ok(Node {
            op: name.clone(),
            builtin: builtin_code(op),
            inputs: line.tensors(4, inputs, tensors)?,
            outputs: line.tensors(5, outputs, tensors)?,
            call: if subgraphs.is_empty() { CallKind::None } else { CallKind::of_op(op) },
            subgraphs,
            ..Node::default()
        })
    }
}

fn tensor(line: Line<'_>, index: usize) -> Result<Tensor, ReadError> {
    let form = "t INDEX KIND FLAGS DTYPE BYTES FILEBYTES SHAPE SIGNATURE NAME";
    let [word, i, kind, flags, dtype, bytes, file_bytes, shape, signature, name] = line.fields(form)?;
    if word != "t" || line.number::<usize>(2, i, "the tensor's index")? != index {
        return line.refuse(0, format!("expected tensor {index}"));
    }
    let Some(kind) = TensorKind::from_name(kind) else {
        return line.refuse(3, format!("expected a kind of tensor, got {}", quoted(kind)));
    };
    let Some(flags) = Flags::from_letters(flags) else {
        return line.refuse(4, format!("expected flags or -, got {}", quoted(flags)));
    };
    let Some(dtype) = DType::from_name(dtype) else {
        return line.refuse(5, format!("expected an element type, got {}", quoted(dtype)));
    };
    let shape = line.shape(8, shape)?;
    Ok(Tensor {
        name: empty_or(name),
        dtype,
        signature: if signature == "=" { None } else { line.shape(9, signature)? },
        // A shape with unknown dimensions left is not the runtime's.
        resolved: flags.has(Flags::RESIZED),
        shape,
        bytes: line.size(6, bytes)?,
        file_bytes: line.size(7, file_bytes)?,
        kind,
        data: None,
        flags,
    })
}

fn empty_or(field: &str) -> String {
    if field == "-" {
        String::new()
    } else {
        field.to_string()
    }
}
