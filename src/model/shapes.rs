//! Unknown dimensions: setting them, and listing what is left.

use super::error::{quoted, Position, ReadError};
use super::tensor::{Flags, Tensor, TensorKind};
use super::tflite::warn;
use super::Model;

/// A tensor whose unknown dimensions were not set: its size counts them as 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The subgraph.
    pub subgraph: usize,
    /// The tensor.
    pub tensor: usize,
    /// Its name.
    pub name: String,
    /// Its signature, with -1 where the dimension is unknown.
    pub signature: Vec<i64>,
}

impl Tensor {
    /// The dimensions with -1 for those unknown before run time.
    pub fn declared(&self) -> Option<&[i64]> {
        self.signature.as_deref().or(self.shape.as_deref())
    }

    /// Whether a dimension is unknown before run time.
    pub fn has_unknown_dims(&self) -> bool {
        self.signature.iter().chain(&self.shape).any(|dims| dims.contains(&-1))
    }

    fn is_unresolved(&self) -> bool {
        let planned =
            matches!(self.kind, TensorKind::Input | TensorKind::Inter | TensorKind::Var | TensorKind::Persist);
        planned && !self.resolved && self.has_unknown_dims()
    }

    /// Gives the tensor `dims`; `about` names it in errors.
    fn resolve(&mut self, dims: &[i64], about: &str) -> Result<(), ReadError> {
        let refuse = |what: String| Err(ReadError::new(Position::Whole, format!("{about}: {what}")));
        if let Some(bad) = dims.iter().find(|&&d| d < 0) {
            return refuse(format!("{bad} is not a dimension"));
        }
        if let Some(declared) = self.declared() {
            if declared.len() != dims.len() {
                return refuse(format!("it has {} dimensions, {} were given", declared.len(), dims.len()));
            }
            for (i, (&want, &got)) in declared.iter().zip(dims).enumerate() {
                if want != -1 && want != got {
                    return refuse(format!("its dimension {i} is {want} and cannot be set to {got}"));
                }
            }
        }
        let bytes = self.dtype.tensor_bytes(dims).map_err(|e| ReadError::of(Position::Whole, e, about))?;
        if self.signature.is_none() {
            self.signature = self.shape.take(); // what the file said must not be lost
        }
        self.shape = Some(dims.to_vec());
        self.bytes = bytes;
        self.resolved = true;
        self.flags.set(Flags::UNSIZED, bytes.is_none());
        self.flags.set(Flags::RESIZED, bytes != self.file_bytes);
        Ok(())
    }
}

impl Model {
    /// Sets the shape of every tensor called `name`, and of the inputs a signature calls so, where the file leaves
    /// dimensions open. Returns how many tensors were set. Nothing is changed on an error.
    ///
    /// Shapes of other tensors are not inferred, since that takes the operators' own rules; those that stay open are
    /// in [`Model::unresolved`].
    pub fn set_shape(&mut self, name: &str, dims: &[i64]) -> Result<usize, ReadError> {
        let mut targets: Vec<(usize, usize)> = Vec::new();
        for (k, graph) in self.subgraphs.iter().enumerate() {
            let named = graph.tensors.iter().enumerate().filter(|(_, t)| t.name == name && t.kind != TensorKind::Const);
            targets.extend(named.map(|(i, _)| (k, i)));
        }
        for s in &self.signatures {
            let named = s.inputs.iter().filter(|(n, _)| n == name);
            targets.extend(named.map(|(_, t)| (s.subgraph as usize, *t as usize)));
        }
        targets.sort_unstable();
        targets.dedup();
        if targets.is_empty() {
            let what = format!("no tensor or signature input is called {}", quoted(name));
            return Err(ReadError::new(Position::Whole, what));
        }
        let mut changed = Vec::with_capacity(targets.len());
        for &(k, i) in &targets {
            let mut tensor = self.subgraphs[k].tensors[i].clone();
            tensor.resolve(dims, &format!("tensor {} {} of subgraph {k}", i, quoted(name)))?;
            changed.push(tensor);
        }
        for (&(k, i), tensor) in targets.iter().zip(changed) {
            self.subgraphs[k].tensors[i] = tensor;
        }
        Ok(targets.len())
    }

    /// Tensors that are planned with unknown dimensions counted as 1.
    pub fn unresolved(&self) -> Vec<Unresolved> {
        let mut list = Vec::new();
        for (subgraph, graph) in self.subgraphs.iter().enumerate() {
            for (tensor, t) in graph.tensors.iter().enumerate().filter(|(_, t)| t.is_unresolved()) {
                let signature = t.declared().unwrap_or_default().to_vec();
                list.push(Unresolved { subgraph, tensor, name: t.name.clone(), signature });
            }
        }
        list
    }

    pub(crate) fn warn_unknown_dims(&mut self) {
        let tensors = self.subgraphs.iter().flat_map(|g| &g.tensors);
        // Those without a size at all are not counted as anything.
        let count = tensors.filter(|t| t.is_unresolved() && t.bytes.is_some()).count();
        if count > 0 {
            warn(&mut self.warnings, || {
                format!("unknown dimensions count as 1 until they are set; tensors that have some: {count}")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DType, Subgraph};
    use super::*;
    use crate::error::Kind;

    fn model() -> Model {
        let tensor = |name: &str, signature: Option<Vec<i64>>| Tensor {
            name: name.into(),
            dtype: DType::Float32,
            shape: Some(vec![1, 8]),
            signature,
            bytes: Some(32),
            file_bytes: Some(32),
            ..Tensor::default()
        };
        let tensors = vec![tensor("x", Some(vec![-1, 8])), tensor("y", Some(vec![-1, 8])), tensor("z", None)];
        Model { subgraphs: vec![Subgraph { tensors, ..Subgraph::default() }], ..Model::default() }
    }

    #[test]
    fn open_dimensions_are_set_and_the_rest_listed() {
        let mut m = model();
        assert_eq!(m.unresolved().len(), 2);
        assert_eq!(m.set_shape("x", &[5, 8]), Ok(1));
        let x = &m.subgraphs[0].tensors[0];
        assert_eq!((x.bytes, x.file_bytes, x.flags.has(Flags::RESIZED)), (Some(160), Some(32), true));
        let left = m.unresolved();
        assert_eq!((left.len(), left[0].tensor, &left[0].signature[..]), (1, 1, &[-1, 8][..]));
        assert_eq!(m.set_shape("x", &[7, 8]), Ok(1), "a dimension stays open to be set again");
        assert_eq!(m.subgraphs[0].tensors[0].bytes, Some(224));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut m = model();
        for (name, dims) in
            [("x", &[5, 9][..]), ("x", &[5][..]), ("x", &[-1, 8][..]), ("z", &[2, 8][..]), ("q", &[1][..])]
        {
            assert_eq!(m.set_shape(name, dims).unwrap_err().kind, Kind::Argument, "{name} {dims:?}");
        }
        m.subgraphs[0].tensors[0].signature = Some(vec![-1, -1]);
        assert_eq!(m.set_shape("x", &[i64::MAX, i64::MAX]).unwrap_err().kind, Kind::Overflow, "BR-21");
        m.subgraphs[0].tensors[0].signature = Some(vec![-1, 8]);
        assert_eq!(m, model());
        assert_eq!(m.set_shape("z", &[1, 8]), Ok(1), "the shape it has anyway");
    }
}
