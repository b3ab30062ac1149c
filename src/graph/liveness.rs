//! When each tensor is born, last read and dead.
//!
//! Works without a heap: results and workspace are slices of one entry per tensor.

use super::tables::{Allocation, Tables};
use crate::error::Error;
use crate::units::{Align, Step};

/// Whose rules decide how long inputs, outputs and unread tensors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// Inputs and outputs are kept; an output nobody reads lives at its step.
    #[default]
    Safe,
    /// TensorFlow Lite: as `Safe`, but outputs nobody reads are kept too, and variables may be in the main arena.
    Tflite,
    /// TensorFlow Lite Micro: an input is free after its last reader.
    Tflm,
}

impl Policy {
    /// The name used by the command line and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Safe => "safe",
            Policy::Tflite => "tflite",
            Policy::Tflm => "tflm",
        }
    }
}

/// What changes lifetimes besides the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whose rules.
    pub policy: Policy,
    /// Whether nodes may write over an input that dies there ([`super::inplace`]).
    pub in_place: bool,
    /// The alignment of every planned tensor; a tensor or a node may ask for a stricter one.
    pub align: Align,
    /// Inputs are free after their last reader (always so with [`Policy::Tflm`]).
    pub reuse_inputs: bool,
    /// Nothing is ever released and nothing shared.
    pub keep_all: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            policy: Policy::Safe,
            in_place: true,
            align: crate::units::DEFAULT_ALIGN,
            reuse_inputs: false,
            keep_all: false,
        }
    }
}

impl Options {
    /// Whether an input's bytes may be reused after its last reader.
    pub const fn inputs_reusable(&self) -> bool {
        (self.reuse_inputs || matches!(self.policy, Policy::Tflm)) && !self.keep_all
    }
}

/// What a tensor is to its graph. Where several apply the first of this list wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Role {
    /// Keeps its value between runs.
    Variable,
    /// Graph input and graph output at once.
    InputOutput,
    /// Graph input.
    Input,
    /// Graph output, written by a node.
    Output,
    /// Written by a node.
    Intermediate,
    /// Alive from the first node that lists it as a temporary to the last.
    Temporary,
    /// Data in the file.
    Constant,
    /// No node writes it and it is no input: it gets no bytes.
    #[default]
    Unwritten,
}

/// Which arena a tensor's bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Home {
    /// The reusable arena.
    Arena,
    /// The persistent arena.
    Persistent,
    /// Neither: constants, dynamic tensors, custom memory, empty and unwritten tensors.
    #[default]
    Elsewhere,
}

/// The lifetime of one tensor on its own, before in-place sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lifetime {
    /// The first step alive.
    pub first: Step,
    /// The last step alive.
    pub last: Step,
    /// Alive to the end of the run and beyond.
    pub kept: bool,
    /// What the tensor is to its graph.
    pub role: Role,
    /// Where its bytes are. `first` and `last` mean nothing for [`Home::Elsewhere`].
    pub home: Home,
    written: bool,
    /// A node reads it as an input.
    pub(crate) read: bool,
}

/// A tensor that must survive to a later step than its last reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The tensor.
    pub tensor: u32,
    /// It is alive at least until this step.
    pub until: Step,
}

/// The steps of a graph's nodes: node `n` covers `[first, last]`, more than one step where it runs subgraphs.
pub(crate) trait Steps {
    fn of(&self, node: usize) -> (Step, Step);
    /// The stretch of the whole graph.
    fn all(&self) -> (Step, Step);
}

/// Node `n` is step `n`.
pub(crate) struct Flat(pub usize);

impl Steps for Flat {
    fn of(&self, node: usize) -> (Step, Step) {
        (node as Step, node as Step)
    }

    fn all(&self) -> (Step, Step) {
        (0, self.0.saturating_sub(1) as Step)
    }
}

/// Lifetimes of all tensors of a graph without called subgraphs: node `n` is step `n`.
///
/// `out` takes one entry per tensor. Errors: `Capacity` where `out` is too short (`needed` in entries), `Argument` where
/// an index is out of range, a pin names no tensor, or (policy `tflite` only) a tensor is written after its last use.
pub fn lifetimes<T: Tables + ?Sized>(
    graph: &T,
    options: &Options,
    pins: &[Pin],
    out: &mut [Lifetime],
) -> Result<(), Error> {
    super::tables::validate(graph)?;
    lifetimes_on(graph, options, &Flat(graph.node_count()), out)?;
    apply_pins(pins, (0, graph.node_count().saturating_sub(1) as Step), out)
}

pub(crate) fn apply_pins(pins: &[Pin], (_, end): (Step, Step), out: &mut [Lifetime]) -> Result<(), Error> {
    let count = out.len() as u64;
    for pin in pins {
        let refuse = |reason| Error::argument(reason).tensor(pin.tensor as usize);
        let Some(l) = out.get_mut(pin.tensor as usize) else {
            return Err(refuse("a pin names no tensor").available(count));
        };
        if pin.until > end {
            return Err(refuse("a pin ends after the last step").needed(pin.until.into()).available(end.into()));
        }
        l.last = l.last.max(pin.until);
    }
    Ok(())
}

