//! JSON as text, written as it comes: strings and lists. (The view is built without a JSON library.)

use std::fmt::{Display, Write};

use super::format::steers;

/// `text` as a JSON string. `<` is escaped too, so that the result may stand inside an HTML script element, and so are
/// the two line separators that older JavaScript does not allow in strings.
pub fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '<' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            // What steers a terminal, the upper control characters too.
            c if steers(c) => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number, or null.
pub fn number(value: Option<impl Display>) -> String {
    value.map_or("null".into(), |v| v.to_string())
}

/// A list of what is JSON already.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("[");
    for (i, item) in items.into_iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{item}");
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes_from_a_string() {
        assert_eq!(string("a\"b\\c\n</script>\u{1}é\u{2028}"), r#""a\"b\\c\n\u003c/script>\u0001é\u2028""#);
        assert_eq!(list([1, 2]) + &list::<u8>([]) + &number(None::<u8>), "[1,2][]null");
    }
}
