//! Recorded profiles: what a runtime really asked for, as JSON.
//!
//! ```text
//! {"format": "arenite-profile", "version": 1, "subgraphs": [
//!   {"index": 0, "inputs": [0], "outputs": [4],
//!    "tensors": [{"name": "x", "type": "float32", "shape": [1, 8], "bytes": 32, "allocation": 2, "variable": false,
//!                 "arena": "main", "offset": 0}, ...],
//!    "nodes": [{"builtin": 3, "custom": null, "inputs": [0, 1, -1], "outputs": [2], "temporaries": [3],
//!               "inplace": 0, "call": "none", "subgraphs": []}, ...],
//!    "plan": {"alignment": 128, "arena_bytes": 512, "persistent_bytes": 0}}]}
//! ```
//!
//! Unlike a model file it has the runtime's own sizes, kinds (`allocation` as TfLite numbers it) and scratch. The plan that
//! was in force (`arena` and `offset` of tensors, `plan`) may be missing. Keys that are not listed here are ignored:
//! recorders add more.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::{quoted, Position, ReadError};
use super::ops::{builtin_name, CallKind, Effect};
use super::tensor::{Node, Subgraph, Tensor, TensorKind};
use super::{DType, Model, RecordedPlan};
use crate::graph::incremental::Arena;
use crate::graph::tables::{Allocation, InPlace};
use crate::units::Align;

const FORMAT: &str = "arenite-profile";
const VERSION: u64 = 1;
/// The highest number of a subgraph.
const MAX_INDEX: u64 = 1 << 16;
/// The bits of `inplace` that TfLite has.
const KNOWN_INPLACE: u64 = InPlace::DATA_UNMODIFIED | InPlace::INPUT_0 | InPlace::INPUT_1 | InPlace::INPUT_2;
/// The built-in operator that stands for every custom one.
const CUSTOM: i32 = 32;

impl Model {
    /// Reads a recorded profile.
    pub fn from_profile(file: &[u8]) -> Result<Model, ReadError> {
        let value: Value = serde_json::from_slice(file).map_err(|e| {
            let at = if e.line() > 0 { Position::line(e.line() as u64) } else { Position::Whole };
            ReadError::new(at, format!("expected a profile in JSON: {e}"))
        })?;
        let root = Place { path: "the profile".into(), value: &value };
        let (format, version) = (root.get("format").text()?, root.get("version").number()?);
        if format != FORMAT {
            return Err(root.get("format").expected(&format!("{FORMAT:?}")));
        }
        if version != VERSION {
            return Err(root.get("version").expected(&format!("{VERSION}, the only version known")));
        }
        let mut model = Model { file_bytes: file.len() as u64, ..Model::default() };
        if let Ok(host) = root.get("host").text() {
            model.attributes.push(("host".into(), host.into()));
        }
        let mut ops = HashMap::new();
        let mut recorded = Vec::new();
        for place in root.get("subgraphs").list()? {
            let index = place.get("index").number()?;
            if index > MAX_INDEX {
                return Err(place.get("index").expected(&format!("a number up to {MAX_INDEX}")));
            }
            let index = index as usize;
            if index >= model.subgraphs.len() {
                model.subgraphs.resize(index + 1, Subgraph::default());
                model.recorded_plans.resize(index + 1, RecordedPlan::default());
                recorded.resize(index + 1, false);
            }
            if std::mem::replace(&mut recorded[index], true) {
                return Err(place.get("index").expected("each subgraph once"));
            }
            model.subgraphs[index] = subgraph(&place, &mut ops)?;
            model.recorded_plans[index] = plan_in_force(&place)?;
        }
        if !recorded.first().is_some_and(|&r| r) {
            return Err(root.get("subgraphs").expected("at least subgraph 0"));
        }
        model.constant_bytes = model.subgraphs.iter().map(|g| g.constant_bytes).fold(0, u64::saturating_add);
        for (k, _) in recorded.iter().enumerate().filter(|(_, &r)| !r) {
            model
                .warnings
                .push(format!("subgraph {k} was never prepared while the profile was recorded: it counts as empty"));
        }
        let order = model.call_order()?;
        model.spread_effects(&order);
        Ok(model)
    }
}

