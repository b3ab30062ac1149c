//! One time line for a graph and every subgraph it calls.
//!
//! A node that runs subgraphs is followed by their steps, branches one after the other. A subgraph that is called three
//! times appears three times, and its tensors are alive in three places.

use alloc::vec::Vec;

use super::liveness::{lifetimes_on, Home, Lifetime, Options, Role, Steps};
use super::tables::{validate, Call, Tables};
use crate::error::{Error, Subject};
use crate::planner::Span;
use crate::units::Step;

/// Most steps, and most tensors over all calls, a time line may have: nested calls multiply, and a file of a few
/// kilobytes can ask for 2^40 of them.
pub const MAX_STEPS: usize = 1 << 22;
const MAX_LIVES: usize = 1 << 24;
/// Deepest nesting of calls.
const MAX_DEPTH: usize = 64;

/// How a subgraph came to be on the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// It is the graph that is run.
    Entry,
    /// It runs over and over during these steps.
    Loop(Step, Step),
    /// It runs once.
    Once,
}

/// One call of one subgraph.
#[derive(Clone, Copy, Debug)]
struct Visit {
    graph: u32,
    caller: Caller,
    begin: Step,
    end: Step,
    /// Where this visit's node ranges start in the flat list.
    nodes: usize,
}

/// What happens at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The subgraph.
    pub subgraph: u32,
    /// The node in it.
    pub node: u32,
}

/// The flattened execution order of one entry graph.
#[derive(Clone, Debug)]
pub struct Timeline {
    steps: Vec<At>,
    visits: Vec<Visit>,
    ranges: Vec<(Step, Step)>,
}

/// Lifetimes of all tensors of all subgraphs of one entry graph.
#[derive(Clone, Debug)]
pub struct Lives {
    /// Per subgraph and tensor: role and home; first and last are the hull of [`Lives::spans`].
    pub own: Vec<Vec<Lifetime>>,
    /// Per subgraph and tensor: the spans, ascending and disjoint; empty for a tensor that is never alive.
    pub spans: Vec<Vec<Vec<Span>>>,
}

struct Range<'a> {
    ranges: &'a [(Step, Step)],
    all: (Step, Step),
}

impl Steps for Range<'_> {
    fn of(&self, node: usize) -> (Step, Step) {
        self.ranges[node]
    }

    fn all(&self) -> (Step, Step) {
        self.all
    }
}

impl Timeline {
    /// Flattens `graphs[entry]`.
    ///
    /// `Argument` for an index out of range and for subgraphs that call each other in a circle; `Unsupported` where the
    /// calls nest deeper than 64 or the time line passes [`MAX_STEPS`].
    pub fn of<T: Tables>(graphs: &[T], entry: usize) -> Result<Timeline, Error> {
        if entry >= graphs.len() {
            return Err(Error::argument("there is no such subgraph").of(Subject::Subgraph(entry as u32)));
        }
        for (i, g) in graphs.iter().enumerate() {
            let subgraph = Subject::Subgraph(i as u32);
            validate(g).map_err(|e| if e.subject == Subject::None { e.of(subgraph) } else { e.and(subgraph) })?;
        }
        let mut line = Timeline { steps: Vec::new(), visits: Vec::new(), ranges: Vec::new() };
        let mut stack = Vec::new();
        let mut lives = 0;
        line.visit(graphs, entry, Caller::Entry, 0, &mut stack, &mut lives)?;
        Ok(line)
    }

    /// What happens at each step.
    pub fn steps(&self) -> &[At] {
        &self.steps
    }

    /// The last step; 0 also for a graph without nodes.
    pub fn last(&self) -> Step {
        self.steps.len().saturating_sub(1) as Step
    }

    /// Lays out one call of `graph`. A subgraph without nodes borrows the step of its caller, `at`.
    fn visit<T: Tables>(
        &mut self,
        graphs: &[T],
        graph: usize,
        caller: Caller,
        at: Step,
        stack: &mut Vec<usize>,
        lives: &mut usize,
    ) -> Result<(), Error> {
        let subject = Subject::Subgraph(graph as u32);
        let table =
            graphs.get(graph).ok_or(Error::argument("a node runs a subgraph that does not exist").of(subject))?;
        if stack.contains(&graph) {
            return Err(Error::argument("the subgraph calls itself").of(subject));
        }
        if stack.len() >= MAX_DEPTH {
            return Err(Error::unsupported("subgraph calls nest too deeply").of(subject).available(MAX_DEPTH as u64));
        }
        let nodes = table.node_count();
        *lives += table.tensor_count();
        if self.steps.len() + nodes > MAX_STEPS || *lives > MAX_LIVES || self.visits.len() > MAX_STEPS {
            return Err(Error::unsupported("the subgraph calls multiply to more steps than a time line holds")
                .of(subject)
                .available(MAX_STEPS as u64));
        }
        stack.push(graph);
        let visit = self.visits.len();
        let first_range = self.ranges.len();
        let begin = if nodes == 0 { at } else { self.steps.len() as Step };
        self.visits.push(Visit { graph: graph as u32, caller, begin, end: begin, nodes: first_range });
        self.ranges.resize(first_range + nodes, (0, 0));
        for n in 0..nodes {
            let start = self.steps.len() as Step;
            if self.steps.len() >= MAX_STEPS {
                return Err(Error::unsupported("the subgraph calls multiply to more steps than a time line holds")
                    .of(subject)
                    .available(MAX_STEPS as u64));
            }
            self.steps.push(At { subgraph: graph as u32, node: n as u32 });
            let call = table.node(n).call;
            let children = self.visits.len();
            for &callee in call.subgraphs() {
                self.visit(graphs, callee as usize, Caller::Once, start, stack, lives)?;
            }
            let end = self.last();
            if matches!(call, Call::Loop(_)) {
                // Only the loop's own subgraphs; what these call in turn runs once per iteration.
                for k in children..self.visits.len() {
                    if call.subgraphs().contains(&self.visits[k].graph) && self.visits[k].caller == Caller::Once {
                        self.visits[k].caller = Caller::Loop(start, end);
                    }
                }
            }
            self.ranges[first_range + n] = (start, end);
        }
        if nodes > 0 {
            self.visits[visit].end = self.last();
        }
        stack.pop();
        Ok(())
    }