/// [`lifetimes`] for a validated graph on any timeline.
pub(crate) fn lifetimes_on<T: Tables + ?Sized>(
    graph: &T,
    options: &Options,
    steps: &impl Steps,
    out: &mut [Lifetime],
) -> Result<(), Error> {
    let n = graph.tensor_count();
    if out.len() < n {
        return Err(Error::capacity("the lifetime array is too short (entries)")
            .needed(n as u64)
            .available(out.len() as u64));
    }
    let (begin, end) = steps.all();
    out[..n].fill(Lifetime::default());
    for &t in graph.inputs().iter().filter(|&&t| t >= 0) {
        let l = &mut out[t as usize];
        (l.role, l.written, l.first, l.last) = (Role::Input, true, begin, begin);
    }
    for i in 0..graph.node_count() {
        walk_node(graph, i, options, steps, out)?;
    }
    for &t in graph.outputs().iter().filter(|&&t| t >= 0) {
        let l = &mut out[t as usize];
        // A declared output that nothing writes stays without bytes, as in TFLite.
        match l.role {
            Role::Input => l.role = Role::InputOutput,
            Role::Intermediate | Role::Temporary => l.role = Role::Output,
            _ => {}
        }
    }
    for &t in graph.variables() {
        out[t as usize].role = Role::Variable;
    }
    for (t, l) in out[..n].iter_mut().enumerate() {
        settle(graph.tensor(t), options, (begin, end), l);
    }
    Ok(())
}

fn walk_node<T: Tables + ?Sized>(
    graph: &T,
    i: usize,
    options: &Options,
    steps: &impl Steps,
    out: &mut [Lifetime],
) -> Result<(), Error> {
    let node = graph.node(i);
    let (first, last) = steps.of(i);
    for &t in node.inputs.iter().filter(|&&t| t >= 0) {
        let l = &mut out[t as usize];
        l.read = true;
        // A read before the first write sees nothing that is ours to keep.
        if l.written {
            l.last = l.last.max(last);
        }
    }
    for &t in node.outputs.iter().filter(|&&t| t >= 0) {
        let l = &mut out[t as usize];
        if !l.written {
            (l.written, l.first, l.last) = (true, first, last);
        }
        if l.role == Role::Unwritten || l.role == Role::Temporary {
            l.role = Role::Intermediate;
        }
        l.last = l.last.max(last);
    }
    for &t in node.temporaries.iter().filter(|&&t| t >= 0) {
        let l = &mut out[t as usize];
        if l.role == Role::Unwritten || (l.role == Role::Temporary && options.policy == Policy::Tflite) {
            // TFLite keeps the last node that lists a temporary; safely it is alive at all of them.
            (l.written, l.role, l.first, l.last) = (true, Role::Temporary, first, last);
        } else {
            l.first = l.first.min(first);
            l.last = l.last.max(last);
        }
    }
    Ok(())
}

