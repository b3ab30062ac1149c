//! The problem: sizes, lifetimes, alignments, fixed offsets and alias classes.

use alloc::vec::Vec;

use crate::error::{Error, Subject};
use crate::units::{Align, Bytes, Step};

/// A closed range of steps: a buffer written at `first` and last read at `last` is alive at both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first step.
    pub first: Step,
    /// The last step, not less than `first`.
    pub last: Step,
}

impl Span {
    /// The closed range `[first, last]`.
    pub const fn new(first: Step, last: Step) -> Span {
        Span { first, last }
    }

    /// Whether the two ranges share a step.
    pub const fn meets(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// What to add to a problem: the parts of a buffer besides its spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Bytes, unrounded. A buffer of 0 bytes gets no bytes and overlaps nobody.
    pub size: Bytes,
    /// Its offset will be a multiple of this.
    pub align: Align,
    /// The offset the caller insists on.
    pub fixed: Option<Bytes>,
    /// Alive to the end of the run and beyond, not merely to the last step.
    pub kept: bool,
}

impl BufferSpec {
    /// `size` bytes at a multiple of `align`.
    pub const fn new(size: Bytes, align: Align) -> BufferSpec {
        BufferSpec { size, align, fixed: None, kept: false }
    }

    /// The same with a caller-fixed offset.
    #[must_use]
    pub const fn fixed_at(mut self, offset: Bytes) -> BufferSpec {
        self.fixed = Some(offset);
        self
    }

    /// The same, marked as kept.
    #[must_use]
    pub const fn kept(mut self, kept: bool) -> BufferSpec {
        self.kept = kept;
        self
    }
}

/// A buffer of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Size, alignment, fixed offset and the kept mark.
    pub spec: BufferSpec,
    start: u32,
    end: u32,
}

/// A member of an alias class: it lives at `delta` bytes into `root`'s bytes and may share them while both are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The buffer whose bytes are used. Never itself an alias.
    pub root: u32,
    /// Bytes from the root's offset to the member's.
    pub delta: Bytes,
}

/// Buffers to be placed in one arena.
///
/// Spans are kept in one flat array, so that a million buffers cost no allocation each.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    buffers: Vec<Buffer>,
    spans: Vec<Span>,
    aliases: Vec<Option<Alias>>,
    roots: Vec<bool>,
}

impl Problem {
    /// An empty problem.
    pub fn new() -> Problem {
        Problem::default()
    }

    /// An empty problem with room for `buffers` buffers of one span each.
    pub fn with_capacity(buffers: usize) -> Problem {
        Problem { buffers: Vec::with_capacity(buffers), spans: Vec::with_capacity(buffers), ..Problem::default() }
    }

    /// Adds a buffer alive during `spans`: at least one, in ascending order, without a shared step. Returns its index.
    ///
    /// `Argument` where the spans are empty, reversed, unordered or overlapping, or the fixed offset misses the
    /// alignment; `Overflow` where fixed offset + size does not fit.
    pub fn add(&mut self, spec: BufferSpec, spans: &[Span]) -> Result<u32, Error> {
        let index = self.buffers.len();
        if index >= u32::MAX as usize / 2 || self.spans.len() + spans.len() >= u32::MAX as usize / 2 {
            return Err(Error::overflow("a problem holds at most 2^31 buffers and spans"));
        }
        if spans.is_empty() {
            return Err(Error::argument("a buffer needs at least one span").buffer(index));
        }
        for (i, span) in spans.iter().enumerate() {
            if span.first > span.last {
                return Err(Error::argument("a span ends before it begins").buffer(index).at(span.first));
            }
            if i > 0 && spans[i - 1].last >= span.first {
                return Err(Error::argument("spans must ascend and share no step").buffer(index).at(span.first));
            }
        }
        if let Some(offset) = spec.fixed {
            if !spec.align.divides(offset) {
                return Err(Error::alignment("the fixed offset is not a multiple of the alignment")
                    .buffer(index)
                    .needed(spec.align.bytes())
                    .available(offset));
            }
            if offset.checked_add(spec.size).is_none() {
                return Err(Error::overflow("fixed offset + size does not fit 64 bits").buffer(index).needed(offset));
            }
        }
        let start = self.spans.len() as u32;
        self.spans.extend_from_slice(spans);
        self.buffers.push(Buffer { spec, start, end: self.spans.len() as u32 });
        Ok(index as u32)
    }

    /// Adds a buffer with one span.
    pub fn add_one(&mut self, spec: BufferSpec, first: Step, last: Step) -> Result<u32, Error> {
        self.add(spec, &[Span::new(first, last)])
    }

