//! Arbitrary bytes as a problem and as a solution. A problem written back is the same problem.
#![no_main]

use arenite::model::{OffsetColumn, ProblemFile, Solution};
use arenite::units::Align;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let _ = Solution::read(file);
    let _ = ProblemFile::read(file, OffsetColumn::Fixed, Align::ONE);
    let Ok(problem) = ProblemFile::read(file, OffsetColumn::Solution, Align::ONE) else { return };
    let text = problem.with_offsets(&problem.offsets);
    let again = ProblemFile::read(text.as_bytes(), OffsetColumn::Solution, Align::ONE).expect("a file we wrote");
    assert_eq!((&again.ids, &again.lower, &again.upper), (&problem.ids, &problem.lower, &problem.upper));
    assert_eq!(again.offsets, problem.offsets);
    assert_eq!(again.problem.buffers(), problem.problem.buffers());
});
