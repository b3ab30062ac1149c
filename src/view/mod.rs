//! Plans for people to read: rows and figures ([`Report`]), text, and a picture.
//!
//! Knows the core only. Names come in as plain data, so that any host's graph can be shown.
#![forbid(unsafe_code)]

mod cost;
mod format;
#[cfg(feature = "html")]
mod html;
mod json_text;
mod map;
mod report;
mod svg;
mod text;
mod trace;

pub use cost::{cost, idle, Cost};
pub use format::{grouped, human};
#[cfg(feature = "html")]
pub use html::html;
pub use report::{Facts, Kind, Names, Report, Row, Use};
pub use svg::svg;
pub use text::{text, Overview, TextOptions};
pub use trace::trace;
