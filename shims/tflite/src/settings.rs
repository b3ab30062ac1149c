//! What the environment asks for, read once.

use std::path::PathBuf;
use std::sync::OnceLock;

use arenite::planner::Strategy;
use arenite::units::{Align, DEFAULT_ALIGN};

/// Who plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// We do.
    Ours(Strategy),
    /// The host's planner does and is only watched.
    Host,
}

/// Search nodes for one plan where nothing else is asked for: some milliseconds, not the second that the library's own
/// default may take, since this happens whenever an application loads a model or changes a shape.
const EFFORT: u64 = 20_000;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `ARENITE_DISABLE`: the host's planner is in charge and nothing is touched.
    pub disable: bool,
    /// `ARENITE_STRATEGY`.
    pub choice: Choice,
    /// `ARENITE_ALIGN`.
    pub align: Align,
    /// `ARENITE_EFFORT`: search nodes.
    pub effort: u64,
    /// `ARENITE_REPORT`.
    pub report: Option<PathBuf>,
    /// `ARENITE_RECORD`.
    pub record: Option<PathBuf>,
    /// `ARENITE_VERIFY`: every plan is checked.
    pub verify: bool,
    /// Unless `ARENITE_XNNPACK` is 0: XNNPACK's memory is ours too.
    pub xnnpack: bool,
}

/// Says something on standard error.
pub fn say(message: &str) {
    use std::io::Write;
    // Nobody can be told that standard error is closed.
    let _ = writeln!(std::io::stderr(), "arenite: {message}");
}

/// Nanoseconds of processor time that this thread has used: other programs on the machine do not count.
pub fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the output is writable. Where the clock is missing both numbers stay 0.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    u64::try_from(t.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000) + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static ONCE: OnceLock<Settings> = OnceLock::new();
    ONCE.get_or_init(|| {
        Settings::from(&|name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned()), &mut |m| say(&m))
    })
}

impl Settings {
    /// Reads the variables through `get`; what is not understood is named to `complain` and left at its default.
    fn from(get: &dyn Fn(&str) -> Option<String>, complain: &mut dyn FnMut(String)) -> Settings {
        let flag = |name: &str| get(name).is_some_and(|v| !v.is_empty() && v != "0");
        let path = |name: &str| get(name).filter(|v| !v.is_empty()).map(with_pid).map(PathBuf::from);
        let mut out = Settings {
            disable: flag("ARENITE_DISABLE"),
            choice: Choice::Ours(Strategy::Auto),
            align: DEFAULT_ALIGN,
            effort: EFFORT,
            report: path("ARENITE_REPORT"),
            record: path("ARENITE_RECORD"),
            verify: flag("ARENITE_VERIFY"),
            xnnpack: get("ARENITE_XNNPACK").is_none_or(|v| v != "0"),
        };
        if let Some(name) = get("ARENITE_STRATEGY").filter(|v| !v.is_empty()) {
            match (name.as_str(), Strategy::from_name(&name)) {
                ("host", _) => out.choice = Choice::Host,
                (_, Some(s)) => out.choice = Choice::Ours(s),
                _ => {
                    let known: Vec<&str> = Strategy::ALL.iter().map(|s| s.name()).collect();
                    complain(format!("ARENITE_STRATEGY={name} is none of {}, host; using auto", known.join(", ")));
                }
            }
        }
        if let Some(text) = get("ARENITE_ALIGN").filter(|v| !v.is_empty()) {
            match text.parse().ok().and_then(|n| Align::new(n).ok()) {
                Some(a) => out.align = a,
                None => complain(format!("ARENITE_ALIGN={text} is no power of two up to 65536; using 128")),
            }
        }
        if let Some(text) = get("ARENITE_EFFORT").filter(|v| !v.is_empty()) {
            match text.parse() {
                Ok(n) => out.effort = n,
                Err(_) => complain(format!("ARENITE_EFFORT={text} is no number of search nodes; using {EFFORT}")),
            }
        }
        out
    }
}

/// `%p` becomes the process's number, so that processes that start each other do not write one file.
fn with_pid(name: String) -> String {
    name.replace("%p", &std::process::id().to_string())
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
        let (s, said) = read(&[("ARENITE_STRATEGY", "host"), ("ARENITE_ALIGN", "64"), ("ARENITE_VERIFY", "1")]);
        assert_eq!((s.choice, s.align.bytes(), s.verify, s.disable), (Choice::Host, 64, true, false));
        assert!(said.is_empty());
        let (s, said) = read(&[("ARENITE_STRATEGY", "best"), ("ARENITE_ALIGN", "96"), ("ARENITE_EFFORT", "-1")]);
        assert_eq!((s.choice, s.align, s.effort), (Choice::Ours(Strategy::Auto), DEFAULT_ALIGN, EFFORT));
        assert_eq!(said.len(), 3);
        let (s, _) = read(&[("ARENITE_REPORT", "r%p.json"), ("ARENITE_DISABLE", "0")]);
        assert_eq!(s.report, Some(format!("r{}.json", std::process::id()).into()));
        assert!(!s.disable);
    }
}
