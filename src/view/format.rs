//! Numbers and names in a form people read.

use std::borrow::Cow;
use std::fmt::Write;

use crate::units::Bytes;

/// `1234567` as `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// `bytes` in the largest binary unit that leaves at least 1, with three digits: `4.59 MiB`.
pub fn human(bytes: Bytes) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    // What would round to 1024 belongs to the next unit.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `text` as a terminal may show it: what would steer the terminal, or turn the direction of the line around, is written
/// as an escape.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match steers(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Control characters, and those that change the direction of writing.
pub(super) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` without control characters, cut to `width` characters; the middle is left out, since names differ at
/// either end.
pub(super) fn cut(text: &str, width: usize) -> String {
    let clean: Vec<char> = text.chars().map(|c| if steers(c) { '?' } else { c }).collect();
    if clean.len() <= width {
        return clean.into_iter().collect();
    }
    let keep = width.saturating_sub(2);
    let head = keep / 2;
    let tail = clean.len() - (keep - head);
    clean[..head].iter().chain(&['.', '.']).chain(&clean[tail..]).collect()
}

/// `text` for an XML text node or attribute. Characters XML cannot hold are replaced.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!((grouped(0), grouped(999), grouped(1000)), ("0".into(), "999".into(), "1 000".into()));
        assert_eq!(grouped(u64::MAX), "18 446 744 073 709 551 615");
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10 << 10, "10.0 KiB"), (4_816_896, "4.59 MiB")];
        for (bytes, text) in cases {
            assert_eq!(human(bytes), text);
        }
        assert_eq!((human((1 << 20) - 1), human(u64::MAX)), ("1.00 MiB".into(), "16.0 EiB".into()));
    }

    #[test]
    fn names() {
        assert_eq!(
            (cut("short", 8), cut("a/very/long", 8), cut("a\nb", 8)),
            ("short".into(), "a/v..ong".into(), "a?b".into())
        );
        assert_eq!(cut("ééééééééé", 4), "é..é");
        assert_eq!(visible("\u{1b}[31mé\n\u{9b}\u{202e}"), "\\u{1b}[31mé\\n\\u{9b}\\u{202e}");
        assert_eq!(xml("a<b>&\"\u{1}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd}&#10;");
    }
}
