//! Our planner for one subgraph of the host's.

use arenite::error::Error;
use arenite::graph::incremental::{Arena, Incremental, Placement, Record, UNSET};
use arenite::graph::tables::{Allocation, Tables};
use arenite::planner::bound::lower_bound;
use arenite::planner::check::check;
use arenite::planner::{plan, BufferSpec, Options, Plan, Problem, Stats, Strategy};
use arenite::units::Align;
use arenite::view::{html, svg, Overview, Report, Several};

use crate::memory::{Contents, Memory};
use crate::report::Figures;
use crate::settings::Settings;
use crate::tables::View;

/// Placements of the last few sets of sizes: control flow and changing shapes come back to the same ones.
const CACHED: usize = 8;

/// What the placement of a graph's first nodes follows from, mostly of all of them, and what came of it.
struct Known {
    /// The last node placed.
    last: i32,
    /// Size and kind of every tensor.
    tensors: Vec<(u64, Allocation)>,
    /// The temporaries of every node, one list after the other, each with a -1 behind it.
    temporaries: Vec<i32>,
    placement: Placement,
    figures: Figures,
    tflite_bytes: u64,
}

impl Known {
    fn is_of(&self, view: &View<'_>, last: i32) -> bool {
        self.last == last
            && self.tensors.len() == view.tensor_count()
            && self.tensors.iter().enumerate().all(|(t, &seen)| seen == sized(view, t))
            && self.temporaries.iter().copied().eq(temporaries(view))
    }
}

fn sized(view: &View<'_>, t: usize) -> (u64, Allocation) {
    (view.tensor(t).bytes.unwrap_or(0), view.allocation(t))
}

fn temporaries<'a>(view: &'a View<'_>) -> impl Iterator<Item = i32> + 'a {
    (0..view.node_count()).flat_map(|i| view.node(i).temporaries.iter().copied().chain([-1]))
}

/// What is known of one subgraph.
pub struct State {
    settings: &'static Settings,
    strategy: Strategy,
    align: Align,
    incremental: Incremental,
    /// Nothing is placed: contents of the main arena need not survive.
    fresh: bool,
    main: Memory,
    persistent: Memory,
    /// Graphs placed since lifetimes were found, the latest last.
    known: Vec<Known>,
    /// What reports say.
    pub figures: Figures,
}

/// A tensor's contents that a new plan moves, and which tensor.
type Saved = Vec<(usize, Vec<u8>)>;

impl State {
    /// A planner that aligns to what the host asks for or the settings do, whichever is stricter.
    pub fn new(settings: &'static Settings, strategy: Strategy, host_align: Align, preserve_all: bool) -> State {
        let align = settings.align.max(host_align);
        let figures = Figures { strategy: strategy.name(), alignment: align.bytes(), ..Figures::default() };
        State {
            settings,
            strategy,
            align,
            incremental: Incremental::new(align, preserve_all),
            fresh: true,
            main: Memory::default(),
            persistent: Memory::default(),
            known: Vec::new(),
            figures,
        }
    }

    /// Processor time where a report will say it, else 0: asking costs as much as planning a small graph.
    fn now(&self) -> u64 {
        self.settings.report.as_ref().map_or(0, |_| crate::settings::cpu_ns())
    }

    /// Finds lifetimes; all places are forgotten, memory is kept.
    pub fn plan(&mut self, view: &View<'_>) -> Result<(), Error> {
        let start = self.now();
        self.fresh = true;
        self.known.clear();
        let done = self.incremental.plan(view);
        self.figures.plans += 1;
        self.figures.plan_ns += self.now() - start;
        done
    }

