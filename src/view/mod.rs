//! Plans for people to read: rows and figures ([`Report`]), text, and a picture.
//!
//! Knows the core only. Names come in as plain data, so that any host's graph can be shown.
#![forbid(unsafe_code)]

mod cost;
mod csv;
mod diff;
mod format;
#[cfg(feature = "html")]
mod html;
mod json;
mod json_text;
mod map;
mod report;
mod svg;
mod text;
mod trace;

pub use cost::{cost, idle, Cost};
pub use csv::csv;
pub use diff::{diff_json, diff_text, Change, Difference};
pub use format::{grouped, human, visible};
#[cfg(feature = "html")]
pub use html::{html, Several};
pub use json::{json, REPORT_VERSION};
pub use report::{Facts, Kind, Names, Report, Row, Tensor, Use};
pub use svg::svg;
pub use text::{text, Overview, TextOptions};
pub use trace::trace;
