//! Whether standard output was open when the program began (`arenite plan >&-`). The language's own start opens the null
//! device in place of a closed descriptor, where everything written vanishes with success; so the question is asked before.

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
mod before {
    use std::sync::atomic::{AtomicBool, Ordering};

    static CLOSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn ask() {
        // SAFETY: asks for the flags of a descriptor, which may be closed; nothing is changed.
        if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
            CLOSED.store(true, Ordering::Relaxed);
        }
    }

    // SAFETY: the loader calls what this section lists, once and in one thread, before `main`; `ask` needs nothing that
    // is set up later.
    #[link_section = ".init_array"]
    #[used]
    static ASK: extern "C" fn() = ask;

    pub fn closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}

/// Whether standard output was closed; always false where the system does not tell.
pub fn was_closed() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    return before::closed();
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    false
}
