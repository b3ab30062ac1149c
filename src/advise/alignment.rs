//! A lower alignment.

use super::{Case, Outcome, Pulled};
use crate::error::Error;
use crate::graph::liveness::Options;
use crate::units::Align;

/// What TFLite asks of its arena, and what TFLite Micro does.
const LOWER: [u64; 2] = [64, 16];
const HOW: &str = "Only where the kernels and any DMA allow it: TFLite asks for 64 bytes (kDefaultTensorAlignment), \
                   TFLite Micro for 16 (MicroArenaBufferAlignment).";

pub(super) fn pull(case: &Case<'_>, _now: &Outcome) -> Result<Vec<Pulled>, Error> {
    let now = case.options.align.bytes();
    let lower: Vec<u64> = LOWER.into_iter().filter(|&a| a < now).collect();
    if lower.is_empty() {
        return Ok(vec![Pulled::nothing("alignment", format!("does nothing here: it is {now} already"))]);
    }
    let each = |bytes: u64| {
        let align = Align::new(bytes)?;
        let outcome = Case { options: Options { align, ..case.options }, ..*case }.now()?;
        let why = format!("every tensor aligned to {bytes} bytes instead of {now}");
        Ok(Pulled::new("alignment", outcome, why, HOW).option(format!("--align {bytes}")))
    };
    lower.into_iter().map(each).collect()
}
