//! Tensors and nodes of a model, owned.

use std::ops::Range;
use std::sync::Arc;

use super::dtype::DType;
use super::ops::{CallKind, Effect};
use crate::graph::tables::{InPlace, View};
use crate::units::Bytes;

/// The part a tensor plays in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TensorKind {
    /// Data in the file.
    Const,
    /// A graph input.
    Input,
    /// Keeps its value between runs.
    Var,
    /// Unpacked once from constants (DEQUANTIZE or DENSIFY of weights) and then kept.
    Persist,
    /// Written by a node; a graph output too.
    #[default]
    Inter,
    /// Defined in an enclosing graph.
    Outer,
    /// Neither read nor written.
    Unused,
    /// Read, but nothing writes it.
    Undef,
}

impl TensorKind {
    const ALL: [(TensorKind, &'static str); 8] = [
        (TensorKind::Const, "const"),
        (TensorKind::Input, "input"),
        (TensorKind::Var, "var"),
        (TensorKind::Persist, "persist"),
        (TensorKind::Inter, "inter"),
        (TensorKind::Outer, "outer"),
        (TensorKind::Unused, "unused"),
        (TensorKind::Undef, "undef"),
    ];

    /// Its name in a graph table.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The kind called `name` in a graph table.
    pub fn from_name(name: &str) -> Option<TensorKind> {
        Self::ALL.iter().find(|k| k.1 == name).map(|k| k.0)
    }
}

/// Marks of a tensor, by the letters of the graph table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// `y`: sized by the runtime, which gives it memory outside its arena.
    pub const DYNAMIC: Flags = Flags(1);
    /// `f`: written by one node and again by another.
    pub const REWRITTEN: Flags = Flags(2);
    /// `d`: the file's signature has an unknown dimension.
    pub const UNKNOWN_DIM: Flags = Flags(4);
    /// `u`: its size in bytes is unknown.
    pub const UNSIZED: Flags = Flags(8);
    /// `r`: the runtime's size differs from the file's.
    pub const RESIZED: Flags = Flags(16);
    /// `s`: sparse storage.
    pub const SPARSE: Flags = Flags(32);

    // In the order in which the letters are written.
    const LETTERS: [(char, Flags); 6] = [
        ('y', Flags::DYNAMIC),
        ('f', Flags::REWRITTEN),
        ('d', Flags::UNKNOWN_DIM),
        ('u', Flags::UNSIZED),
        ('r', Flags::RESIZED),
        ('s', Flags::SPARSE),
    ];

    /// Whether all marks of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets or clears the marks of `other`.
    pub fn set(&mut self, other: Flags, on: bool) {
        self.0 = if on { self.0 | other.0 } else { self.0 & !other.0 };
    }

    /// The letters, `-` for none.
    pub fn letters(self) -> String {
        let s: String = Self::LETTERS.iter().filter(|l| self.has(l.1)).map(|l| l.0).collect();
        if s.is_empty() {
            "-".into()
        } else {
            s
        }
    }

    /// The marks written as `letters`; `None` where one is unknown.
    pub fn from_letters(letters: &str) -> Option<Flags> {
        let mut flags = Flags::default();
        if letters == "-" {
            return Some(flags);
        }
        for c in letters.chars() {
            flags.set(Self::LETTERS.iter().find(|l| l.0 == c)?.1, true);
        }
        Some(flags)
    }
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tensor {
    /// Its name, not necessarily unique.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Dimensions; -1 is unknown; `None` where not even the rank is known.
    pub shape: Option<Vec<i64>>,
    /// The file's dimensions with -1 for those unknown before run time, where they differ from `shape`.
    pub signature: Option<Vec<i64>>,
    /// The size to plan with.
    pub bytes: Option<Bytes>,
    /// The size by the file alone.
    pub file_bytes: Option<Bytes>,
    /// Its part in the graph.
    pub kind: TensorKind,
    /// Where its data is: a byte range of the file.
    pub data: Option<Range<u64>>,
    /// Marks.
    pub flags: Flags,
    /// Whether its unknown dimensions have been set.
    pub resolved: bool,
}

/// A node. Tensor lists hold indices; -1 stands for an absent optional tensor.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Node {
    /// The operator: `CONV_2D`, `CUSTOM:Name`, `BUILTIN_999` for a code without a name. Shared between the nodes of a
    /// kind, whose name may be long.
    pub op: Arc<str>,
    /// The code of a TFLite operator.
    pub builtin: Option<i32>,
    /// Tensors read.
    pub inputs: Vec<i32>,
    /// Tensors written.
    pub outputs: Vec<i32>,
    /// Tensors alive during this node only. A model file has none; a recorded profile adds them.
    pub temporaries: Vec<i32>,
    /// Tensors the kernel uses inside.
    pub intermediates: Vec<i32>,
    /// How it runs `subgraphs`.
    pub call: CallKind,
    /// The subgraphs it runs, in the operator's own order.
    pub subgraphs: Vec<u32>,
    /// The state it names, an index into [`Model::resources`](super::Model::resources).
    pub resource: Option<u32>,
    /// What it does besides writing its outputs, callees included.
    pub effect: Effect,
    /// Which inputs its kernel may write over; `None` for what TFLite's own kernels declare.
    pub inplace: Option<InPlace>,
    /// Which of its tensors its kernel allows to lie in one another.
    pub view: View,
}

/// A graph of a model. Nodes are in execution order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Subgraph {
    /// Its name.
    pub name: String,
    /// Its tensors.
    pub tensors: Vec<Tensor>,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Graph inputs.
    pub inputs: Vec<i32>,
    /// Graph outputs.
    pub outputs: Vec<i32>,
    /// Tensors of kind [`TensorKind::Var`].
    pub variables: Vec<i32>,
    /// Bytes of constant data, each buffer of the file counted once.
    pub constant_bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_flags_round_trip() {
        for (kind, name) in TensorKind::ALL {
            assert_eq!((kind.name(), TensorKind::from_name(name)), (name, Some(kind)));
        }
        for letters in ["-", "y", "yd", "ydr", "yfdurs", "u"] {
            assert_eq!(Flags::from_letters(letters).unwrap().letters(), letters);
        }
        assert_eq!(Flags::from_letters("ry").unwrap().letters(), "yr");
        assert_eq!(Flags::from_letters("x"), None);
    }
}
