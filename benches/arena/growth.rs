//! Growth with contents that must survive.

use std::time::{Duration, Instant};

use arenite::graph::owned::{Graph, NodeSpec};
use arenite::graph::tables::Tensor;
use arenite::runtime::incremental::{IncrementalArena, IncrementalConfig};
use arenite::runtime::source::Source;

use super::touch;

/// Growing an incremental arena whose contents must survive, by a copy and by moving pages.
pub fn print() {
    println!("growing an arena whose contents must survive, in steps of a quarter from 16 to 256 MiB");
    println!("{:<28} {:>10} {:>14} {:>14}", "", "ms", "peak bytes", "final bytes");
    for (name, main) in [("process's allocator (copy)", Source::System), ("mapped pages (moved)", Source::Map)] {
        let grow = || {
            let mut g = Graph::new();
            let mut bytes = 16u64 << 20;
            let mut sizes = Vec::new();
            while bytes <= 256 << 20 {
                sizes.push(bytes);
                bytes += bytes / 4;
            }
            // Every node writes a tensor that is read by the last one, so that all of them live.
            let mut reads = Vec::new();
            for (i, &b) in sizes.iter().enumerate() {
                let own = if i == 0 { b } else { b - sizes[i - 1] };
                let t = g.add_tensor(Tensor { bytes: Some(own), ..Tensor::default() }).unwrap() as i32;
                reads.push(t);
                g.add_node(&NodeSpec { outputs: &[t], ..NodeSpec::default() }).unwrap();
            }
            g.add_node(&NodeSpec { inputs: &reads, ..NodeSpec::default() }).unwrap();
            let mut a = IncrementalArena::new(&IncrementalConfig { main, ..IncrementalConfig::default() });
            a.plan(&g).unwrap();
            let mut took = Duration::ZERO;
            for n in 0..sizes.len() as i32 {
                let start = Instant::now();
                a.execute(&g, n, n).unwrap();
                took += start.elapsed();
                touch(a.resolve(&g, n as usize).unwrap());
            }
            (took, a.stats().high_water, a.stats().committed_bytes)
        };
        let runs: Vec<_> = (0..5).map(|_| grow()).collect();
        let best = runs.iter().min().unwrap();
        println!("{name:<28} {:>10.1} {:>14} {:>14}", best.0.as_secs_f64() * 1e3, best.1, best.2);
    }
}
