//! What the pool did, written when the program ends.

use std::fmt::Write as _;

use arenite::error::Kind;

use super::pool;
use super::settings::say;

/// Writes the report that was asked for, and the end of a trace.
pub fn write() {
    let Some(settings) = pool::settings() else { return };
    if let (Some(pool), true) = (pool::existing(), settings.trace.is_some()) {
        match pool.trace_stop() {
            // It was never begun, and that has been said.
            Err(error) if error.kind == Kind::Argument => {}
            Err(error) => say(&format!("the trace is not complete: {error}")),
            Ok(()) => {}
        }
    }
    let Some(path) = &settings.report else { return };
    let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    if let Err(error) = std::fs::write(path, render(&figures(), json)) {
        say(&format!("{}: {error}", path.display()));
    }
}

fn figures() -> Vec<(&'static str, u64)> {
    let mut out = Vec::new();
    out.push(("peak_resident_bytes", peak_resident()));
    let Some(pool) = pool::existing() else { return out };
    let (stats, frames) = (pool.stats(), pool.frame_stats());
    out.extend([
        ("pool_resident_bytes", pool.resident().unwrap_or(0)),
        ("pool_blocks", stats.heap.allocs),
        ("pool_live_bytes", stats.heap.live),
        ("pool_peak_live_bytes", stats.heap.peak_live),
        ("pool_regions", u64::from(stats.regions)),
        ("pool_refused", stats.refused),
        ("pool_trimmed_bytes", stats.trimmed_bytes),
        ("bad_frees", stats.bad),
        ("frames", frames.frames),
        ("frames_planned", frames.recorded),
        ("frame_blocks_served", frames.served),
        ("frame_blocks_mismatched", frames.mismatched),
        ("frame_blocks_waiting", frames.waiting),
        ("frame_blocks_outside", frames.outside),
        ("frame_area_bytes", frames.area_bytes),
    ]);
    out
}

fn render(figures: &[(&str, u64)], json: bool) -> String {
    let mut out = String::new();
    for (i, (name, value)) in figures.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = match json {
            true => write!(out, "{}\"{name}\": {value}", if i == 0 { "{" } else { ", " }),
            false => writeln!(out, "{name:<24} {value}"),
        };
    }
    if json {
        out.push_str("}\n");
    }
    out
}

fn peak_resident() -> u64 {
    // SAFETY: a struct of integers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: the output is writable.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let figures = [("a", 1), ("bb", 22)];
        assert_eq!(render(&figures, true), "{\"a\": 1, \"bb\": 22}\n");
        assert_eq!(render(&figures, false).lines().count(), 2);
    }
}
