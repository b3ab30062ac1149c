//! The whole structure, walked and checked. It trusts no count that it can take itself.

use super::bins::bin_of;
use super::block::Heap;
use super::handle::Handle;
use super::node::{Node, State};
use super::store::Store;
use super::{GRANULE, NIL, PAGE_GRANULES};
use crate::error::Error;
use crate::units::Bytes;

/// One block, free or used, as [`Heap::walk`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the region's base.
    pub offset: Bytes,
    /// Bytes it holds.
    pub bytes: Bytes,
    /// Bytes asked for; 0 for a free block.
    pub requested: Bytes,
    /// The block's handle, `None` for a free block.
    pub handle: Option<Handle>,
}

impl<N: Store<Node>, P: AsRef<[u32]> + AsMut<[u32]>, const ROWS: usize> Heap<N, P, ROWS> {
    /// Shows every block in order of address. Linear in the number of blocks.
    pub fn walk(&self, mut see: impl FnMut(Extent)) {
        let nodes = self.nodes.slice();
        let mut index = self.first;
        while let Some(node) = nodes.get(index as usize) {
            let used = !node.is_free();
            see(Extent {
                offset: u64::from(node.start) * GRANULE,
                bytes: node.bytes(),
                requested: if used { node.requested() } else { 0 },
                handle: used.then(|| self.handle(index)),
            });
            index = node.next;
        }
    }

    /// A hash of everything that decides what the heap does next, statistics apart: equal before and after a call that
    /// was refused. Linear in the number of nodes.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut mix = |word: u32| {
            for byte in word.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for n in self.nodes.slice() {
            for word in [n.start, n.len, n.prev, n.next, n.a, n.b, n.generation, n.slack(), n.align_log2()] {
                mix(word);
            }
            mix(n.state() as u32);
        }
        for &word in self.pages.as_ref() {
            mix(word);
        }
        for bin in 0..ROWS as u32 * 32 {
            mix(self.bins.head(bin));
        }
        for word in [self.first, self.last, self.spares.first, self.spares.last, self.spares.count, self.spares.retired]
        {
            mix(word);
        }
        hash
    }

    /// Checks everything: the blocks tile the region, no two free ones are adjacent, every free block is in its bin and
    /// nothing else is, the bitmaps agree, the directory holds exactly the used blocks, the queue of spare nodes is whole,
    /// and the statistics are what counting gives. `Internal` names what is wrong and the node.
    ///
    /// Linear in the number of nodes.
    pub fn check(&self) -> Result<(), Error> {
        let found = self.check_chain()?;
        self.check_bins(found.free_blocks)?;
        self.check_pages(found.blocks)?;
        self.check_spares(found.blocks + found.free_blocks)?;
        let s = &self.stats();
        let same = s.free == found.free
            && s.live == found.live
            && s.requested + self.parked == found.requested
            && s.blocks == found.blocks
            && s.free_blocks == found.free_blocks
            && s.total == found.live + found.free
            && s.allocs - s.frees == s.blocks;
        match same {
            true => Ok(()),
            false => Err(Error::internal("the statistics are not what counting gives")),
        }
    }

    fn check_chain(&self) -> Result<super::Stats, Error> {
        let nodes = self.nodes.slice();
        let mut found = super::Stats::default();
        let (mut index, mut before, mut at, mut was_free) = (self.first, NIL, 0u32, false);
        while index != NIL {
            let wrong = |reason| Err(Error::internal(reason).needed(u64::from(index)));
            let Some(node) = nodes.get(index as usize) else { return wrong("a neighbour is no node") };
            if node.start != at || node.len == 0 || node.prev != before {
                return wrong("the blocks do not tile the region");
            }
            match node.state() {
                State::Free if was_free => return wrong("two free blocks are adjacent"),
                State::Free => {
                    found.free += node.bytes();
                    found.free_blocks += 1;
                }
                State::Used | State::Held => {
                    found.live += node.bytes();
                    found.requested += node.requested();
                    found.blocks += 1;
                    if self.origin.wrapping_add(node.start) & ((1 << node.align_log2()) - 1) != 0 {
                        return wrong("a block does not meet its alignment");
                    }
                }
                State::Spare | State::Retired => return wrong("a node out of use is in the chain"),
            }
            was_free = node.is_free();
            (before, at) = (index, node.end());
            if at > self.total {
                return wrong("a block ends past the region");
            }
            index = node.next;
        }
        match at == self.total && before == self.last {
            true => Ok(found),
            false => Err(Error::internal("the blocks end before the region does")),
        }
    }

    fn check_bins(&self, free_blocks: u64) -> Result<(), Error> {
        let nodes = self.nodes.slice();
        let mut listed = 0;
        for bin in 0..ROWS as u32 * 32 {
            let (mut index, mut before) = (self.bins.head(bin), NIL);
            if (index != NIL) != self.bins.bit(bin) {
                return Err(Error::internal("a bitmap does not agree with its bin").needed(u64::from(bin)));
            }
            while let Some(node) = nodes.get(index as usize) {
                listed += 1;
                if !node.is_free()
                    || bin_of(node.len) != bin
                    || node.bin() != bin
                    || node.a != before
                    || listed > free_blocks
                {
                    return Err(Error::internal("a bin's list is wrong").needed(u64::from(index)));
                }
                (before, index) = (index, node.b);
            }
        }
        match listed == free_blocks {
            true => Ok(()),
            false => Err(Error::internal("a free block is in no bin")),
        }
    }

    fn check_pages(&self, blocks: u64) -> Result<(), Error> {
        let nodes = self.nodes.slice();
        let pages = self.pages.as_ref();
        let mut listed = 0;
        for (page, head) in pages.iter().enumerate() {
            let (mut index, mut before) = (head.wrapping_sub(1), NIL);
            while let Some(node) = nodes.get(index as usize) {
                listed += 1;
                let here = (node.start / PAGE_GRANULES) as usize == page;
                if !(node.is_used() || node.is_held()) || !here || node.a != before || listed > blocks {
                    return Err(Error::internal("a page's chain is wrong").needed(u64::from(index)));
                }
                (before, index) = (index, node.b);
            }
        }
        match pages.is_empty() || listed == blocks {
            true => Ok(()),
            false => Err(Error::internal("a used block is in no page's chain")),
        }
    }

    fn check_spares(&self, linked: u64) -> Result<(), Error> {
        let nodes = self.nodes.slice();
        let (mut index, mut last) = (self.spares.first, self.spares.last);
        for _ in 0..self.spares.count {
            let Some(node) = nodes.get(index as usize).filter(|n| n.state() == State::Spare) else {
                return Err(Error::internal("the queue of spare nodes is wrong").needed(u64::from(index)));
            };
            (last, index) = (index, node.b);
        }
        let queued = nodes.iter().filter(|n| n.state() == State::Spare).count() as u64;
        let retired = nodes.iter().filter(|n| n.state() == State::Retired).count() as u64;
        let all = linked + queued + retired == nodes.len() as u64;
        let same = last == self.spares.last
            && queued == u64::from(self.spares.count)
            && retired == u64::from(self.spares.retired);
        match all && same {
            true => Ok(()),
            false => Err(Error::internal("a node is in no list")),
        }
    }
}