/// Turns what the walk saw into the final lifetime.
fn settle(tensor: super::tables::Tensor, options: &Options, (begin, end): (Step, Step), l: &mut Lifetime) {
    if tensor.variable {
        l.role = Role::Variable;
    }
    if l.role == Role::Unwritten && tensor.allocation == Allocation::MmapRo {
        l.role = Role::Constant;
    }
    let has_bytes = tensor.bytes.is_some_and(|b| b > 0);
    l.home = match tensor.allocation {
        _ if !has_bytes || matches!(l.role, Role::Unwritten | Role::Constant) => Home::Elsewhere,
        Allocation::ArenaRwPersistent => Home::Persistent,
        Allocation::ArenaRw if l.role == Role::Variable && options.policy != Policy::Tflite => Home::Persistent,
        Allocation::ArenaRw => Home::Arena,
        _ => Home::Elsewhere,
    };
    let forever = match l.role {
        Role::Variable => {
            l.first = begin;
            true
        }
        Role::InputOutput | Role::Output => true,
        Role::Input => !options.inputs_reusable(),
        Role::Intermediate => !l.read && options.policy == Policy::Tflite,
        _ => false,
    };
    if forever || options.keep_all || l.home == Home::Persistent {
        l.kept = true;
        l.last = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::{op, Small};
    use super::*;

    fn spans(graph: &Small, options: Options) -> Vec<Option<(u32, u32, bool)>> {
        let mut out = vec![Lifetime::default(); graph.tensor_count()];
        lifetimes(graph, &options, &[], &mut out).unwrap();
        out.iter().map(|l| (l.home == Home::Arena).then_some((l.first, l.last, l.kept))).collect()
    }

    fn policy(policy: Policy) -> Options {
        Options { policy, ..Options::default() }
    }

    #[test]
    fn the_three_policies() {
        // 0 -> 1, 2 (2 is never read); 1 -> 3. Input 0, output 3; tensor 4 is an input nobody reads.
        let g = Small::new(&[8; 5], &[0, 4], &[3], &[op(&[0], &[1, 2]), op(&[1], &[3]), op(&[3], &[])]);
        let safe = spans(&g, policy(Policy::Safe));
        assert_eq!(safe[0], Some((0, 2, true)));
        assert_eq!(safe[1], Some((0, 1, false)));
        assert_eq!(safe[2], Some((0, 0, false)), "an output nobody reads lives at its step");
        assert_eq!(safe[3], Some((1, 2, true)));
        let tflite = spans(&g, policy(Policy::Tflite));
        assert_eq!(tflite[2], Some((0, 2, true)), "TFLite never releases it");
        let tflm = spans(&g, policy(Policy::Tflm));
        assert_eq!(tflm[0], Some((0, 0, false)));
        assert_eq!(tflm[4], Some((0, 0, false)), "an input nobody reads is free after the first step");
        assert_eq!(spans(&g, Options { reuse_inputs: true, ..Options::default() })[0], Some((0, 0, false)));
        let all = spans(&g, Options { keep_all: true, ..Options::default() });
        assert!(all.iter().all(|l| l.unwrap().2 && l.unwrap().1 == 2));
    }

    #[test]
    fn br_05_input_that_is_output_is_kept() {
        let g = Small::new(&[1024; 3], &[0], &[0], &[op(&[0], &[1]), op(&[1], &[2]), op(&[2], &[])]);
        for p in [Policy::Safe, Policy::Tflite, Policy::Tflm] {
            assert_eq!(spans(&g, policy(p))[0], Some((0, 2, true)), "{p:?}");
        }
    }

    #[test]
    fn optional_inputs_double_reads_and_double_writes() {
        // Tensor 1 is written by nodes 0 and 2 and read twice by node 1.
        let g = Small::new(&[8; 4], &[0, -1], &[-1, 3], &[op(&[-1, 0], &[1]), op(&[1, 1], &[2]), op(&[2], &[1, 3])]);
        let s = spans(&g, policy(Policy::Safe));
        assert_eq!(s[1], Some((0, 2, false)));
        assert_eq!(s[2], Some((1, 2, false)));
    }

    #[test]
    fn what_gets_no_bytes() {
        let mut g = Small::new(&[8; 6], &[0], &[3, 4], &[op(&[0, 1], &[2]), op(&[2, 5], &[3])]);
        g.tensors[1].allocation = Allocation::MmapRo;
        g.tensors[2].bytes = None;
        g.tensors[3].bytes = Some(0);
        let s = spans(&g, Options::default());
        assert_eq!(
            &s[1..],
            [None, None, None, None, None],
            "constant, unknown, empty, no producer, read but not written"
        );
        let mut out = vec![Lifetime::default(); 6];
        lifetimes(&g, &Options::default(), &[], &mut out).unwrap();
        assert_eq!((out[1].role, out[4].role), (Role::Constant, Role::Unwritten));
    }

    #[test]
    fn variables_are_persistent_and_temporaries_last_one_node() {
        let mut g = Small::new(&[8; 4], &[0], &[2], &[op(&[0, 1], &[2]).temporaries(&[3])]);
        g.tensors[1].variable = true;
        let mut out = vec![Lifetime::default(); 4];
        lifetimes(&g, &Options::default(), &[], &mut out).unwrap();
        assert_eq!((out[1].home, out[1].role), (Home::Persistent, Role::Variable));
        assert_eq!((out[3].role, out[3].first, out[3].last), (Role::Temporary, 0, 0));
        lifetimes(&g, &policy(Policy::Tflite), &[], &mut out).unwrap();
        assert_eq!((out[1].home, out[1].kept), (Home::Arena, true), "TFLite goes by the allocation type");
    }

    #[test]
    fn br_03_pins_and_their_errors() {
        let ops: Vec<_> = (0..5).map(|i| op(&[i - 1], &[i])).chain([op(&[4], &[])]).collect();
        let g = Small::new(&[4096; 5], &[], &[], &ops);
        let mut out = vec![Lifetime::default(); 5];
        lifetimes(&g, &Options::default(), &[Pin { tensor: 1, until: 5 }], &mut out).unwrap();
        assert_eq!((out[1].first, out[1].last), (1, 5));
        assert!(lifetimes(&g, &Options::default(), &[Pin { tensor: 9, until: 5 }], &mut out).is_err());
        let e = lifetimes(&g, &Options::default(), &[Pin { tensor: 1, until: 6 }], &mut out).unwrap_err();
        assert_eq!((e.needed, e.available), (Some(6), Some(5)));
        let e = lifetimes(&g, &Options::default(), &[], &mut out[..2]).unwrap_err();
        assert_eq!((e.needed, e.available), (Some(5), Some(2)));
    }

    #[test]
    fn bad_indices_are_named() {
        let e = lifetimes(
            &Small::new(&[8; 2], &[0], &[1], &[op(&[0], &[1]), op(&[7], &[1])]),
            &Options::default(),
            &[],
            &mut [Lifetime::default(); 2],
        );
        assert_eq!(e.unwrap_err().subject, crate::error::Subject::Node(1));
    }
}
