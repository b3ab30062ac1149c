//! Plans for people to read: rows and figures ([`Report`]), text, and a picture.
//!
//! Knows the core only. Names come in as plain data, so that any host's graph can be shown.
#![forbid(unsafe_code)]

mod format;
mod map;
mod report;
mod svg;
mod text;

pub use format::{grouped, human};
pub use report::{Facts, Kind, Names, Report, Row, Use};
pub use svg::svg;
pub use text::{text, Overview, TextOptions};
