//! The directory: from an offset to the block that starts there.

use super::node::Node;
use super::{NIL, PAGE_GRANULES};

/// One entry for every 4 KiB: one more than the index of the first node of a chain of used blocks that start in that
/// page, 0 for none. A chain holds at most 32 blocks, since a block is at least 128 bytes.
///
/// ```text
/// page     0        1        2        3
///        [ 5 ]    [ 0 ]    [ 9 ]    [ 0 ]
///          │                 └─> node 8
///          └─> node 4 <─> node 7            linked through a (previous) and b (next)
/// ```
///
/// An empty directory means that blocks are named by handle only.
#[inline]
pub(crate) fn insert(pages: &mut [u32], nodes: &mut [Node], index: u32) {
    let node = &mut nodes[index as usize];
    let Some(head) = pages.get_mut((node.start / PAGE_GRANULES) as usize) else { return };
    let first = head.wrapping_sub(1);
    *head = index + 1;
    node.a = NIL;
    node.b = first;
    if first != NIL {
        nodes[first as usize].a = index;
    }
}

/// Takes a used block out of its page's chain; its start must be as it was when it was put in.
#[inline]
pub(crate) fn remove(pages: &mut [u32], nodes: &mut [Node], index: u32) {
    let Node { a, b, start, .. } = nodes[index as usize];
    let Some(head) = pages.get_mut((start / PAGE_GRANULES) as usize) else { return };
    if a == NIL {
        *head = b.wrapping_add(1);
    } else {
        nodes[a as usize].b = b;
    }
    if b != NIL {
        nodes[b as usize].a = a;
    }
}

/// The node of the used block that starts at `granule`, and the nodes looked at.
#[inline]
pub(crate) fn find(pages: &[u32], nodes: &[Node], granule: u32) -> (Option<u32>, u32) {
    let mut steps = 1;
    let mut index = pages.get((granule / PAGE_GRANULES) as usize).map_or(NIL, |head| head.wrapping_sub(1));
    while let Some(node) = nodes.get(index as usize) {
        if node.start == granule {
            return (Some(index), steps);
        }
        steps += 1;
        index = node.b;
    }
    (None, steps)
}
