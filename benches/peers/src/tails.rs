//! What is behind the slowest calls: a trace is replayed many times and each call keeps its smallest and its middle time.
//! What is slow every time is the code's doing; what is slow once is the machine's.

use crate::trace::{Op, Trace};
use crate::{at, geomean, tsc, Runner};

const PASSES: usize = 31;

/// The smallest and the middle of each call's times, in nanoseconds.
fn per_call(runner: &mut dyn Runner, trace: &Trace, per_ns: f64) -> Vec<[f64; 2]> {
    let reader = (0..10_000).map(|_| (tsc(), tsc())).map(|(a, b)| b - a).min().unwrap();
    let mut times: Vec<Vec<u64>> = vec![Vec::with_capacity(PASSES); trace.ops.len()];
    // The first ones warm up, and record the frames.
    let mut ticks = Vec::with_capacity(trace.ops.len());
    for pass in 0..PASSES + 3 {
        ticks.clear();
        runner.timed(trace, &mut ticks);
        if pass >= 3 {
            times.iter_mut().zip(&ticks).for_each(|(all, &t)| all.push(t.saturating_sub(reader)));
        }
    }
    let sorted = times.into_iter().map(|mut all| {
        all.sort_unstable();
        [all[0], all[PASSES / 2]].map(|t| t as f64 / per_ns)
    });
    sorted.collect()
}

/// Percentiles of the smallest and of the middle times of every call; with `worst`, the slowest calls as well.
pub fn tails<'a>(
    traces: &'a [Trace],
    per_ns: f64,
    worst: usize,
    all: &dyn Fn(&'a Trace) -> Vec<(&'static str, Box<dyn Runner>)>,
) {
    let mut table: Vec<(&str, Vec<[f64; 8]>)> = Vec::new();
    for trace in traces {
        for (row, (name, mut runner)) in all(trace).into_iter().enumerate() {
            let calls = per_call(&mut *runner, trace, per_ns);
            let sorted = |middle: usize, alloc: bool| {
                let kind = trace.ops.iter().zip(&calls).filter(|(op, _)| match op {
                    Op::Alloc { .. } => alloc,
                    Op::Free { .. } => !alloc,
                    Op::Resize { .. } => false,
                });
                let mut out: Vec<u64> = kind.map(|(_, c)| (c[middle] * 16.0) as u64).collect();
                out.sort_unstable();
                [0.99, 0.999].map(|share| at(&out, share) as f64 / 16.0)
            };
            let figures = [sorted(0, true), sorted(1, true), sorted(0, false), sorted(1, false)].concat();
            if table.len() <= row {
                table.push((name, Vec::new()));
            }
            table[row].1.push(figures.try_into().unwrap());
            let mut order: Vec<usize> = (0..calls.len()).collect();
            order.sort_by(|&a, &b| calls[b][1].total_cmp(&calls[a][1]));
            for &i in order.iter().take(worst) {
                let what = match trace.ops[i] {
                    Op::Alloc { bytes, align, .. } => format!("alloc {bytes} at {align}"),
                    Op::Free { .. } => "free".to_string(),
                    Op::Resize { bytes, .. } => format!("resize to {bytes}"),
                };
                println!("{:18} {name:30} call {i:5} {what:22} {:5.0} {:5.0} ns", trace.name, calls[i][0], calls[i][1]);
            }
        }
    }
    println!("each call's smallest | middle time of {PASSES} passes, ns: p99 p99.9");
    println!("{:31} {:>25} | {:>25}", "", "alloc", "free");
    for (name, rows) in table {
        let mean = |k: usize| geomean(rows.iter().map(|r| r[k]));
        let pair = |k: usize| format!("{:5.0} {:5.0} | {:5.0} {:5.0}", mean(k), mean(k + 1), mean(k + 2), mean(k + 3));
        println!("{name:31} {:>25} || {:>25}", pair(0), pair(4));
    }
}
