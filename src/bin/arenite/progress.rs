//! Long work: a line on the terminal, and the deadline. The planner itself has no clock.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use arenite::planner::strategy::Progress;
use arenite::view::grouped;
use indicatif::{ProgressBar, ProgressStyle};

/// Work that is done sooner leaves no line.
const QUIET: Duration = Duration::from_millis(500);

/// How often the line changes.
const REDRAW: Duration = Duration::from_millis(100);

/// Watches one run of the planner.
pub struct Watch {
    begin: Instant,
    deadline: Option<Duration>,
    shown: bool,
    bar: Option<ProgressBar>,
    drawn: Duration,
    /// Whether the deadline ended the search.
    pub expired: bool,
}

impl Watch {
    /// Starts the clock.
    pub fn new(deadline: Option<u64>) -> Watch {
        Watch {
            begin: Instant::now(),
            deadline: deadline.map(Duration::from_millis),
            shown: std::io::stderr().is_terminal(),
            bar: None,
            drawn: Duration::ZERO,
            expired: false,
        }
    }

    /// Told every few hundred search nodes.
    pub fn tick(&mut self, title: &str, p: &Progress) -> ControlFlow<()> {
        let spent = self.begin.elapsed();
        if self.shown && spent > QUIET && spent - self.drawn > REDRAW {
            self.drawn = spent;
            let bar = self.bar.get_or_insert_with(|| {
                let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
                ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            });
            bar.set_message(format!(
                "{title}: arena {} B, bound {} B, {} nodes",
                grouped(p.arena_bytes),
                grouped(p.lower_bound),
                grouped(p.nodes)
            ));
            bar.tick();
        }
        if self.deadline.is_some_and(|d| spent >= d) {
            self.expired = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
