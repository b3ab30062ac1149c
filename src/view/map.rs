//! The arena as characters: time across, bytes up.

use std::io::{self, Write};

use super::format::human;
use super::report::Report;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Rows without a letter of their own.
const OTHER: u8 = b'*';
const ROWS: usize = 20;
/// Columns of bytes and the frame left of the picture.
const MARGIN: usize = 11;

/// The letter of each row in the map and the tables: the largest rows have one.
pub(super) fn letters(report: &Report) -> Vec<u8> {
    let mut letters = vec![b' '; report.rows.len()];
    let mut placed: Vec<usize> = (0..report.rows.len()).filter(|&i| report.rows[i].offset.is_some()).collect();
    placed.sort_by_key(|&i| (std::cmp::Reverse(report.rows[i].size), i));
    let mut free = LETTERS.iter();
    for i in placed {
        // Tensors that are the same bytes in place are one block of the picture.
        letters[i] = match report.rows[i].root {
            Some(root) if letters[root] != b' ' => letters[root],
            _ => *free.next().unwrap_or(&OTHER),
        };
    }
    letters
}

/// Draws the map in `width` columns at most.
pub(super) fn map(w: &mut dyn Write, report: &Report, letters: &[u8], width: usize) -> io::Result<()> {
    let (first, last) = report.time_range();
    let steps = last.saturating_sub(first).saturating_add(1);
    let room = width.saturating_sub(MARGIN + 1).max(8) as u64;
    let arena = report.facts.arena_bytes;
    if arena == 0 {
        return Ok(());
    }
    // Few steps get several columns each, many are sampled where most bytes are alive, so that the peak is always seen.
    let each = (room / steps).clamp(1, 8);
    let columns = (steps * each).min(room);
    let samples: Vec<u64> = if columns == steps * each {
        (0..columns).map(|c| first + c / each).collect()
    } else {
        busiest(report, first, steps, columns)
    };
    let mut grid = vec![b' '; samples.len() * ROWS];
    // A cell shows who holds its middle byte at its step.
    let middle = |row: usize| (u128::from(arena) * (2 * row as u128 + 1) / (2 * ROWS as u128)) as u64;
    for (i, row) in report.rows.iter().enumerate() {
        let (Some(from), Some(to)) = (row.offset, row.end()) else { continue };
        let low = (0..ROWS).find(|&r| middle(r) >= from).unwrap_or(ROWS);
        for cell_row in (low..ROWS).take_while(|&r| middle(r) < to) {
            for &(a, b) in &row.spans {
                let left = samples.partition_point(|&s| s < a);
                let right = samples.partition_point(|&s| s <= b);
                if left < right {
                    grid[cell_row * samples.len()..][left..right].fill(letters[i]);
                }
            }
        }
    }
    for r in (0..ROWS).rev() {
        let line = &grid[r * samples.len()..][..samples.len()];
        let top = (u128::from(arena) * (r as u128 + 1) / ROWS as u128) as u64;
        let label = if r % 4 == 3 { human(top) } else { String::new() };
        writeln!(w, "{label:>MARGIN$}|{}", String::from_utf8_lossy(line).trim_end(), MARGIN = MARGIN - 1)?;
    }
    writeln!(w, "{:>MARGIN$}+{}", "0", "-".repeat(samples.len()), MARGIN = MARGIN - 1)?;
    let (from, to) = (format!("step {first}"), last.to_string());
    let gap = samples.len().saturating_sub(from.len() + to.len()).max(1);
    writeln!(w, "{:MARGIN$}{from}{:gap$}{to}", "", "")?;
    Ok(())
}

/// For each of `columns` stretches of time, the time at which most bytes are alive.
fn busiest(report: &Report, first: u64, steps: u64, columns: u64) -> Vec<u64> {
    let edge = |c: u64| first + (u128::from(c) * u128::from(steps) / u128::from(columns)) as u64;
    let mut at = 0;
    let mut live = 0;
    (0..columns)
        .map(|c| {
            // What was alive before the stretch still is at its start.
            let (mut best, end) = ((live, edge(c)), edge(c + 1));
            while at < report.live.len() && report.live[at].0 < end {
                live = report.live[at].1;
                if live > best.0 || report.live[at].0 == best.1 {
                    best = (live, report.live[at].0);
                }
                at += 1;
            }
            best.1
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::{plan, BufferSpec, Options, Problem};
    use crate::units::Align;

    fn draw(problem: &Problem, scale: u64) -> String {
        let plan = plan(problem, &Options::default()).unwrap();
        let label = |i: usize| (i.to_string(), String::new());
        let time = |s: u32| (u64::from(s).saturating_mul(scale), (u64::from(s) + 1).saturating_mul(scale) - 1);
        let report = Report::of_problem("test".into(), problem, &plan, &label, &time).unwrap();
        let mut out = Vec::new();
        map(&mut out, &report, &letters(&report), 40).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_short_peak_among_many_steps_is_seen() {
        let mut p = Problem::new();
        p.add_one(BufferSpec::new(100, Align::ONE), 0, 9_999).unwrap();
        p.add_one(BufferSpec::new(900, Align::ONE), 7_777, 7_777).unwrap();
        for scale in [1, 1 << 40] {
            let map = draw(&p, scale);
            assert!(map.contains('a') && map.contains('b'), "{map}");
            assert!(map.lines().all(|l| l.chars().count() <= 40), "{map}");
            assert_eq!(map.lines().count(), ROWS + 2);
        }
    }

    #[test]
    fn tiny_empty_and_enormous_arenas() {
        assert_eq!(draw(&Problem::new(), 1), "");
        for size in [1, u64::MAX] {
            let mut p = Problem::new();
            p.add_one(BufferSpec::new(size, Align::ONE), 0, 0).unwrap();
            assert_eq!(draw(&p, 1).matches('a').count(), 8 * ROWS);
        }
        let mut p = Problem::new();
        for i in 0..100 {
            p.add_one(BufferSpec::new(10, Align::ONE), i, i).unwrap();
        }
        assert!(draw(&p, 1).contains('*'), "letters run out");
    }
}