/// A value and where it stands.
struct Place<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Place<'a> {
    fn get(&self, key: &str) -> Place<'a> {
        const NULL: &Value = &Value::Null;
        let value = self.value.as_object().and_then(|o: &Map<_, _>| o.get(key)).unwrap_or(NULL);
        Place { path: format!("{}, {key}", self.path), value }
    }

    fn expected(&self, what: &str) -> ReadError {
        let found = match self.value {
            Value::Null => "nothing".into(),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
            v => quoted(&v.to_string()),
        };
        ReadError::new(Position::Whole, format!("{}: expected {what}, got {found}", self.path))
    }

    fn text(&self) -> Result<&'a str, ReadError> {
        self.value.as_str().ok_or_else(|| self.expected("text"))
    }

    fn number(&self) -> Result<u64, ReadError> {
        self.value.as_u64().ok_or_else(|| self.expected("a number from 0 up"))
    }

    fn list(&self) -> Result<impl Iterator<Item = Place<'a>> + use<'a>, ReadError> {
        let list = self.value.as_array().ok_or_else(|| self.expected("a list"))?;
        let path = self.path.clone();
        Ok(list.iter().enumerate().map(move |(i, value)| Place { path: format!("{path} {i}"), value }))
    }

    /// A list of numbers; absent is empty.
    fn numbers<T: TryFrom<i64>>(&self, what: &str, fits: impl Fn(i64) -> bool) -> Result<Vec<T>, ReadError> {
        if self.value.is_null() {
            return Ok(Vec::new());
        }
        let one = |p: Place<'a>| {
            let n = p.value.as_i64().filter(|&n| fits(n)).and_then(|n| T::try_from(n).ok());
            n.ok_or_else(|| p.expected(what))
        };
        self.list()?.map(one).collect()
    }
}

fn subgraph(place: &Place<'_>, ops: &mut HashMap<String, Arc<str>>) -> Result<Subgraph, ReadError> {
    let mut g = Subgraph::default();
    let mut kinds = Vec::new();
    for t in place.get("tensors").list()? {
        let (tensor, allocation) = tensor(&t)?;
        if allocation == Allocation::MmapRo {
            g.constant_bytes = g.constant_bytes.saturating_add(tensor.bytes.unwrap_or(0));
        }
        g.tensors.push(tensor);
        kinds.push(allocation);
    }
    let count = g.tensors.len() as i64;
    let index = |n: i64| (-1..count).contains(&n);
    let list = |p: Place<'_>| p.numbers::<i32>("a tensor's index or -1", index);
    (g.inputs, g.outputs) = (list(place.get("inputs"))?, list(place.get("outputs"))?);
    for n in place.get("nodes").list()? {
        let op = operator(&n, ops)?;
        let call = match n.get("call").value.as_str() {
            None | Some("none") => CallKind::None,
            Some("branch") => CallKind::Branch,
            Some("loop") => CallKind::Loop,
            Some("sequence") => CallKind::Sequence,
            Some(_) => return Err(n.get("call").expected("none, branch, loop or sequence")),
        };
        // What the kernels of that version of the runtime declare; the bits of later ones are not understood.
        let inplace = match n.get("inplace") {
            p if p.value.is_null() => None,
            p => Some(InPlace(p.number()? & KNOWN_INPLACE)).filter(|&bits| bits != InPlace::of_tflite_op(&op)),
        };
        let subgraphs: Vec<u32> = n.get("subgraphs").numbers("a subgraph's number", |n| n >= 0)?;
        if (call == CallKind::None) != subgraphs.is_empty() {
            return Err(n.get("subgraphs").expected("subgraphs exactly where call is not none"));
        }
        g.nodes.push(Node {
            effect: Effect::of_op(&op),
            op,
            builtin: n.get("builtin").value.as_i64().and_then(|c| i32::try_from(c).ok()),
            inputs: list(n.get("inputs"))?,
            outputs: list(n.get("outputs"))?,
            temporaries: list(n.get("temporaries"))?,
            call,
            subgraphs,
            inplace,
            ..Node::default()
        });
    }
    assign_kinds(&mut g, &kinds);
    Ok(g)
}

