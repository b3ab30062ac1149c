//! A TensorFlow Lite that hides its planner never calls us, and a preload that does nothing looks like one that works. When the
//! process ends, such a library is named.

use core::ffi::{c_char, c_int, c_void, CStr};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::host;
use crate::settings::{say, settings};

static CALLED: AtomicBool = AtomicBool::new(false);

/// A planner was asked for: the library is in use.
pub fn called() {
    CALLED.store(true, Relaxed);
}

/// Run by the dynamic linker when this library is loaded.
#[used]
#[cfg_attr(target_os = "linux", link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        // SAFETY: the function lives as long as the library, which nobody unloads.
        unsafe { libc::atexit(at_exit) };
    }
    at_load
};

extern "C" fn at_exit() {
    // A panic must not leave this function; there is nobody to tell.
    let _ = std::panic::catch_unwind(|| {
        if CALLED.load(Relaxed) || settings().disable {
            return;
        }
        let mut hidden: Vec<String> = Vec::new();
        // SAFETY: the callback gets the vector, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut hidden).cast()) };
        if !hidden.is_empty() {
            let names = hidden.join(", ");
            say(&format!("no planner is shown by {names}; TensorFlow Lite's own planner was in charge"));
        }
    });
}

/// Whether a file's name is one that TensorFlow Lite's libraries have.
fn is_tflite(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let known = ["tensorflowlite", "tflite", "litert", "pywrap_tensorflow_interpreter"];
    !name.contains("arenite") && known.iter().any(|k| name.contains(k))
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, hidden: *mut c_void) -> c_int {
    // SAFETY: the linker passes a struct that is live during the call.
    let info = unsafe { &*info };
    // SAFETY: what `at_exit` passed.
    let hidden = unsafe { &mut *hidden.cast::<Vec<String>>() };
    let name: *const c_char = info.dlpi_name;
    if name.is_null() {
        return 0;
    }
    // SAFETY: the linker's names are terminated strings.
    let path = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if is_tflite(&path) && host::constructor_of(&path).is_none() {
        hidden.push(path.into_owned());
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_name() {
        for yes in [
            "/x/libLiteRt.so",
            "a/_pywrap_tensorflow_interpreter_wrapper.so",
            "libtensorflowlite_c.so",
            "libtflite.so.2",
        ] {
            assert!(is_tflite(yes), "{yes}");
        }
        for no in ["/tflite/libfoo.so", "libarenite_tflite.so", "", "libtensorflow_framework.so.2"] {
            assert!(!is_tflite(no), "{no}");
        }
    }
}
