//! What the operating system says about the process.

/// Bytes of the process's memory that are in RAM (the resident set); `None` where the system does not say (anything but
/// Linux).
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: `sysconf` only reads a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_resident_set_is_some_megabytes() {
        let bytes = super::resident_bytes().unwrap();
        assert!((100 << 10..64 << 30).contains(&bytes), "{bytes}");
    }
}
