//! Valgrind's client requests: instructions that do nothing on a processor and that Valgrind takes for a call.
//!
//! The sequences and numbers are those of Valgrind's public interface (its manual, "The Client Request mechanism"), which
//! has kept them stable since version 3.

use std::sync::OnceLock;

/// What Valgrind is told.
#[derive(Clone, Copy)]
pub(crate) enum Request {
    /// Bytes nobody may access.
    NoAccess,
    /// Bytes with contents.
    Defined,
    /// A block was allocated there.
    HandedOut,
    /// The block there was freed.
    GivenBack,
    /// This thread's accesses are not to be reported, until [`Request::Loud`].
    Quiet,
    /// They are again.
    Loud,
}

/// Whether the program runs under Valgrind.
pub(crate) fn running() -> bool {
    static RUNNING: OnceLock<bool> = OnceLock::new();
    *RUNNING.get_or_init(|| ask([0x1001, 0, 0, 0, 0, 0]) != 0)
}

/// Tells Valgrind. Does nothing elsewhere.
pub(crate) fn tell(request: Request, address: usize, bytes: usize) {
    // Requests of the memory checker begin at 'M' 'C'.
    const MEMCHECK: usize = 0x4d43_0000;
    ask(match request {
        Request::NoAccess => [MEMCHECK, address, bytes, 0, 0, 0],
        Request::Defined => [MEMCHECK + 2, address, bytes, 0, 0, 0],
        Request::HandedOut => [0x1301, address, bytes, 0, 0, 0],
        Request::GivenBack => [0x1302, address, 0, 0, 0, 0],
        Request::Quiet => [0x1801, 1, 0, 0, 0, 0],
        Request::Loud => [0x1801, usize::MAX, 0, 0, 0, 0],
    });
}

#[cfg(all(target_arch = "x86_64", unix, not(miri)))]
fn ask(request: [usize; 6]) -> usize {
    let mut result = 0usize;
    // SAFETY: the rotations add up to 128, so `rdi` is as before, and exchanging a register with itself changes nothing;
    // Valgrind reads the six words and writes `rdx`.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") result,
            options(nostack),
        );
    }
    result
}

#[cfg(all(target_arch = "aarch64", unix, not(miri)))]
fn ask(request: [usize; 6]) -> usize {
    let mut result = 0usize;
    // SAFETY: as on x86-64: the rotations add up to 128, and a register is combined with itself.
    unsafe {
        core::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") request.as_ptr(),
            inout("x3") result,
            options(nostack),
        );
    }
    result
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), unix, not(miri))))]
fn ask(_request: [usize; 6]) -> usize {
    0
}