    /// Makes `member` live at `delta` bytes into `root`. `root` may itself be an alias: the chain is flattened.
    ///
    /// Members of a class may overlap each other in time and space; the class is placed as one block that is alive
    /// whenever one of its members is. `Argument` for a buffer that would alias itself, already is an alias, is
    /// already a root, has a fixed offset, or whose alignment the delta breaks.
    pub fn alias(&mut self, member: u32, root: u32, delta: Bytes) -> Result<(), Error> {
        let n = self.buffers.len();
        for index in [member, root] {
            if index as usize >= n {
                return Err(Error::argument("there is no such buffer").of(Subject::Buffer(index)));
            }
        }
        self.aliases.resize(n, None);
        self.roots.resize(n, false);
        let refuse = |reason| Err(Error::argument(reason).of(Subject::Buffer(member)).and(Subject::Buffer(root)));
        let (root, delta) = match self.aliases[root as usize] {
            Some(up) => (up.root, crate::units::add(up.delta, delta)?),
            None => (root, delta),
        };
        if root == member {
            return refuse("a buffer cannot alias itself");
        }
        if self.aliases[member as usize].is_some() {
            return refuse("the buffer is an alias already");
        }
        if self.roots[member as usize] {
            return refuse("the buffer is the root of other aliases");
        }
        if self.buffers[member as usize].spec.fixed.is_some() {
            return refuse("an alias cannot have a fixed offset of its own");
        }
        if !self.buffers[member as usize].spec.align.divides(delta) {
            return refuse("the distance from the root is not a multiple of the alias's alignment");
        }
        crate::units::add(delta, self.buffers[member as usize].spec.size)?;
        self.aliases[member as usize] = Some(Alias { root, delta });
        self.roots[root as usize] = true;
        Ok(())
    }

    /// Adds all buffers of `other`, aliases included, and returns the index of the first. On error nothing is added.
    pub fn append(&mut self, other: &Problem) -> Result<u32, Error> {
        let first = self.len();
        if first + other.len() > u32::MAX as usize {
            return Err(Error::overflow("more than 2^32 - 1 buffers"));
        }
        let mut all = self.clone();
        for (i, b) in other.buffers().iter().enumerate() {
            all.add(b.spec, other.spans(i))?;
        }
        for i in 0..other.len() {
            if let Some(a) = other.alias_of(i) {
                all.alias((first + i) as u32, first as u32 + a.root, a.delta)?;
            }
        }
        *self = all;
        Ok(first as u32)
    }

    /// The number of buffers, aliases included.
    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether there is no buffer.
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// The buffers in the order they were added.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The spans of buffer `index`, ascending and disjoint.
    pub fn spans(&self, index: usize) -> &[Span] {
        let b = &self.buffers[index];
        &self.spans[b.start as usize..b.end as usize]
    }

    /// The alias record of buffer `index`.
    pub fn alias_of(&self, index: usize) -> Option<Alias> {
        self.aliases.get(index).copied().flatten()
    }

    /// Whether any buffer is an alias.
    pub fn has_aliases(&self) -> bool {
        self.aliases.iter().any(Option::is_some)
    }

    /// The strictest alignment of any buffer; `Align::ONE` for an empty problem.
    pub fn align(&self) -> Align {
        self.buffers.iter().map(|b| b.spec.align).max().unwrap_or(Align::ONE)
    }

    /// The first step of the first span and the last step of the last span of buffer `index`.
    pub fn hull(&self, index: usize) -> Span {
        let s = self.spans(index);
        Span::new(s[0].first, s[s.len() - 1].last)
    }

    /// Whether buffers `a` and `b` share a step.
    pub fn conflict(&self, a: usize, b: usize) -> bool {
        let (mut x, mut y) = (self.spans(a).iter().peekable(), self.spans(b).iter().peekable());
        while let (Some(p), Some(q)) = (x.peek(), y.peek()) {
            if p.meets(**q) {
                return true;
            }
            if p.last < q.last {
                x.next();
            } else {
                y.next();
            }
        }
        false
    }

    /// The sum of all sizes; `Overflow` names the buffer with which it no longer fits.
    pub fn total_bytes(&self) -> Result<Bytes, Error> {
        let add = |sum, (i, b): (usize, &Buffer)| crate::units::add(sum, b.spec.size).map_err(|e| e.buffer(i));
        self.buffers.iter().enumerate().try_fold(0, add)
    }