    /// Places the tensors of nodes `first ..= last`, takes the memory and tells the host where.
    pub fn execute(&mut self, view: &View<'_>, first: i32, last: i32) -> Result<(), Error> {
        let start = self.now();
        let from_nothing = self.fresh && first <= 0;
        let whole = from_nothing && i64::from(last) + 1 >= view.node_count() as i64;
        let tflite_bytes = if from_nothing {
            self.place_first(view, (first, last), whole)?
        } else {
            self.place_by_rule(view, (first, last))?
        };
        let planned = self.now() - start;
        if self.settings.verify {
            self.verify()?;
        }
        let start = self.now();
        self.commit(view)?;
        self.figures.execute_ns += planned + (self.now() - start);
        self.fresh &= (0..view.tensor_count()).all(|t| self.incremental.record(t).is_none());
        let (main, persistent) = self.incremental.bytes();
        let f = &mut self.figures;
        f.executes += 1;
        f.whole = whole;
        (f.tensors, f.nodes) = (view.tensor_count(), view.node_count());
        (f.arena_bytes, f.tflite_bytes, f.persistent_bytes) = (main, tflite_bytes, persistent);
        f.peak_arena_bytes = f.peak_arena_bytes.max(main);
        f.peak_tflite_bytes = f.peak_tflite_bytes.max(tflite_bytes);
        f.held_bytes = self.main.capacity() as u64;
        Ok(())
    }

    /// Places nodes around what is placed, as TFLite does; the arena's bytes.
    fn place_by_rule(&mut self, view: &View<'_>, (first, last): (i32, i32)) -> Result<u64, Error> {
        self.incremental.execute(view, first, last)?;
        (self.figures.placed_by, self.figures.optimal) = ("incremental", false);
        Ok(self.incremental.bytes().0)
    }

    /// Places nodes of a graph of which nothing is placed; what TFLite's rule needs for them.
    fn place_first(&mut self, view: &View<'_>, nodes: (i32, i32), whole: bool) -> Result<u64, Error> {
        if let Some(at) = self.known.iter().rposition(|k| k.is_of(view, nodes.1)) {
            let known = self.known.remove(at);
            self.incremental.restore(&known.placement);
            let (f, seen) = (&mut self.figures, &known.figures);
            (f.buffers, f.total_bytes, f.lower_bound) = (seen.buffers, seen.total_bytes, seen.lower_bound);
            (f.placed_by, f.optimal) = (seen.placed_by, seen.optimal);
            let tflite_bytes = known.tflite_bytes;
            self.known.push(known);
            return Ok(tflite_bytes);
        }
        let tflite_bytes = self.place_by_rule(view, nodes)?;
        if whole {
            self.improve()?;
        }
        if self.known.len() == CACHED {
            self.known.remove(0);
        }
        self.known.push(Known {
            last: nodes.1,
            tensors: (0..view.tensor_count()).map(|t| sized(view, t)).collect(),
            temporaries: temporaries(view).collect(),
            placement: self.incremental.placement(),
            figures: self.figures.clone(),
            tflite_bytes,
        });
        Ok(tflite_bytes)
    }

    /// Main-arena tensors with bytes, as a problem, and which tensor each buffer is.
    fn problem(&self) -> Result<(Problem, Vec<usize>), Error> {
        let records = || {
            let of = |t: usize| self.incremental.record(t).filter(|r| r.arena == Arena::Main && r.size > 0);
            (0..).map_while(|t| self.incremental.root_of(t).map(|_| t)).filter_map(move |t| Some((t, of(t)?)))
        };
        let ends = |(_, r): (usize, Record)| r.first.max(if r.last == UNSET { 0 } else { r.last });
        let end = records().map(ends).max().unwrap_or(0);
        let mut problem = Problem::new();
        let mut ids = Vec::new();
        for (t, r) in records() {
            let kept = r.last == UNSET;
            let last = if kept { end } else { r.last };
            let spec = BufferSpec::new(r.size, self.align).kept(kept);
            problem.add_one(spec, r.first.max(0) as u32, last.max(r.first).max(0) as u32).map_err(|e| e.tensor(t))?;
            ids.push(t);
        }
        Ok((problem, ids))
    }