    /// Lifetimes of all tensors. `graphs` are those the time line was made of.
    pub fn lives<T: Tables>(&self, graphs: &[T], options: &Options) -> Result<Lives, Error> {
        let mut out = Lives {
            own: graphs.iter().map(|g| alloc::vec![Lifetime::default(); g.tensor_count()]).collect(),
            spans: graphs.iter().map(|g| alloc::vec![Vec::new(); g.tensor_count()]).collect(),
        };
        let mut scratch = Vec::new();
        for visit in &self.visits {
            let graph = &graphs[visit.graph as usize];
            scratch.clear();
            scratch.resize(graph.tensor_count(), Lifetime::default());
            let steps = Range {
                ranges: &self.ranges[visit.nodes..visit.nodes + graph.node_count()],
                all: (visit.begin, visit.end),
            };
            lifetimes_on(graph, options, &steps, &mut scratch).map_err(|e| named(e, visit.graph))?;
            for (t, l) in scratch.iter_mut().enumerate() {
                self.adjust(visit, options, l);
                if l.home != Home::Elsewhere {
                    out.spans[visit.graph as usize][t].push(Span::new(l.first, l.last));
                }
                let own = &mut out.own[visit.graph as usize][t];
                if own.role == Role::Unwritten {
                    *own = *l;
                } else {
                    own.first = own.first.min(l.first);
                    own.last = own.last.max(l.last);
                    own.kept |= l.kept;
                }
            }
        }
        for spans in out.spans.iter_mut().flatten() {
            crate::planner::union(spans);
        }
        Ok(out)
    }

    /// Lifetimes inside a called subgraph: nothing there is kept beyond the call, and what a loop carries lives through
    /// the whole loop.
    fn adjust(&self, visit: &Visit, options: &Options, l: &mut Lifetime) {
        let carried = matches!(l.role, Role::Input | Role::Output | Role::InputOutput);
        if visit.caller != Caller::Entry && l.home == Home::Arena {
            l.kept = false;
            if let (Caller::Loop(first, last), true) = (visit.caller, carried) {
                (l.first, l.last) = (first, last);
            }
        }
        if options.keep_all || l.home == Home::Persistent {
            l.kept = true;
            l.last = self.last();
        }
        if l.home == Home::Persistent {
            l.first = 0;
        }
    }
}

