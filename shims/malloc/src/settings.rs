//! What the environment asks for, read once when the library is loaded.

use std::path::PathBuf;

/// Bytes of a block from which the pool serves it.
const MIN: usize = 64 << 10;

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `ARENITE_MALLOC_DISABLE`: everything is the next library's.
    pub disable: bool,
    /// `ARENITE_MALLOC_MIN`: the smallest block that the pool serves.
    pub min: usize,
    /// `ARENITE_MALLOC_RESERVE`: bytes of addresses set aside, twice the machine's memory by default.
    pub reserve: usize,
    /// `ARENITE_MALLOC_FRAMES`: whether repeating frames are looked for.
    pub frames: bool,
    /// `ARENITE_MALLOC_REPORT`.
    pub report: Option<PathBuf>,
    /// `ARENITE_MALLOC_TRACE`.
    pub trace: Option<PathBuf>,
}

/// Says something on standard error.
pub fn say(message: &str) {
    let line = format!("arenite: {message}\n");
    // Nobody can be told that standard error is closed.
    // SAFETY: the text is readable for its length. No lock of the standard library's is taken: we may be inside `malloc`.
    let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

impl Settings {
    /// Those of this process.
    pub fn of_the_environment() -> Settings {
        Settings::from(&|name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()), &mut |m| say(&m))
    }

    /// Reads the variables through `get`; what is not understood is named to `complain` and left at its default.
    fn from(get: &dyn Fn(&str) -> Option<String>, complain: &mut dyn FnMut(String)) -> Settings {
        let get = |name: &str| get(name).filter(|v| !v.is_empty());
        let flag = |name: &str, default: bool| get(name).map_or(default, |v| v != "0");
        let path = |name: &str| get(name).map(|v| PathBuf::from(v.replace("%p", &std::process::id().to_string())));
        let mut size = |name: &str, default: usize| match get(name) {
            None => default,
            Some(text) => parse(&text).unwrap_or_else(|| {
                complain(format!("{name}={text} is no size (bytes, or with KiB, MiB, GiB); using {default}"));
                default
            }),
        };
        Settings {
            // A block of the system's own start-up code would be no gain.
            min: size("ARENITE_MALLOC_MIN", MIN).max(4096),
            reserve: size("ARENITE_MALLOC_RESERVE", twice_the_memory()),
            disable: flag("ARENITE_MALLOC_DISABLE", false),
            frames: flag("ARENITE_MALLOC_FRAMES", true),
            report: path("ARENITE_MALLOC_REPORT"),
            trace: path("ARENITE_MALLOC_TRACE"),
        }
    }
}

/// `65536`, `64k`, `64KiB`, `1MiB`, `2G`.
fn parse(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    text[..digits].parse::<usize>().ok()?.checked_mul(1usize.checked_shl(unit)?)
}

fn twice_the_memory() -> usize {
    // SAFETY: a query without preconditions.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    // SAFETY: as above.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let bytes = usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(page).unwrap_or(4096));
    bytes.saturating_mul(2).clamp(1 << 30, isize::MAX as usize / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let mut said = Vec::new();
        let get = |name: &str| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string());
        let s = Settings::from(&get, &mut |m| said.push(m));
        (s, said)
    }

    #[test]
    fn values_are_read_and_bad_ones_named() {
        let (s, said) = read(&[("ARENITE_MALLOC_MIN", "1MiB"), ("ARENITE_MALLOC_FRAMES", "0")]);
        assert_eq!((s.min, s.frames, s.disable, said.len()), (1 << 20, false, false, 0));
        let (s, said) = read(&[("ARENITE_MALLOC_MIN", "64Q"), ("ARENITE_MALLOC_RESERVE", "99999999999999999999")]);
        assert_eq!((s.min, said.len()), (MIN, 2));
        let (s, _) = read(&[("ARENITE_MALLOC_REPORT", "r%p.json"), ("ARENITE_MALLOC_MIN", "1")]);
        assert_eq!((s.report, s.min), (Some(format!("r{}.json", std::process::id()).into()), 4096));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("0", 0), ("65536", 65536), ("64k", 65536), ("64KiB", 65536), ("2g", 2 << 30)] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in ["", "k", "-1", "1.5M", "99999999999G"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