    /// Replaces TFLite's placement of the whole graph by a better one, if there is one.
    fn improve(&mut self) -> Result<(), Error> {
        let (problem, ids) = self.problem()?;
        let tflite_bytes = self.incremental.bytes().0;
        let f = &mut self.figures;
        f.buffers = problem.len();
        f.total_bytes = problem.total_bytes()?;
        f.lower_bound = lower_bound(&problem)?.bytes;
        f.placed_by = Strategy::GreedyBySize.name();
        f.optimal = self.align.round_up(f.lower_bound).is_some_and(|b| tflite_bytes <= b);
        // Every load of a model and every new shape pays for the search: not for less than half a percent.
        let near = tflite_bytes.saturating_sub(f.lower_bound) <= f.lower_bound / 200;
        if self.strategy == Strategy::GreedyBySize || (self.strategy == Strategy::Auto && (f.optimal || near)) {
            return Ok(());
        }
        let plan = plan(&problem, &Options { effort: Some(self.settings.effort), ..Options::of(self.strategy) })?;
        let f = &mut self.figures;
        f.lower_bound = f.lower_bound.max(plan.lower_bound);
        // What searches is never worse than TFLite; a rule that was asked for by name is obeyed.
        let searched = matches!(self.strategy, Strategy::Auto | Strategy::Exact);
        if searched && plan.arena_bytes >= tflite_bytes {
            f.optimal = plan.optimal && plan.arena_bytes == tflite_bytes;
            return Ok(());
        }
        (f.optimal, f.placed_by) = (plan.optimal, plan.strategy.name());
        self.incremental.adopt(|t| ids.binary_search(&t).ok().map(|i| plan.offsets[i]));
        Ok(())
    }

    /// Checks that no two live tensors share bytes, with code that no strategy uses.
    fn verify(&mut self) -> Result<(), Error> {
        let (problem, ids) = self.problem()?;
        let offset = |&t: &usize| self.incremental.record(t).map_or(0, |r| r.offset);
        let offsets: Vec<u64> = ids.iter().map(offset).collect();
        let wrong = |_| Error::internal("the plan did not pass its check");
        let bytes = check(&problem, &offsets).map_err(wrong)?;
        if bytes > self.incremental.bytes().0 {
            return Err(Error::internal("a tensor lies outside the arena").needed(bytes));
        }
        self.figures.verified += 1;
        Ok(())
    }

