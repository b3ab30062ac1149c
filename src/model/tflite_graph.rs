//! One subgraph of a `.tflite` file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use flatbuffers::Vector;

use super::dtype::DType;
use super::error::{quoted, Position, ReadError};
use super::ops::{CallKind, Effect};
use super::tensor::{Flags, Node, Subgraph, Tensor, TensorKind};
use super::tflite::{position_in, text, warn};
use super::{schema, Resource};

/// The types of options in the two unions that name subgraphs or resources.
mod options {
    pub const CALL: u8 = 16;
    pub const IF: u8 = 92;
    pub const WHILE: u8 = 93;
    pub const CALL_ONCE: u8 = 103;
    pub const VAR_HANDLE: u8 = 111;
    /// In the second union, as the next.
    pub const STABLEHLO_WHILE: u8 = 15;
    pub const STABLEHLO_COMPOSITE: u8 = 21;
    /// The slots of the two unions' values.
    pub const SLOT: u16 = 12;
    pub const SLOT_2: u16 = 28;
}

/// What reading a subgraph needs of the model around it, and what it adds to it.
pub(super) struct GraphReader<'m> {
    pub file: &'m [u8],
    pub buffers: &'m [Range<u64>],
    /// Names and codes of the model's operator kinds.
    pub operators: &'m [(Arc<str>, i32)],
    /// Marks buffers that hold a tensor's constant data.
    pub used: &'m mut [bool],
    /// Resources by container and name, with their index.
    pub resources: &'m mut HashMap<(String, String), (u32, Resource)>,
    /// Bytes of resource names that may still be read: operators may share one long name.
    pub name_budget: &'m mut u64,
    pub warnings: &'m mut Vec<String>,
    pub index: usize,
}

