//! Who may take over whose bytes: TFLite's in-place rules, and one rule more where TFLite's can corrupt.

use super::liveness::{Home, Lifetime, Options, Policy};
use super::tables::{Allocation, Tables};
use crate::error::Error;

/// Per-tensor workspace and result of [`share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Share {
    /// The tensor whose bytes this one uses: itself, or the root of its chain.
    pub root: u32,
    /// Occurrences as graph input, graph output, variable or node input.
    refs: u32,
    /// For a root: one past the last node that reads any tensor of its chain.
    read_before: u32,
    /// For a root: the last step at which any tensor of its chain is alive, pins included.
    alive_until: u32,
    /// Nodes that write it, counted to 2.
    writers: u8,
    graph_input: bool,
    graph_output: bool,
}

/// Bytes up to which TFLite does not bother.
const MIN_SHARED_BYTES: u64 = 4;

/// Finds for every tensor the root whose bytes it uses. Chains are flattened.
///
/// A node's first output takes over the first of its first three inputs that is flagged and passes: same size, more than
/// 4 bytes, read by nobody else (unless the node leaves the bytes unmodified), no graph input, output no graph output,
/// both in the reusable arena. With [`Policy::Tflite`] an unmodified output may have another size: such an alias is not
/// [`honoured`] and then lives to the end, as in TFLite. [`Policy::Safe`] and [`Policy::Tflm`] also require that no other tensor of the chain is
/// read later: TFLite looks at the root's own readers only, so that two reshapes of one tensor, one of them modified
/// in place, corrupt the other.
///
/// `lifetimes` are those of [`super::liveness`]; `out` takes one entry per tensor.
pub fn share<T: Tables + ?Sized>(
    graph: &T,
    options: &Options,
    lifetimes: &[Lifetime],
    out: &mut [Share],
) -> Result<(), Error> {
    let n = graph.tensor_count();
    if out.len() < n || lifetimes.len() < n {
        return Err(Error::capacity("the sharing array is too short (entries)")
            .needed(n as u64)
            .available(out.len().min(lifetimes.len()) as u64));
    }
    for (i, s) in out[..n].iter_mut().enumerate() {
        *s = Share { root: i as u32, alive_until: lifetimes[i].last, ..Share::default() };
    }
    if options.keep_all || !options.in_place {
        return Ok(());
    }
    count(graph, out);
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        let Some(&output) = node.outputs.first().filter(|&&t| t >= 0) else { continue };
        let output = output as usize;
        for (k, &input) in node.inputs.iter().take(3).enumerate() {
            if input >= 0 && node.inplace.shares(k) {
                let input = input as usize;
                let modified = !node.inplace.unmodified();
                if allowed(graph, options, (input, output), modified, lifetimes, out) {
                    let root = out[input].root as usize;
                    if !modified
                        || (out[root].refs <= 1
                            && (options.policy == Policy::Tflite
                                || (last_use(out, root, i) && out[root].alive_until <= lifetimes[output].first)))
                    {
                        join(out, output, root);
                    }
                    // TFLite looks no further once an input has passed the first tests.
                    break;
                }
            }
        }
    }
    Ok(())
}

fn count<T: Tables + ?Sized>(graph: &T, out: &mut [Share]) {
    for (list, input, output) in
        [(graph.inputs(), true, false), (graph.outputs(), false, true), (graph.variables(), false, false)]
    {
        for &t in list.iter().filter(|&&t| t >= 0) {
            let s = &mut out[t as usize];
            s.refs = s.refs.saturating_add(1);
            s.graph_input |= input;
            s.graph_output |= output;
        }
    }
    for i in 0..graph.node_count() {
        let node = graph.node(i);
        for &t in node.inputs.iter().filter(|&&t| t >= 0) {
            let s = &mut out[t as usize];
            s.refs = s.refs.saturating_add(1);
            s.read_before = i as u32 + 1;
        }
        for &t in node.outputs.iter().filter(|&&t| t >= 0) {
            let s = &mut out[t as usize];
            s.writers = s.writers.saturating_add(1);
        }
    }
}

fn allowed<T: Tables + ?Sized>(
    graph: &T,
    options: &Options,
    (input, output): (usize, usize),
    modified: bool,
    lifetimes: &[Lifetime],
    out: &[Share],
) -> bool {
    let (a, b) = (graph.tensor(input), graph.tensor(output));
    if input == output || out[input].graph_input || out[output].graph_output {
        return false;
    }
    let same_size = a.bytes == b.bytes;
    if modified && (!same_size || a.bytes.is_some_and(|n| n <= MIN_SHARED_BYTES) || out[input].refs > 1) {
        return false;
    }
    if options.policy == Policy::Tflite {
        // Sizes may still be unknown here: TFLite drops an alias that turns out not to match when it allocates.
        return a.allocation == b.allocation || a.allocation == Allocation::ArenaRw;
    }
    same_size
        && lifetimes[input].home == Home::Arena
        && lifetimes[output].home == Home::Arena
        && out[output].root as usize == output
        && out[output].writers == 1
        && out[input].writers == 1
}

/// Whether tensor `t` really uses its root's bytes: it has a root, both are in the reusable arena and of one size.
pub fn honoured<T: Tables + ?Sized>(graph: &T, lifetimes: &[Lifetime], shares: &[Share], t: usize) -> bool {
    let root = shares[t].root as usize;
    root != t
        && lifetimes[t].home == Home::Arena
        && lifetimes[root].home == Home::Arena
        && graph.tensor(t).bytes == graph.tensor(root).bytes
}

/// Whether no tensor of the chain is read after node `i`.
fn last_use(out: &[Share], root: usize, i: usize) -> bool {
    out[root].read_before <= i as u32 + 1
}

