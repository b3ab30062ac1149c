//! One stream of work without frames of its own: what it asks for, which known frame it is in, and which it may be entering.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::frame::SharedPlan;
use super::frame_table::Instance;
use super::remote::REMOTE;
use crate::heap::frame::{Detector, Repeat, Replay};

/// Requests that have to agree before a repetition is believed.
const AGREED: u64 = 8;
/// Frames known to a stream; the least recently entered one makes room.
const PHRASES: usize = 8;
/// Requests in a row that a frame does not expect before it is left.
const STRAYS: u32 = 4;
/// Requests of a frame's beginning that have to match, at most, before it is entered.
const PATIENCE: u32 = 32;
/// The longest wait, in requests, after predictions that failed.
const LONGEST_WAIT: u64 = 1 << 13;

/// A frame that was found.
#[derive(Debug)]
struct Phrase {
    signature: u64,
    plan: SharedPlan,
    /// Requests of its beginning that have to match before it is entered: more after each time that it was wrong.
    need: u32,
    used: u64,
}

/// A frame in progress.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) instance: Arc<Instance>,
    pub(crate) replay: Replay,
    signature: u64,
    strays: u32,
    /// Where it was joined.
    from: usize,
}

/// What to do about a request that no frame in progress serves.
pub(crate) enum Next {
    /// Served: the block.
    Planned(NonNull<u8>),
    /// The general path serves it; a frame that is over has to be left first.
    General(Option<Active>),
    /// A known frame seems to begin, or goes on at `position` with this request.
    Enter { over: Option<Active>, signature: u64, plan: SharedPlan, position: usize },
}

/// Whose a freed block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// The frame in progress has taken it back.
    Planned,
    /// The general path's, from before a frame was joined on its way: the frame's area takes its place.
    Replaced,
    /// The general path's, or that of a frame that is over.
    General,
}

/// Threads: none; the slot that holds it is locked.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    detector: Detector,
    /// The number of each live block's request, by address.
    live: HashMap<usize, u64>,
    phrases: Vec<Phrase>,
    /// Frames that may be beginning: which phrase, and how many of its requests have come.
    heads: Vec<(u64, usize)>,
    active: Option<Active>,
    requests: u64,
    /// No new prediction before so many requests; doubled by each one that fails.
    quiet_until: u64,
    wait: u64,
}

impl Stream {
    /// Blocks whose frees this stream wants to hear of.
    pub(crate) fn watched(&self) -> usize {
        self.live.len()
    }