/// What the recorder says about its own plan.
fn plan_in_force(place: &Place<'_>) -> Result<RecordedPlan, ReadError> {
    let mut out = RecordedPlan::default();
    for t in place.get("tensors").list()? {
        let arena = match t.get("arena").value {
            Value::Null => None,
            Value::String(s) if s == "main" => Some(Arena::Main),
            Value::String(s) if s == "persistent" => Some(Arena::Persistent),
            _ => return Err(t.get("arena").expected("main, persistent or nothing")),
        };
        let offset = || t.get("offset").number();
        out.places.push(arena.map(|arena| Ok::<_, ReadError>((arena, offset()?))).transpose()?);
    }
    let plan = place.get("plan");
    let bytes = |key: &str| match plan.get(key) {
        p if p.value.is_null() => Ok(None),
        p => p.number().map(Some),
    };
    (out.arena_bytes, out.persistent_bytes) = (bytes("arena_bytes")?, bytes("persistent_bytes")?);
    if let Some(align) = bytes("alignment")? {
        let align = Align::new(align).map_err(|_| plan.get("alignment").expected("a power of two up to 65536"))?;
        out.align = Some(align);
    }
    Ok(out)
}

fn tensor(t: &Place<'_>) -> Result<(Tensor, Allocation), ReadError> {
    let number = t.get("allocation").number()?;
    let allocation = u32::try_from(number).ok().and_then(|n| Allocation::try_from(n).ok());
    let allocation = allocation.ok_or_else(|| t.get("allocation").expected("a number from 0 to 8"))?;
    let bytes = t.get("bytes").number()?;
    let shape = match t.get("shape") {
        p if p.value.is_null() => None,
        p => Some(p.numbers::<i64>("a dimension", |d| d >= -1)?),
    };
    let kind = match t.get("variable").value {
        Value::Bool(true) => TensorKind::Var,
        Value::Bool(false) | Value::Null => TensorKind::Inter,
        _ => return Err(t.get("variable").expected("true or false")),
    };
    let tensor = Tensor {
        name: t.get("name").value.as_str().unwrap_or_default().into(),
        dtype: t.get("type").value.as_str().and_then(DType::from_name).unwrap_or_default(),
        shape,
        bytes: Some(bytes),
        file_bytes: Some(bytes),
        kind,
        ..Tensor::default()
    };
    Ok((tensor, allocation))
}

/// The operator's name as a model file would give it.
fn operator(n: &Place<'_>, ops: &mut HashMap<String, Arc<str>>) -> Result<Arc<str>, ReadError> {
    let builtin = n.get("builtin");
    let code = builtin.value.as_i64().and_then(|c| i32::try_from(c).ok());
    let code = code.ok_or_else(|| builtin.expected("the number of an operator"))?;
    let name = match (code, n.get("custom").value.as_str(), builtin_name(code)) {
        (CUSTOM, custom, _) => format!("CUSTOM:{}", custom.unwrap_or_default()),
        (_, _, Some(name)) => name.to_string(),
        _ => format!("BUILTIN_{code}"),
    };
    Ok(ops.entry(name).or_insert_with_key(|name| name.as_str().into()).clone())
}