    /// The same problem with every alias class merged into one buffer, and for each old buffer its new index and the
    /// distance from that buffer's offset. Without aliases every buffer maps to itself.
    pub fn merge_aliases(&self) -> Result<(Problem, Vec<(u32, Bytes)>), Error> {
        let n = self.buffers.len();
        let mut map: Vec<(u32, Bytes)> = Vec::with_capacity(n);
        if !self.has_aliases() {
            map.extend((0..n as u32).map(|i| (i, 0)));
            return Ok((self.clone(), map));
        }
        let mut spec: Vec<BufferSpec> = self.buffers.iter().map(|b| b.spec).collect();
        // Members grouped by root, so that each class gathers its spans once.
        let mut members: Vec<(u32, u32)> = Vec::new();
        for i in 0..n {
            if let Some(a) = self.alias_of(i) {
                members.push((a.root, i as u32));
                let s = self.buffers[i].spec;
                let root = &mut spec[a.root as usize];
                // Deltas are multiples of the member's alignment, so the root's offset must meet it too.
                root.align = root.align.max(s.align);
                if s.size > 0 {
                    root.size = root.size.max(crate::units::add(a.delta, s.size)?);
                }
                root.kept |= s.kept;
            }
        }
        members.sort_unstable();
        let mut out = Problem::with_capacity(n);
        let mut position = alloc::vec![0u32; n];
        let mut gathered: Vec<Span> = Vec::new();
        for i in 0..n {
            if self.alias_of(i).is_some() {
                continue;
            }
            gathered.clear();
            gathered.extend_from_slice(self.spans(i));
            let from = members.partition_point(|m| m.0 < i as u32);
            for m in members[from..].iter().take_while(|m| m.0 == i as u32) {
                gathered.extend_from_slice(self.spans(m.1 as usize));
            }
            union(&mut gathered);
            let name = |e: Error| e.buffer(i);
            position[i] = out.add(spec[i], &gathered).map_err(name)?;
        }
        for i in 0..n {
            map.push(match self.alias_of(i) {
                Some(a) => (position[a.root as usize], a.delta),
                None => (position[i], 0),
            });
        }
        Ok((out, map))
    }
}

/// Sorts spans and joins those that share a step or touch (`[1,2]` and `[3,4]` leave no step between them).
pub(crate) fn union(spans: &mut Vec<Span>) {
    spans.sort_unstable();
    let mut kept = 0;
    for i in 1..spans.len() {
        if spans[i].first <= spans[kept].last.saturating_add(1) {
            spans[kept].last = spans[kept].last.max(spans[i].last);
        } else {
            kept += 1;
            spans[kept] = spans[i];
        }
    }
    spans.truncate(kept + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(size: u64) -> BufferSpec {
        BufferSpec::new(size, Align::ONE)
    }

    #[test]
    fn alias_classes_merge_spans_sizes_and_marks() {
        let mut p = Problem::new();
        let a = p.add_one(spec(64), 0, 1).unwrap();
        let b = p.add_one(spec(32).kept(true), 4, 5).unwrap();
        let c = p.add_one(BufferSpec::new(100, Align::new(16).unwrap()), 2, 2).unwrap();
        p.alias(b, a, 48).unwrap();
        p.alias(c, b, 16).unwrap();
        let (m, map) = p.merge_aliases().unwrap();
        assert_eq!(m.len(), 1);
        assert_eq!(map, [(0, 0), (0, 48), (0, 64)]);
        assert_eq!(m.buffers()[0].spec.size, 164);
        assert_eq!(m.buffers()[0].spec.align.bytes(), 16);
        assert!(m.buffers()[0].spec.kept);
        assert_eq!(m.spans(0), [Span::new(0, 2), Span::new(4, 5)]);
    }

    #[test]
    fn bad_buffers_and_aliases_are_refused_by_name() {
        let mut p = Problem::new();
        assert!(p.add(spec(1), &[]).is_err());
        assert!(p.add_one(spec(1), 3, 2).is_err());
        assert!(p.add(spec(1), &[Span::new(0, 2), Span::new(2, 3)]).is_err());
        assert!(p.add_one(BufferSpec::new(1, Align::MAX).fixed_at(4), 0, 0).is_err());
        assert!(p.add_one(spec(2).fixed_at(u64::MAX), 0, 0).is_err());
        assert!(p.is_empty(), "a refused buffer leaves nothing behind");
        let a = p.add_one(spec(1), 0, 0).unwrap();
        let b = p.add_one(spec(1), 0, 0).unwrap();
        assert_eq!(p.alias(a, a, 0).unwrap_err().subject, Subject::Buffer(a));
        p.alias(b, a, 0).unwrap();
        assert!(p.alias(a, b, 0).is_err(), "a cycle");
        assert!(p.alias(b, a, 0).is_err(), "twice");
        assert!(p.alias(9, a, 0).is_err());
    }

    #[test]
    fn conflicts_of_several_spans() {
        let mut p = Problem::new();
        p.add(spec(1), &[Span::new(0, 1), Span::new(5, 6)]).unwrap();
        p.add(spec(1), &[Span::new(2, 4), Span::new(8, 9)]).unwrap();
        p.add(spec(1), &[Span::new(6, 8)]).unwrap();
        assert!(!p.conflict(0, 1));
        assert!(p.conflict(0, 2) && p.conflict(1, 2));
    }
}