    fn commit(&mut self, view: &View<'_>) -> Result<(), Error> {
        let (main, persistent) = self.incremental.bytes();
        self.persistent.fit(persistent, self.align, Contents::Keep)?;
        let contents = if self.fresh { Contents::Drop } else { Contents::Keep };
        let saved = if self.fresh { self.save_inputs(view) } else { Saved::new() };
        let old = self.main.addresses();
        if let Err(e) = self.main.fit(main, self.align, contents) {
            if contents == Contents::Drop {
                self.release(view);
            }
            return Err(e);
        }
        let moved = self.main.addresses() != old;
        for t in 0..view.tensor_count() {
            match (self.place(view, t), view.allocation(t)) {
                (Some(address), _) => view.set_data(t, address),
                // What has no place any more must not be found where the old block was.
                (None, Allocation::ArenaRw) if moved && old.contains(&(view.data(t) as usize)) => {
                    view.set_data(t, core::ptr::null_mut());
                }
                _ => {}
            }
        }
        for (t, bytes) in saved {
            let data = view.data(t);
            // SAFETY: the input has a place of its whole size, at least as many bytes as were saved, in the new block.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        }
        Ok(())
    }

    /// The address of a tensor's place, if it is in the arena that its allocation type names.
    fn place(&self, view: &View<'_>, t: usize) -> Option<*mut u8> {
        let (arena, offset) = self.incremental.place_of(t)?;
        let size = view.tensor(t).bytes.unwrap_or(0);
        match (arena, view.allocation(t)) {
            (Arena::Main, Allocation::ArenaRw) => self.main.address(offset, size),
            (Arena::Persistent, Allocation::ArenaRwPersistent) => self.persistent.address(offset, size),
            _ => None,
        }
    }

    /// Values of inputs that the application has set and that a new plan moves. TFLite places inputs first, so that they
    /// mostly stay where they are; applications have come to rely on it.
    fn save_inputs(&self, view: &View<'_>) -> Saved {
        let (main, _) = self.incremental.bytes();
        let old = self.main.addresses();
        let replaced = self.main.must_grow(main, self.align);
        let mut saved = Saved::new();
        for t in view.inputs().iter().filter_map(|&t| usize::try_from(t).ok()) {
            let (data, size) = (view.data(t), view.tensor(t).bytes.unwrap_or(0) as usize);
            let (start, inside) = (data as usize, view.allocation(t) == Allocation::ArenaRw && size > 0);
            if !inside || start < old.start || start.checked_add(size).is_none_or(|end| end > old.end) {
                continue;
            }
            let placed = self.incremental.record(t).is_some_and(|r| r.size >= size as u64);
            if placed && (replaced || self.place(view, t) != Some(data)) {
                // SAFETY: the bytes lie in the block that is still held.
                saved.push((t, unsafe { core::slice::from_raw_parts(data, size) }.to_vec()));
            }
        }
        saved
    }

    /// Forgets all places.
    pub fn reset(&mut self) {
        self.incremental.reset();
        self.fresh = true;
        self.figures.resets += 1;
    }

    /// Forgets the places of main-arena tensors that begin after `node`.
    pub fn reset_after(&mut self, view: &View<'_>, node: i32) {
        let count = view.tensor_count();
        let had: Vec<usize> = (0..count).filter(|&t| self.incremental.place_of(t).is_some()).collect();
        self.incremental.reset_after(node);
        for t in had {
            if view.allocation(t) == Allocation::ArenaRw && self.incremental.place_of(t).is_none() {
                view.set_data(t, core::ptr::null_mut());
            }
        }
        self.figures.partial_resets += 1;
    }

    /// The plan in force as a picture, SVG or a page to explore; `None` where it cannot be drawn.
    pub fn picture(&self, view: &View<'_>, title: &str, page: bool) -> Option<String> {
        let (problem, ids) = self.problem().ok()?;
        let f = &self.figures;
        let plan = Plan {
            offsets: ids.iter().map(|&t| self.incremental.record(t).map_or(0, |r| r.offset)).collect(),
            arena_bytes: f.arena_bytes,
            lower_bound: lower_bound(&problem).ok()?.bytes,
            optimal: f.optimal,
            strategy: self.strategy,
            align: self.align,
            compared: false,
            stats: Stats::default(),
        };
        let label = |i: usize| (ids[i].to_string(), crate::record::name(view, ids[i]));
        let report = Report::of_problem(title.into(), &problem, &plan, &label, &|s| (s.into(), s.into())).ok()?;
        let mut out = Vec::new();
        if page {
            let entries = [report];
            let overview = Overview {
                title,
                entries: &entries,
                persistent_bytes: f.persistent_bytes,
                resource_bytes: 0,
                constant_bytes: 0,
                scratch_bytes: None,
                alignment: f.alignment,
                in_place: true,
                strategy: f.strategy,
                warnings: &[],
                capacity: None,
            };
            html(&mut out, &[&overview], Several::Versions).ok()?;
        } else {
            svg(&mut out, &report).ok()?;
        }
        String::from_utf8(out).ok()
    }

    /// Gives the main arena's memory back.
    pub fn release(&mut self, view: &View<'_>) {
        self.incremental.release();
        self.main.release();
        for t in 0..view.tensor_count() {
            if view.allocation(t) == Allocation::ArenaRw {
                view.set_data(t, core::ptr::null_mut());
            }
        }
    }

    /// Takes it again, every tensor where it was.
    pub fn acquire(&mut self, view: &View<'_>) -> Result<(), Error> {
        if self.incremental.has_memory() {
            return Ok(());
        }
        self.main.fit(self.incremental.bytes().0, self.align, Contents::Drop)?;
        self.incremental.acquire();
        for t in 0..view.tensor_count() {
            if let (Some(address), Allocation::ArenaRw) = (self.place(view, t), view.allocation(t)) {
                view.set_data(t, address);
            }
        }
        Ok(())
    }

    /// Whether the main arena is there, which it also is at 0 bytes.
    pub fn has_memory(&self) -> bool {
        self.incremental.has_memory()
    }

    /// Bytes held for the main and the persistent arena.
    pub fn held(&self) -> (usize, usize) {
        (self.main.capacity(), self.persistent.capacity())
    }

    /// The place of a tensor, in-place roots followed.
    pub fn place_of(&self, t: usize) -> Option<(Arena, u64)> {
        self.incremental.place_of(t)
    }

    /// The tensor whose bytes a tensor uses.
    pub fn root_of(&self, t: usize) -> Option<u32> {
        self.incremental.root_of(t)
    }
}