fn join(out: &mut [Share], output: usize, root: usize) {
    out[output].root = root as u32;
    out[root].read_before = out[root].read_before.max(out[output].read_before);
    out[root].alive_until = out[root].alive_until.max(out[output].alive_until);
}

#[cfg(test)]
mod tests {
    use super::super::liveness::lifetimes;
    use super::super::rows::tests::{op, Op, Small};
    use super::super::tables::InPlace;
    use super::*;

    const ADD: InPlace = InPlace(InPlace::INPUT_0 | InPlace::INPUT_1);
    const R: InPlace = InPlace(InPlace::INPUT_0 | InPlace::DATA_UNMODIFIED);

    fn roots(graph: &Small, policy: Policy) -> Vec<u32> {
        let options = Options { policy, ..Options::default() };
        let n = graph.tensors.len();
        let (mut l, mut s) = (vec![Lifetime::default(); n], vec![Share::default(); n]);
        lifetimes(graph, &options, &[], &mut l).unwrap();
        share(graph, &options, &l, &mut s).unwrap();
        s.iter().map(|s| s.root).collect()
    }

    fn chain(ops: &[Op], tensors: usize, outputs: &[i32]) -> Small {
        Small::new(&vec![24; tensors], &[0, 1], outputs, ops)
    }

    #[test]
    fn behaviour_30_add_reshape_add() {
        // ADD never shares with graph inputs, RESHAPE shares with ADD's output, the last ADD's output is the graph's.
        let g = chain(
            &[op(&[0, 1], &[2]).inplace(ADD), op(&[2], &[3]).inplace(R), op(&[3, 1], &[4]).inplace(ADD)],
            5,
            &[4],
        );
        for p in [Policy::Safe, Policy::Tflite] {
            assert_eq!(roots(&g, p), [0, 1, 2, 2, 4]);
        }
    }

    #[test]
    fn behaviours_31_and_32_two_references_and_the_flagged_input() {
        let g = chain(&[op(&[0], &[2]), op(&[2, 2], &[3]).inplace(ADD), op(&[3], &[4])], 5, &[4]);
        assert_eq!(roots(&g, Policy::Safe)[3], 3, "consuming a tensor twice is two references");
        let mut g = chain(&[op(&[0], &[2]), op(&[1, 2], &[3]).inplace(ADD), op(&[3], &[4])], 5, &[4]);
        g.tensors[1].allocation = Allocation::MmapRo;
        g.inputs = vec![0];
        assert_eq!(roots(&g, Policy::Safe)[3], 2, "const + x shares x");
        let second = InPlace(InPlace::INPUT_1);
        let g = chain(&[op(&[0], &[2]), op(&[0], &[3]), op(&[2, 3], &[4]).inplace(second), op(&[4], &[5])], 6, &[5]);
        assert_eq!(roots(&g, Policy::Safe)[4], 3);
    }

    #[test]
    fn behaviours_10_to_15() {
        let g = chain(
            &[
                op(&[0], &[2]),
                op(&[2, 3], &[4]).inplace(R),
                op(&[4, 3], &[5]).inplace(R),
                op(&[5, 3], &[6]).inplace(R),
                op(&[6, 3], &[7]).inplace(R),
                op(&[7], &[8]),
            ],
            9,
            &[8],
        );
        assert_eq!(roots(&g, Policy::Tflite)[4..8], [2, 2, 2, 2], "11: chains flatten");
        let g = chain(&[op(&[0, 1], &[2]).inplace(R), op(&[2], &[3])], 4, &[3]);
        assert_eq!(roots(&g, Policy::Tflite)[2], 2, "13: a graph input never shares");
        let g = chain(&[op(&[0], &[2]), op(&[2, 1], &[3]).inplace(R)], 4, &[3]);
        assert_eq!(roots(&g, Policy::Tflite)[3], 3, "14: a graph output never shares");
        let only = InPlace(InPlace::DATA_UNMODIFIED);
        let g = chain(&[op(&[0], &[2]), op(&[2], &[3]).inplace(only), op(&[3], &[4])], 5, &[4]);
        assert_eq!(roots(&g, Policy::Tflite)[3], 3, "15: flagged unmodified without a shared input");
    }

    #[test]
    fn a_view_that_is_read_later_is_not_overwritten() {
        // 3 and 4 are views of 2; node 3 would modify 4 in place although node 4 still reads 3.
        let ops = [
            op(&[0], &[2]),
            op(&[2], &[3]).inplace(R),
            op(&[3], &[4]).inplace(R),
            op(&[4, 1], &[5]).inplace(ADD),
            op(&[3, 5], &[6]),
        ];
        let g = chain(&ops, 7, &[6]);
        assert_eq!(roots(&g, Policy::Tflite)[5], 2, "TFLite overwrites it");
        assert_eq!(roots(&g, Policy::Safe)[5], 5);
    }

    #[test]
    fn small_differing_and_persistent_tensors_do_not_share() {
        let build = |a: u64, b: u64| {
            Small::new(
                &[8, 8, a, b, 8],
                &[0, 1],
                &[4],
                &[op(&[0], &[2]), op(&[2, 1], &[3]).inplace(ADD), op(&[3], &[4])],
            )
        };
        assert_eq!(roots(&build(24, 24), Policy::Safe)[3], 2);
        assert_eq!(roots(&build(4, 4), Policy::Safe)[3], 3);
        assert_eq!(roots(&build(24, 25), Policy::Safe)[3], 3);
        let mut g = build(24, 24);
        g.tensors[2].allocation = Allocation::ArenaRwPersistent;
        assert_eq!(roots(&g, Policy::Safe)[3], 3);
    }
}
