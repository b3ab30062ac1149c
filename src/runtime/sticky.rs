//! Memory whose tensors stay: each keeps its place and contents whatever is planned around it.

use super::session::TensorId;
use super::source::Source;
use super::store::{Keep, MemoryPolicy, Store};
use crate::error::Error;
use crate::units::{add, round_up, Align, Bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    id: TensorId,
    offset: Bytes,
    bytes: Bytes,
}

/// Tensors that are placed once. One that outgrows its place gets another, contents copied; nobody else moves.
#[derive(Debug)]
pub(crate) struct Sticky {
    store: Store,
    /// In order of offset.
    places: Vec<Place>,
    /// The same in order of tensor, to be looked up in.
    by_id: Vec<Place>,
    /// The highest end of any place.
    used: Bytes,
}

impl Sticky {
    pub fn new(source: Source) -> Sticky {
        Sticky { store: Store::new(source, MemoryPolicy::default()), places: Vec::new(), by_id: Vec::new(), used: 0 }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Gives every wanted tensor a place of at least its bytes; what is new is zeroed. On an error nothing changes.
    ///
    /// Growing takes the new block before the old one goes, since contents must survive.
    pub fn ensure(&mut self, wants: &[(TensorId, Bytes, Align)]) -> Result<(), Error> {
        let strictest = wants.iter().map(|w| w.2).max().unwrap_or(Align::ONE);
        let missing = |w: &&(TensorId, Bytes, Align)| {
            w.1 > 0 && self.place(w.0).is_none_or(|p| p.bytes < w.1 || !w.2.divides(p.offset))
        };
        if !wants.iter().any(|w| missing(&w)) {
            return self.store.fit(self.used, strictest, Keep::Bytes(self.used as usize), false);
        }
        let mut places = self.places.clone();
        let mut moved: Vec<(Option<Place>, Place)> = Vec::new();
        for w in wants.iter().filter(missing) {
            let old = self.place(w.0);
            let offset = gap(&places, w.1, w.2).map_err(|e| w.0.name(e))?;
            let new = Place { id: w.0, offset, bytes: w.1 };
            moved.push((old, new));
            let at = places.partition_point(|p| p.offset < offset);
            places.insert(at, new);
        }
        // Old places are given up only now, so that no new one lies over contents that are still to be copied.
        places.retain(|p| !moved.iter().any(|m| m.0 == Some(*p)));
        let used = places.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
        let needed = moved.iter().map(|m| m.1.offset + m.1.bytes).max().unwrap_or(0).max(self.used);
        self.store.fit(needed, strictest, Keep::Bytes(self.used as usize), false)?;
        let base = self.store.base().map_or(core::ptr::null_mut(), core::ptr::NonNull::as_ptr);
        for (old, new) in moved {
            // SAFETY: `fit` made the block at least `needed` bytes, in which every new place lies.
            let to = unsafe { base.add(new.offset as usize) };
            let keep = old.map_or(0, |o| o.bytes.min(new.bytes)) as usize;
            if let Some(old) = old {
                // SAFETY: old places lie in the first `self.used` bytes, which the block holds.
                let from = unsafe { base.add(old.offset as usize) };
                // SAFETY: `keep` bytes are in both places, and the new place was chosen apart from all old ones.
                unsafe { core::ptr::copy_nonoverlapping(from, to, keep) };
            }
            // SAFETY: `keep` is at most the place's size.
            let rest = unsafe { to.add(keep) };
            // SAFETY: the rest of the place lies in the block.
            unsafe { rest.write_bytes(0, new.bytes as usize - keep) };
        }
        (self.places, self.used) = (places, used);
        self.by_id.clone_from(&self.places);
        self.by_id.sort_unstable_by_key(|p| p.id);
        Ok(())
    }

    fn place(&self, id: TensorId) -> Option<Place> {
        let at = self.by_id.binary_search_by_key(&id, |p| p.id).ok()?;
        Some(self.by_id[at])
    }

    /// The address of a tensor, if it has a place.
    pub fn address(&self, id: TensorId) -> Option<usize> {
        let place = self.place(id)?;
        Some(self.store.base()?.as_ptr() as usize + place.offset as usize)
    }
}

/// The lowest gap between `places` (in order of offset) that holds `bytes`, else the end of the last.
fn gap(places: &[Place], bytes: Bytes, align: Align) -> Result<Bytes, Error> {
    let mut at = 0;
    for p in places {
        let start = round_up(at, align)?;
        if add(start, bytes)? <= p.offset {
            return Ok(start);
        }
        at = at.max(p.offset + p.bytes);
    }
    let start = round_up(at, align)?;
    add(start, bytes)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br_46_contents_stay_when_others_come_and_when_a_tensor_grows() {
        let mut s = Sticky::new(Source::System);
        let id = |t| TensorId::new(0, t);
        let align = Align::new(64).unwrap();
        s.ensure(&[(id(0), 256, align), (id(1), 64, align)]).unwrap();
        let at = s.address(id(0)).unwrap() as *mut u8;
        // SAFETY: 256 bytes of tensor 0.
        unsafe { at.write_bytes(0xAB, 256) };
        s.ensure(&[(id(0), 256, align), (id(1), 64, align), (id(2), 4096, align)]).unwrap();
        let places = s.places.clone();
        s.ensure(&[(id(0), 300, align), (id(2), 10, align)]).unwrap();
        assert_eq!(s.address(id(2)).unwrap() - s.address(id(1)).unwrap(), 64, "nobody else moved");
        let at = s.address(id(0)).unwrap() as *const u8;
        // SAFETY: 300 bytes of tensor 0.
        let bytes = unsafe { core::slice::from_raw_parts(at, 300) };
        assert!(bytes[..256].iter().all(|&b| b == 0xAB) && bytes[256..].iter().all(|&b| b == 0));
        s.ensure(&[(id(3), 200, align)]).unwrap();
        let freed = places.iter().find(|p| p.id == id(0)).unwrap().offset;
        assert_eq!(s.place(id(3)).unwrap().offset, freed, "the place given up is used again");
    }
}