impl GraphReader<'_> {
    pub(super) fn read(&mut self, graph: schema::SubGraph<'_>) -> Result<Subgraph, ReadError> {
        let mut out = Subgraph { name: text(graph.name()), ..Subgraph::default() };
        let mut seen = HashSet::new();
        for (i, t) in graph.tensors().into_iter().flat_map(|v| v.iter()).enumerate() {
            let tensor = self.tensor(i, t)?;
            let buffer = t.buffer().unwrap_or(0);
            if let Some(data) = tensor.data.as_ref().filter(|_| seen.insert(buffer)) {
                self.used[buffer as usize] = true;
                out.constant_bytes = out.constant_bytes.saturating_add(data.end - data.start);
            }
            out.tensors.push(tensor);
        }
        let n = out.tensors.len();
        out.inputs = self.indices(graph.inputs(), n, || "graph input".into())?;
        out.outputs = self.indices(graph.outputs(), n, || "graph output".into())?;
        for (i, op) in graph.operators().into_iter().flat_map(|v| v.iter()).enumerate() {
            let node = self.node(i, op, n)?;
            out.nodes.push(node);
        }
        out.classify();
        Ok(out)
    }

    fn tensor(&mut self, index: usize, t: schema::Tensor<'_>) -> Result<Tensor, ReadError> {
        let name = text(t.name());
        let about = || format!("subgraph {}, tensor {index} {}", self.index, quoted(&name));
        let dims = |v: Option<Vector<'_, i32>>| v.into_iter().flat_map(|v| v.iter()).map(i64::from).collect::<Vec<_>>();
        let shape = dims(t.shape());
        let signature = Some(dims(t.shape_signature())).filter(|s| !s.is_empty() && *s != shape);
        if let Some(bad) = shape.iter().chain(signature.iter().flatten()).find(|&&d| d < -1) {
            let what = format!("{}: {bad} is not a dimension", about());
            return Err(ReadError::new(t.position(), what));
        }
        let number = t.dtype().unwrap_or(0);
        let dtype = DType::from_tflite(number);
        // An unknown dimension counts as 1 until it is set; the file's own size stays unknown then.
        let ones: Vec<i64> = shape.iter().map(|&d| if d < 0 { 1 } else { d }).collect();
        let sized = |dims: &[i64]| dtype.tensor_bytes(dims).map_err(|e| ReadError::of(t.position(), e, &about()));
        let (bytes, file_bytes) = (sized(&ones)?, sized(&shape)?);
        let buffer = t.buffer().unwrap_or(0);
        let data = match self.buffers.get(buffer as usize) {
            Some(range) if buffer > 0 && !range.is_empty() => Some(range.clone()),
            Some(_) => None,
            None if buffer == 0 => None, // a model without buffers at all
            None => {
                let what = format!("{}: there is no buffer {buffer}, of {}", about(), self.buffers.len());
                return Err(ReadError::new(t.position(), what));
            }
        };
        let mut flags = Flags::default();
        flags.set(Flags::SPARSE, t.sparsity().is_some());
        let mut warn = |what: String| warn(self.warnings, || format!("{}: {what}", about()));
        if dtype == DType::Unknown {
            warn(format!("its type {number} is not known, so neither is its size"));
        }
        if let (Some(data), Some(bytes), None) = (&data, bytes, t.sparsity()) {
            if data.end - data.start < bytes {
                warn(format!("{} bytes of data for {bytes}", data.end - data.start));
            }
        }
        let kind = match (t.is_variable().unwrap_or(false), &data) {
            (true, None) => TensorKind::Var,
            (true, Some(_)) => {
                warn("a variable with data, which TFLite refuses".into());
                TensorKind::Var
            }
            (false, Some(_)) => TensorKind::Const,
            (false, None) => TensorKind::Inter,
        };
        Ok(Tensor { name, dtype, shape: Some(shape), signature, bytes, file_bytes, kind, data, flags, resolved: false })
    }

    fn node(&mut self, index: usize, op: schema::Operator<'_>, tensors: usize) -> Result<Node, ReadError> {
        let opcode = op.opcode().unwrap_or(0);
        let Some((name, code)) = self.operators.get(opcode as usize) else {
            let what = format!(
                "subgraph {}, node {index}: there is no operator kind {opcode}, of {}",
                self.index,
                self.operators.len()
            );
            return Err(ReadError::new(op.position(), what));
        };
        let about = |part: &'static str| move || format!("node {index} ({}) {part}", quoted(name));
        let mut node = Node {
            op: name.clone(),
            builtin: Some(*code),
            inputs: self.indices(op.inputs(), tensors, about("input"))?,
            outputs: self.indices(op.outputs(), tensors, about("output"))?,
            intermediates: self.indices(op.intermediates(), tensors, about("intermediate"))?,
            ..Node::default()
        };
        if op.mutating().is_some_and(|v| v.iter().any(|b| b)) {
            node.effect = Effect::Writes;
        }
        if let Some(called) = self.called(index, op, name)? {
            node.call = CallKind::of_op(name);
            node.subgraphs = called;
        }
        if **name == *"VAR_HANDLE" {
            node.resource = Some(self.resource(op)?);
        }
        Ok(node)
    }

    /// The subgraphs a control-flow node runs.
    fn called(&self, index: usize, op: schema::Operator<'_>, name: &str) -> Result<Option<Vec<u32>>, ReadError> {
        let (kind, second, count) = match name {
            "IF" => (options::IF, false, 2),
            "WHILE" => (options::WHILE, false, 2),
            "CALL" => (options::CALL, false, 1),
            "CALL_ONCE" => (options::CALL_ONCE, false, 1),
            "STABLEHLO_WHILE" => (options::STABLEHLO_WHILE, true, 2),
            "STABLEHLO_COMPOSITE" => (options::STABLEHLO_COMPOSITE, true, 1),
            _ => return Ok(None),
        };
        let refuse = |what: &str| {
            let what = format!("subgraph {}, node {index} ({name}): {what}", self.index);
            ReadError::new(op.position(), what)
        };
        let (found, slot) = match second {
            false => (op.options_type(), options::SLOT),
            true => (op.options_2_type(), options::SLOT_2),
        };
        if found != Some(kind) {
            return Err(refuse("its options do not name the subgraphs it runs"));
        }
        let numbers = if kind == options::STABLEHLO_COMPOSITE && second {
            op.options::<schema::Composite<'_>>(slot)?.map(|o| [o.decomposition(), None])
        } else {
            op.options::<schema::Subgraphs<'_>>(slot)?.map(|o| [o.first(), o.second()])
        };
        let numbers = numbers.ok_or_else(|| refuse("its options do not name the subgraphs it runs"))?;
        let unsigned = |n: &Option<i32>| u32::try_from(n.unwrap_or(0));
        let list: Result<Vec<u32>, _> = numbers[..count].iter().map(unsigned).collect();
        list.map(Some).map_err(|_| refuse("a subgraph's index is negative"))
    }

    /// The resource a VAR_HANDLE names, new or known.
    fn resource(&mut self, op: schema::Operator<'_>) -> Result<u32, ReadError> {
        let options = match op.options_type() {
            Some(options::VAR_HANDLE) => op.options::<schema::VarHandle<'_>>(options::SLOT)?,
            _ => None,
        };
        let (container, name) = options.map(|o| (o.container(), o.shared_name())).unwrap_or_default();
        let length = |v: Option<Vector<'_, u8>>| v.map_or(0, |v| v.len() as u64);
        match self.name_budget.checked_sub(length(container) + length(name)) {
            Some(left) => *self.name_budget = left,
            None => return Err(ReadError::new(op.position(), "the file names the same bytes over and over")),
        }
        let (container, name) = (text(container), text(name));
        let next = self.resources.len() as u32;
        let known = self.resources.entry((container.clone(), name.clone()));
        Ok(known.or_insert((next, Resource { container, name, bytes: None })).0)
    }

    /// A list of tensor indices, each -1 or below `tensors`.
    fn indices(
        &self,
        list: Option<Vector<'_, i32>>,
        tensors: usize,
        part: impl Fn() -> String,
    ) -> Result<Vec<i32>, ReadError> {
        let Some(list) = list else { return Ok(Vec::new()) };
        let good = |t: i32| t == -1 || usize::try_from(t).is_ok_and(|t| t < tensors);
        if let Some(at) = list.iter().position(|t| !good(t)) {
            let byte = position_in(self.file, list.bytes()) + 4 * at as u64;
            let (part, found) = (part(), list.get(at));
            let what = format!("subgraph {}, {part} {at}: there is no tensor {found}, of {tensors}", self.index);
            return Err(ReadError::new(Position::Byte(byte), what));
        }
        Ok(list.iter().collect())
    }
}
