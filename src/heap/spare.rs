//! Spare nodes, taken first in, first out.
//!
//! Last in, first out would spend one node's generations alone: 2^32 of them are gone in minutes at ten million calls a
//! second. In a queue the wear is spread over all spare nodes.

use super::node::Node;
use super::store::Store;
use super::NIL;

/// Nodes that stay in the queue before a new one is touched: enough to spread the wear, few enough to stay in the cache.
const QUEUE: u32 = 64;

/// The queue of spare nodes, linked through `b`. `first` and `last` mean something while `count` is above 0.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Spares {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) count: u32,
    pub(crate) retired: u32,
    /// A node that reaches this generation is retired. One below the last, so that a handle's words never end in 0.
    pub(crate) limit: u32,
}

impl Spares {
    pub(crate) const fn new() -> Spares {
        Spares { first: NIL, last: NIL, count: 0, retired: 0, limit: u32::MAX - 1 }
    }

    /// Nodes that can be taken now.
    #[inline]
    pub(crate) fn available<N: Store<Node>>(&self, store: &N) -> usize {
        self.count as usize + store.room()
    }

    /// Takes a node, or `None` where neither the queue nor the store has one.
    #[inline]
    pub(crate) fn take<N: Store<Node>>(&mut self, store: &mut N) -> Option<u32> {
        if self.count < QUEUE {
            let index = store.slice().len();
            if index < NIL as usize && store.push(Node::EMPTY) {
                return Some(index as u32);
            }
        }
        if self.count == 0 {
            return None;
        }
        let index = self.first;
        self.first = store.slice_mut()[index as usize].b;
        self.count -= 1;
        Some(index)
    }

    /// Gives a node back, or retires it.
    #[inline]
    pub(crate) fn give(&mut self, nodes: &mut [Node], index: u32) {
        let node = &mut nodes[index as usize];
        if node.generation >= self.limit {
            node.set_idle(true);
            self.retired += 1;
            return;
        }
        node.set_idle(false);
        if self.count == 0 {
            self.first = index;
        } else {
            nodes[self.last as usize].b = index;
        }
        self.last = index;
        self.count += 1;
    }
}
