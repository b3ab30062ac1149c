//! Arbitrary bytes as an allocation trace. In an accepted one, only live blocks are freed or resized.
#![no_main]

use arenite::model::{EventKind, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let Ok(trace) = Trace::read(file) else { return };
    let mut live = vec![false; trace.blocks()];
    for event in &trace.events {
        match event.kind {
            EventKind::Alloc { block, .. } => assert!(!std::mem::replace(&mut live[block as usize], true)),
            EventKind::Free { block } => assert!(std::mem::replace(&mut live[block as usize], false)),
            EventKind::Resize { block, .. } => assert!(live[block as usize]),
            EventKind::Mark(_) => {}
        }
    }
});