fn named(e: Error, graph: u32) -> Error {
    if e.subject == Subject::None {
        e.of(Subject::Subgraph(graph))
    } else {
        e
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::{op, Op, Small};
    use super::*;

    type Spans = Vec<(u32, u32)>;

    fn lives(graphs: &[Small]) -> (Timeline, Vec<Vec<Spans>>) {
        let line = Timeline::of(graphs, 0).unwrap();
        let lives = line.lives(graphs, &Options::default()).unwrap();
        let spans =
            lives.spans.iter().map(|g| g.iter().map(|s| s.iter().map(|x| (x.first, x.last)).collect()).collect());
        (line.clone(), spans.collect())
    }

    fn calling(mut o: Op, branch: &[u32], looped: &[u32], sequence: &[u32]) -> Op {
        (o.branch, o.looped, o.sequence) = (branch.to_vec(), looped.to_vec(), sequence.to_vec());
        o
    }

    #[test]
    fn branches_follow_one_another_and_never_meet_the_caller() {
        // 0 -> 1; IF(1) -> 2; 2 -> 3. Both branches: input 0, 0 -> 1 -> output 2.
        let main = Small::new(
            &[8; 4],
            &[0],
            &[3],
            &[op(&[0], &[1]), calling(op(&[1], &[2]), &[1, 2], &[], &[]), op(&[2], &[3])],
        );
        let branch = || Small::new(&[8; 3], &[0], &[2], &[op(&[0], &[1]), op(&[1], &[2])]);
        let (line, s) = lives(&[main, branch(), branch()]);
        assert_eq!(line.steps().len(), 7);
        assert_eq!(s[0][1], [(0, 5)], "read by the IF, so alive until both branches have ended");
        assert_eq!(s[0][2], [(1, 6)]);
        assert_eq!((s[1][0][0], s[1][1][0], s[1][2][0]), ((2, 3), (2, 3), (3, 3)));
        assert_eq!((s[2][0][0], s[2][1][0], s[2][2][0]), ((4, 5), (4, 5), (5, 5)), "the branches exclude each other");
    }

    #[test]
    fn br_06_loop_carried_values_live_through_the_loop_even_if_unread() {
        let main = Small::new(&[4, 48, 4, 48], &[0, 1], &[2, 3], &[calling(op(&[0, 1], &[2, 3]), &[], &[1, 2], &[])]);
        let cond = Small::new(&[4, 48, 1], &[0, 1], &[2], &[op(&[0], &[2])]);
        let body = Small::new(&[4, 48, 4, 48, 8], &[0, 1], &[2, 3], &[op(&[1], &[4]), op(&[4], &[2, 3])]);
        let (_, s) = lives(&[main, cond, body]);
        for carried in [&s[1][0], &s[1][1], &s[1][2], &s[2][0], &s[2][1], &s[2][2], &s[2][3]] {
            assert_eq!(carried[..], [(0, 3)]);
        }
        assert_eq!(s[2][4], [(2, 3)]);
    }

    #[test]
    fn a_body_called_three_times_lives_in_three_places() {
        let call = |i: i32| calling(op(&[i], &[i + 1]), &[], &[], &[1]);
        let main = Small::new(&[8; 6], &[0], &[5], &[call(0), op(&[1], &[2]), call(2), call(3), op(&[4], &[5])]);
        let body = Small::new(&[8; 3], &[0], &[2], &[op(&[0], &[1]), op(&[1], &[2])]);
        let (_, s) = lives(&[main, body]);
        assert_eq!(s[1][1], [(1, 2), (5, 6), (8, 9)]);
    }

    #[test]
    fn br_09_reads_inside_a_called_graph_count_for_the_node_that_calls() {
        let main = Small::new(
            &[1024; 4],
            &[],
            &[],
            &[op(&[], &[0]), op(&[], &[1]), op(&[1], &[2]), calling(op(&[0, 2], &[3]), &[], &[], &[1])],
        );
        let block = Small::new(&[1024, 8], &[0], &[1], &[op(&[0], &[1])]);
        let (_, s) = lives(&[main, block]);
        assert_eq!(s[0][0], [(0, 4)]);
    }

    #[test]
    fn empty_subgraphs_circles_and_floods() {
        let main = Small::new(&[8; 2], &[0], &[1], &[calling(op(&[0], &[1]), &[1], &[], &[])]);
        let forward = Small::new(&[8], &[0], &[0], &[]);
        let (line, s) = lives(&[main, forward]);
        assert_eq!((line.steps().len(), s[1][0][0]), (1, (0, 0)), "a branch that only forwards its input");

        let circle = |next: u32| Small::new(&[8; 2], &[0], &[1], &[calling(op(&[0], &[1]), &[], &[], &[next])]);
        let e = Timeline::of(&[circle(1), circle(0)], 0).unwrap_err();
        assert_eq!(e.kind, crate::error::Kind::Argument);
        assert!(Timeline::of(&[circle(7)], 0).is_err());

        let mut flood: Vec<Small> =
            (1..40).map(|k| Small::new(&[8; 2], &[0], &[1], &[calling(op(&[0], &[1]), &[], &[], &[k, k])])).collect();
        flood.push(Small::new(&[8], &[0], &[0], &[]));
        assert_eq!(Timeline::of(&flood, 0).unwrap_err().kind, crate::error::Kind::Unsupported);
    }

    #[test]
    fn a_temporary_of_two_nodes_is_alive_between_them_but_not_between_calls() {
        let main = Small::new(
            &[8; 5],
            &[0],
            &[3],
            &[op(&[0], &[1]).temporaries(&[4]), op(&[1], &[2]), op(&[2], &[3]).temporaries(&[4])],
        );
        let (_, s) = lives(&[main]);
        assert_eq!(
            s[0][4],
            [(0, 2)],
            "one lifetime, as the greedy rules without a heap and the incremental planner have it"
        );
        let call = |i: i32| calling(op(&[i], &[i + 1]), &[], &[], &[1]);
        let main = Small::new(&[8; 4], &[0], &[3], &[call(0), op(&[1], &[2]), call(2)]);
        let body = Small::new(&[8; 3], &[0], &[1], &[op(&[0], &[1]).temporaries(&[2])]);
        assert_eq!(lives(&[main, body]).1[1][2], [(1, 1), (4, 4)]);
    }

    #[test]
    fn a_temporary_that_a_later_node_reads_is_alive_in_between() {
        let ops = [op(&[0], &[1]).temporaries(&[4]), op(&[1], &[2]), op(&[2, 4], &[3])];
        let (_, s) = lives(&[Small::new(&[8; 5], &[0], &[3], &ops)]);
        assert_eq!(s[0][4], [(0, 2)]);
    }
}