/// Tensors play the part that the runtime gave them, whatever a file would let one think.
fn assign_kinds(g: &mut Subgraph, allocations: &[Allocation]) {
    let mut used = vec![(false, false); g.tensors.len()]; // written, read
    for n in &g.nodes {
        for &t in n.outputs.iter().chain(&n.temporaries).filter(|&&t| t >= 0) {
            used[t as usize].0 = true;
        }
        for &t in n.inputs.iter().filter(|&&t| t >= 0) {
            used[t as usize].1 = true;
        }
    }
    let mut input = vec![false; g.tensors.len()];
    for &t in g.inputs.iter().filter(|&&t| t >= 0) {
        input[t as usize] = true;
    }
    for (i, t) in g.tensors.iter_mut().enumerate() {
        let variable = t.kind == TensorKind::Var;
        t.kind = match allocations[i] {
            Allocation::MmapRo | Allocation::PersistentRo => TensorKind::Const,
            Allocation::ArenaRw | Allocation::ArenaRwPersistent if variable => TensorKind::Var,
            Allocation::ArenaRwPersistent => TensorKind::Persist,
            Allocation::ArenaRw if input[i] => TensorKind::Input,
            Allocation::ArenaRw if used[i].0 => TensorKind::Inter,
            // In memory that is not the arena's, or nobody's.
            _ if used[i].0 || used[i].1 || input[i] => TensorKind::Undef,
            _ => TensorKind::Unused,
        };
    }
    let variables = g.tensors.iter().enumerate().filter(|(_, t)| t.kind == TensorKind::Var);
    g.variables = variables.map(|(i, _)| i as i32).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::liveness::Options;
    use crate::graph::lower::lower;
    use crate::planner;

    const SMALL: &str = r#"{"format": "arenite-profile", "version": 1, "host": "tflite", "later": [1],
      "subgraphs": [{"index": 0, "inputs": [0], "outputs": [2], "nodes": [
        {"builtin": 3, "custom": null, "inputs": [0, 1, -1], "outputs": [4], "temporaries": [3], "inplace": 0},
        {"builtin": 0, "inputs": [4, 5], "outputs": [2], "temporaries": [], "call": "none", "subgraphs": []}],
       "tensors": [
        {"name": "in", "type": "float32", "shape": [1, 64], "bytes": 256, "allocation": 2, "variable": false},
        {"name": "w", "type": "float32", "shape": [8], "bytes": 32, "allocation": 1, "variable": false},
        {"name": "out", "bytes": 256, "allocation": 2},
        {"name": "im2col", "bytes": 1024, "allocation": 2},
        {"name": "a", "bytes": 256, "allocation": 2},
        {"name": "state", "bytes": 256, "allocation": 3, "variable": true}]}]}"#;

    #[test]
    fn scratch_and_kinds_are_the_runtimes() {
        let m = Model::from_profile(SMALL.as_bytes()).unwrap();
        let g = &m.subgraphs[0];
        use TensorKind::*;
        assert_eq!(g.tensors.iter().map(|t| t.kind).collect::<Vec<_>>(), [Input, Const, Inter, Inter, Inter, Var]);
        assert_eq!((&*g.nodes[0].op, &g.nodes[0].temporaries[..], m.constant_bytes), ("CONV_2D", &[3][..], 32));
        let lowered = lower(&m.subgraphs, 0, &Options::default(), &[]).unwrap();
        let plan = planner::plan(&lowered.problem, &planner::Options::default()).unwrap();
        assert_eq!(plan.arena_bytes, 256 + 256 + 1024, "input, intermediate and scratch are alive together");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (from, to, said) in [
            ("arenite-profile", "other", "the profile, format: expected \"arenite-profile\""),
            ("\"version\": 1,", "\"version\": 2,", "version: expected 1"),
            ("\"outputs\": [4]", "\"outputs\": [6]", "subgraphs 0, nodes 0, outputs 0: expected a tensor's index"),
            ("\"allocation\": 3", "\"allocation\": 9", "tensors 5, allocation: expected a number from 0 to 8"),
            ("\"bytes\": 1024", "\"bytes\": -1", "tensors 3, bytes: expected a number from 0 up"),
            ("\"call\": \"none\"", "\"call\": \"loop\"", "nodes 1, subgraphs: expected"),
            ("\"index\": 0", "\"index\": 1", "expected at least subgraph 0"),
            ("\"tensors\"", "\"tensor\"", "tensors: expected a list, got nothing"),
        ] {
            assert!(SMALL.contains(from));
            let e = Model::from_profile(SMALL.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(e.what.contains(said), "{from} -> {to}: {e}");
        }
        assert_eq!(Model::from_profile(b"{\n,").unwrap_err().at, Position::line(2));
    }

    #[test]
    fn no_cut_of_a_profile_panics() {
        for end in 0..SMALL.len() {
            let _ = Model::from_profile(&SMALL.as_bytes()[..end]);
        }
    }
}
