//! A file mapped read-only: the weights of a model, one copy for all sessions, instances and processes.

use core::ptr::NonNull;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::Error;

/// A whole file in memory, read-only. Any thread may use it; whoever binds to it keeps it alive.
///
/// Its pages are read from the file when they are first touched and may be dropped again by the system, so they cost no
/// memory that something else needs. The file must not be shortened meanwhile: touching what is gone ends the process.
/// Where files cannot be mapped its contents are read into memory.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    #[cfg(not(unix))]
    _contents: Vec<u8>,
}

// SAFETY: the bytes are never written, and are bound to no thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

fn refused(e: &std::io::Error) -> Error {
    Error::argument(match e.kind() {
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::PermissionDenied => "the file may not be read",
        ErrorKind::IsADirectory => "the file is a directory",
        ErrorKind::OutOfMemory => "the system has no address space for the file",
        _ => "the file cannot be read",
    })
}

impl Mapping {
    /// Maps the file at `path`. An empty file has no bytes.
    ///
    /// `Argument` says why where it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Mapping, Error> {
        let file = File::open(path).map_err(|e| refused(&e))?;
        let meta = file.metadata().map_err(|e| refused(&e))?;
        if meta.is_dir() {
            return Err(Error::argument("the file is a directory"));
        }
        let bytes = usize::try_from(meta.len())
            .map_err(|_| Error::overflow("the file does not fit the address space").needed(meta.len()))?;
        Mapping::of(file, bytes)
    }

    #[cfg(unix)]
    #[allow(clippy::needless_pass_by_value)] // the mapping outlives the descriptor
    fn of(file: File, bytes: usize) -> Result<Mapping, Error> {
        use std::os::fd::AsRawFd;
        if bytes == 0 {
            return Ok(Mapping { base: NonNull::dangling(), bytes });
        }
        let (prot, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
        let at = unsafe { libc::mmap(core::ptr::null_mut(), bytes, prot, flags, file.as_raw_fd(), 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(base) if at != libc::MAP_FAILED => Ok(Mapping { base, bytes }),
            _ => Err(refused(&std::io::Error::last_os_error())),
        }
    }

    #[cfg(not(unix))]
    fn of(mut file: File, bytes: usize) -> Result<Mapping, Error> {
        use std::io::Read;
        let mut contents = Vec::new();
        contents
            .try_reserve_exact(bytes)
            .map_err(|_| Error::no_memory("there is no memory for the file").needed(bytes as u64))?;
        file.read_to_end(&mut contents).map_err(|e| refused(&e))?;
        let base = NonNull::new(contents.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Ok(Mapping { base, bytes: contents.len(), _contents: contents })
    }

    /// The first byte; dangling for an empty file.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where `bytes` bytes from `offset` on are. `Capacity` where they reach past the end of the file.
    pub fn at(&self, offset: u64, bytes: u64) -> Result<NonNull<u8>, Error> {
        let short = Error::capacity("the data reaches past the end of the mapped file").available(self.bytes as u64);
        let end = offset.checked_add(bytes).ok_or(short.needed(u64::MAX))?;
        if end > self.bytes as u64 {
            return Err(short.needed(end));
        }
        // SAFETY: `offset` is at most the bytes of the mapping.
        Ok(unsafe { self.base.add(offset as usize) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(unix)]
        if self.bytes > 0 {
            // SAFETY: the mapping is this value's own, and whoever refers to it keeps the value alive.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_byte_for_byte_and_no_further() {
        let dir = std::env::temp_dir().join(format!("arenite-mapping-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("weights");
        std::fs::write(&path, (0..=255).collect::<Vec<u8>>()).unwrap();
        let m = Mapping::open(&path).unwrap();
        let at = m.at(100, 156).unwrap();
        // SAFETY: 156 bytes are mapped from there.
        assert_eq!(unsafe { core::slice::from_raw_parts(at.as_ptr(), 2) }, [100, 101]);
        let e = m.at(100, 157).unwrap_err();
        assert_eq!((e.needed, e.available), (Some(257), Some(256)));
        assert!(m.at(u64::MAX, 2).is_err() && m.at(256, 0).is_ok());
        std::fs::write(dir.join("empty"), []).unwrap();
        assert_eq!(Mapping::open(&dir.join("empty")).unwrap().bytes(), 0);
        assert_eq!(Mapping::open(&dir.join("none")).unwrap_err().reason, "there is no such file");
        assert!(Mapping::open(&dir).is_err());
        drop(m);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