    /// Gives up the frame in progress.
    pub(crate) fn abandon(&mut self) -> Option<Active> {
        self.active.take()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// A request, before anybody has served it.
    pub(crate) fn request(&mut self, bytes: u64, align: u64) -> Next {
        self.requests += 1;
        let mut over = None;
        if let Some(active) = &mut self.active {
            let plan = &active.instance.plan;
            if active.instance.remote.load(Ordering::Relaxed) != 0 {
                active.instance.drain(&mut active.replay);
            }
            let before = active.replay.position();
            if before < plan.len() {
                if let Some(block) = active.serve(bytes, align) {
                    active.strays = 0;
                    return Next::Planned(block);
                }
                active.strays = if active.replay.position() > before { 0 } else { active.strays + 1 };
                if active.strays < STRAYS {
                    return Next::General(None);
                }
            }
            over = self.leave();
        }
        match self.beginning(bytes, align) {
            Some((signature, plan, position)) => Next::Enter { over, signature, plan, position },
            None => Next::General(over),
        }
    }

    /// Ends the frame in progress, and learns from how far it came.
    fn leave(&mut self) -> Option<Active> {
        let active = self.active.take()?;
        let (from, to, all) = (active.from, active.replay.position(), active.instance.plan.len());
        let held = to - from >= (all - from).div_ceil(2) && active.replay.fits(&active.instance.plan);
        if let Some(phrase) = self.phrases.iter_mut().find(|p| p.signature == active.signature) {
            phrase.need = if held { 1 } else { (phrase.need * 2).min(PATIENCE) };
        }
        self.wait = if held { 0 } else { (self.wait * 2).clamp(16, LONGEST_WAIT) };
        self.quiet_until = self.requests + self.wait;
        Some(active)
    }

    /// Which known frame this request begins or continues, if there is no doubt.
    fn beginning(&mut self, bytes: u64, align: u64) -> Option<(u64, SharedPlan, usize)> {
        let phrases = &self.phrases;
        let phrase = |signature: u64| phrases.iter().find(|p| p.signature == signature);
        let expects = |signature: u64, at: usize| phrase(signature).is_some_and(|p| p.plan.expects(at, bytes, align));
        self.heads.retain_mut(|head| {
            let expected = expects(head.0, head.1);
            head.1 += 1;
            expected
        });
        for p in phrases.iter().filter(|p| p.plan.expects(0, bytes, align)) {
            if self.heads.len() < 2 * PHRASES && !self.heads.iter().any(|h| h.0 == p.signature && h.1 == 1) {
                self.heads.push((p.signature, 1));
            }
        }
        // The one that has agreed for longest; among equals there is doubt until a long stretch has agreed.
        let most = self.heads.iter().map(|h| h.1).max()?;
        let mut first = self.heads.iter().filter(|h| h.1 == most).filter_map(|h| phrase(h.0));
        let best = first.next()?;
        let best = match first.next() {
            Some(other) if most < PATIENCE as usize => {
                // Two plans of one sequence differ in lifetimes only: the newer one knows better.
                let same = |a: &Phrase, b: &Phrase| {
                    let asked = |p: &Phrase| p.plan.blocks().iter().map(|b| (b.bytes, b.align)).collect::<Vec<_>>();
                    a.plan.len() == b.plan.len() && asked(a) == asked(b)
                };
                if first.next().is_some() || !same(best, other) {
                    return None;
                }
                if best.used > other.used {
                    best
                } else {
                    other
                }
            }
            Some(other) if other.used > best.used => other,
            _ => best,
        };
        if (most as u32) < best.need {
            return None;
        }
        let found = (best.signature, best.plan.clone(), most - 1);
        self.heads.clear();
        Some(found)
    }

    /// A frame was entered at `position`, for the request that is being served.
    pub(crate) fn enter(&mut self, signature: u64, instance: Arc<Instance>, mut replay: Replay, position: usize) {
        replay.skip(&instance.plan, position);
        if let Some(phrase) = self.phrases.iter_mut().find(|p| p.signature == signature) {
            phrase.used = self.requests;
        }
        self.active = Some(Active { instance, replay, signature, strays: 0, from: position });
    }

    /// Serves a request from the frame just entered.
    pub(crate) fn serve(&mut self, bytes: u64, align: u64) -> Option<NonNull<u8>> {
        self.active.as_mut()?.serve(bytes, align)
    }

    /// Takes note of a block that was handed out. Returns a repetition worth planning.
    pub(crate) fn allocated(&mut self, block: NonNull<u8>, bytes: u64, align: u64) -> Option<Repeat> {
        let number = self.detector.alloc(bytes, align)?;
        if self.live.try_reserve(1).is_ok() {
            self.live.insert(block.as_ptr() as usize, number);
        }
        if self.active.is_some() || self.requests < self.quiet_until || self.detector.agreed() < AGREED {
            return None;
        }
        let found = self.detector.repeat(AGREED).ok().flatten();
        self.quiet_until = self.requests + if found.is_some() { 0 } else { 64 };
        found
    }

    /// A known plan of a repetition.
    pub(crate) fn known(&self, signature: u64) -> Option<SharedPlan> {
        self.phrases.iter().find(|p| p.signature == signature).map(|p| p.plan.clone())
    }

    /// Remembers a plan, so that the frame is known by its first requests from now on.
    pub(crate) fn learn(&mut self, signature: u64, plan: &SharedPlan) {
        if self.known(signature).is_some() || self.phrases.try_reserve(1).is_err() {
            return;
        }
        if self.phrases.len() == PHRASES {
            let oldest = (0..PHRASES).min_by_key(|&i| self.phrases[i].used);
            self.phrases.swap_remove(oldest.unwrap_or(0));
        }
        self.phrases.push(Phrase { signature, plan: plan.clone(), need: 1, used: self.requests });
    }

    /// No prediction for a while: one could not be planned, or not be entered.
    pub(crate) fn rest(&mut self) {
        self.wait = (self.wait * 2).clamp(16, LONGEST_WAIT);
        self.quiet_until = self.requests + self.wait;
    }

    /// Takes note of a free. `None` where the block is not one of this stream's.
    pub(crate) fn freed(&mut self, block: NonNull<u8>) -> Option<Freed> {
        let number = self.live.remove(&(block.as_ptr() as usize))?;
        self.detector.free(number);
        let Some(active) = &mut self.active else { return Some(Freed::General) };
        if active.take_back(block) {
            return Some(Freed::Planned);
        }
        Some(if active.from > 0 { Freed::Replaced } else { Freed::General })
    }
}

impl Active {
    fn serve(&mut self, bytes: u64, align: u64) -> Option<NonNull<u8>> {
        let slot = self.replay.alloc(&self.instance.plan, bytes, align)?;
        let (place, offset) = self.instance.plan.place(slot);
        self.instance.places[place as usize].live.store(slot + 1, Ordering::Release);
        Some(self.instance.pointer(offset))
    }

    fn take_back(&mut self, block: NonNull<u8>) -> bool {
        let Some(offset) = self.instance.offset(block) else { return false };
        let Some(live) = self.instance.live_at(offset) else { return false };
        match live.load(Ordering::Relaxed).checked_sub(1) {
            Some(slot) if slot & REMOTE == 0 && self.replay.free(&self.instance.plan, slot) => {
                live.store(0, Ordering::Release);
                true
            }
            _ => false,
        }
    }
}
