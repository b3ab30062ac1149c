//! Reading what C passes in: versioned structs, arrays, text, enumeration numbers.
//!
//! Nothing here trusts a value. A versioned struct begins with `struct_size` and `flags`; a shorter one from an older
//! caller gets the defaults of the fields it lacks, a longer one from a newer caller is accepted while everything
//! unknown in it is zero, and an unknown flag is refused.

use core::ffi::{c_char, CStr};
use core::mem::{size_of, MaybeUninit};
use core::ptr;
use core::slice;

use crate::error::{Error, Kind};

/// Longest struct accepted. A larger `struct_size` is not a newer caller but an uninitialised field.
const LONGEST: usize = 4096;

/// Bytes of the leading `struct_size` and `flags`.
const HEAD: usize = 8;

/// A struct that may grow: C passes it by pointer with its size in the first field.
///
/// # Safety
/// The type is `repr(C)`, begins with `u32 struct_size` and `u32 flags`, and any bytes are a valid value of it: its
/// fields are integers, floats, raw pointers and arrays of these (no `bool`, no enum, no reference).
pub(crate) unsafe trait Versioned: Copy {
    /// What a field has that an older caller does not know.
    const DEFAULT: Self;
    /// The sizes this struct had in earlier releases.
    const OLDER: &'static [usize];
    /// The flags that mean something.
    const FLAGS: u32;
}

/// Reads a versioned struct; `Null` with `reason` where the pointer is null.
///
/// # Safety
/// `pointer` is null, or its first 4 bytes are readable and hold the number of bytes that are readable from it.
pub(crate) unsafe fn read<T: Versioned>(pointer: *const T, reason: &'static str) -> Result<T, Error> {
    // SAFETY: the caller's contract is that of `head`.
    let size = unsafe { head(pointer, reason) }?;
    let bytes = pointer.cast::<u8>();
    let mut value = MaybeUninit::new(T::DEFAULT);
    // SAFETY: `size` bytes are readable per the contract, `value` has `size_of::<T>()`, and the two do not overlap since
    // `value` is a local.
    unsafe { ptr::copy_nonoverlapping(bytes, value.as_mut_ptr().cast::<u8>(), size.min(size_of::<T>())) };
    // SAFETY: every byte was initialised by `DEFAULT` and `Versioned` promises that any bytes are a valid value.
    let value = unsafe { value.assume_init() };
    // SAFETY: `head` saw a size of at least `HEAD`, and that many bytes are readable per the contract.
    unsafe { check_flags::<T>(bytes) }?;
    for at in size_of::<T>()..size {
        // SAFETY: `at < size`, and `size` bytes are readable per the contract.
        let byte = unsafe { bytes.add(at) };
        // SAFETY: as above, and a byte needs no alignment.
        if unsafe { byte.read() } != 0 {
            return Err(Error::unsupported("a struct sets a field that this version does not know").needed(at as u64));
        }
    }
    Ok(value)
}

/// Reads an optional versioned struct: null means the defaults.
///
/// # Safety
/// As [`read`].
pub(crate) unsafe fn read_or_default<T: Versioned>(pointer: *const T) -> Result<T, Error> {
    if pointer.is_null() {
        return Ok(T::DEFAULT);
    }
    // SAFETY: the caller's contract is that of `read`.
    unsafe { read(pointer, "") }
}

/// Fills a versioned struct of the caller: as many bytes as both know, zero in what only a newer caller knows.
/// `struct_size` and `flags` stay as the caller set them. Nothing is written unless the result is `Ok`.
///
/// # Safety
/// `pointer` is null, or its first 4 bytes are readable and hold the number of bytes that are readable and writable
/// from it.
pub(crate) unsafe fn fill<T: Versioned>(pointer: *mut T, value: &T, reason: &'static str) -> Result<(), Error> {
    // SAFETY: the caller's contract is that of `head`.
    let size = unsafe { head(pointer, reason) }?;
    let bytes = pointer.cast::<u8>();
    // SAFETY: `head` saw a size of at least `HEAD`, and that many bytes are readable per the contract.
    unsafe { check_flags::<T>(bytes) }?;
    let known = size.min(size_of::<T>());
    let from = ptr::from_ref(value).cast::<u8>();
    // SAFETY: `HEAD <= known <= size_of::<T>()`, so the offset stays inside `value`.
    let from = unsafe { from.add(HEAD) };
    // SAFETY: `HEAD <= size`, so the offset stays inside the caller's struct.
    let to = unsafe { bytes.add(HEAD) };
    // SAFETY: `known - HEAD` bytes are readable in `value` and writable at the caller's; `value` is ours and apart.
    unsafe { ptr::copy_nonoverlapping(from, to, known - HEAD) };
    // SAFETY: `known <= size`, so the offset stays inside the caller's struct or one past it.
    let tail = unsafe { bytes.add(known) };
    // SAFETY: `size - known` bytes from there are writable per the contract.
    unsafe { tail.write_bytes(0, size - known) };
    Ok(())
}

/// Checks that [`fill`] would accept a struct, for calls that are long or have more than one output.
///
/// # Safety
/// As [`fill`].
pub(crate) unsafe fn fillable<T: Versioned>(pointer: *mut T, reason: &'static str) -> Result<(), Error> {
    // SAFETY: the caller's contract is that of `head`.
    unsafe { head(pointer.cast_const(), reason) }?;
    // SAFETY: `head` saw a size of at least `HEAD`, and that many bytes are readable per the contract.
    unsafe { check_flags::<T>(pointer.cast_const().cast()) }
}

/// Reads `struct_size` and checks that it is one this library can know.
///
/// # Safety
/// `pointer` is null or its first 4 bytes are readable.
unsafe fn head<T: Versioned>(pointer: *const T, reason: &'static str) -> Result<usize, Error> {
    if pointer.is_null() {
        return Err(Error::new(Kind::Null, reason));
    }
    // SAFETY: the first 4 bytes are readable per the contract; `read_unaligned` asks for no alignment.
    let size = unsafe { pointer.cast::<u32>().read_unaligned() } as usize;
    if T::OLDER.contains(&size) || (size_of::<T>()..=LONGEST).contains(&size) {
        Ok(size)
    } else {
        Err(Error::argument("struct_size is not the size of any version of the struct").needed(size as u64))
    }
}

/// Refuses a flag that this version does not know.
///
/// # Safety
/// The first `HEAD` bytes of the struct are readable.
unsafe fn check_flags<T: Versioned>(bytes: *const u8) -> Result<(), Error> {
    // SAFETY: `flags` are the second four of the `HEAD` readable bytes.
    let flags = unsafe { bytes.add(4) }.cast::<u32>();
    // SAFETY: readable as above; `read_unaligned` asks for no alignment.
    let flags = unsafe { flags.read_unaligned() };
    if flags & !T::FLAGS != 0 {
        return Err(Error::argument("a struct has a flag set that this version does not know").needed(flags.into()));
    }
    Ok(())
}

/// An array from C: empty when `count` is 0, whatever the pointer; `Null` with `reason` when null otherwise.
///
/// # Safety
/// When `count` is not 0, `pointer` is null or readable for `count` elements that nobody writes during `'a`, and any
/// bytes are a valid `T`.
pub(crate) unsafe fn array<'a, T: Copy>(pointer: *const T, count: u64, reason: &'static str) -> Result<&'a [T], Error> {
    let Some(count) = extent(pointer, count, reason)? else { return Ok(&[]) };
    // SAFETY: `extent` checked null, alignment and that the extent fits `isize`; the rest is the caller's contract.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// A writable array from C, as [`array`].
///
/// # Safety
/// When `count` is not 0, `pointer` is null or readable and writable for `count` elements that nobody else touches
/// during `'a`, and any bytes are a valid `T`.
pub(crate) unsafe fn array_mut<'a, T: Copy>(
    pointer: *mut T,
    count: u64,
    reason: &'static str,
) -> Result<&'a mut [T], Error> {
    let Some(count) = extent(pointer, count, reason)? else { return Ok(&mut []) };
    // SAFETY: `extent` checked null, alignment and that the extent fits `isize`; the rest is the caller's contract.
    Ok(unsafe { slice::from_raw_parts_mut(pointer, count) })
}

fn extent<T>(pointer: *const T, count: u64, reason: &'static str) -> Result<Option<usize>, Error> {
    if count == 0 {
        return Ok(None);
    }
    if pointer.is_null() {
        return Err(Error::new(Kind::Null, reason));
    }
    if !pointer.is_aligned() {
        return Err(Error::alignment("an array is not aligned for its element type"));
    }
    let bytes = usize::try_from(count).ok().and_then(|n| n.checked_mul(size_of::<T>()));
    match bytes {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(Some(count as usize)),
        _ => {
            Err(Error::overflow("an array's count times its element size does not fit the address space").needed(count))
        }
    }
}

/// Text from C without its terminating zero; `None` where the pointer is null. It need not be UTF-8.
///
/// # Safety
/// `pointer` is null or points to text that ends in a zero and that nobody writes during `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller's contract is that of `from_ptr`.
    Some(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// An enumeration number from C; `Argument` with `reason` and the number where it is none of the enumeration's.
pub(crate) fn choice<T: TryFrom<u32>>(number: u32, reason: &'static str) -> Result<T, Error> {
    T::try_from(number).map_err(|_| Error::argument(reason).needed(number.into()))
}

/// A 64-bit size from a plan as a size of this process.
pub(crate) fn narrow(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes)
        .map_err(|_| Error::overflow("a size does not fit this process's address space").needed(bytes))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Now {
        struct_size: u32,
        flags: u32,
        bytes: u64,
        effort: u64, // added in the second release
    }

    // SAFETY: `repr(C)`, begins as required, integers only.
    unsafe impl Versioned for Now {
        const DEFAULT: Self = Now { struct_size: 24, flags: 0, bytes: 0, effort: 55 };
        const OLDER: &'static [usize] = &[16];
        const FLAGS: u32 = 0b11;
    }

    /// A caller's struct: `size` bytes at an address that is aligned for nothing.
    fn caller(size: u32, flags: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0xEE];
        bytes.extend(size.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        for w in words {
            bytes.extend(w.to_ne_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Now, Error> {
        // SAFETY: the tests below give a size they provide, or one that is refused after 4 bytes.
        unsafe { read(bytes[1..].as_ptr().cast::<Now>(), "null") }
    }

    #[test]
    fn br_51_an_older_struct_gets_defaults_and_a_newer_one_is_accepted_when_its_tail_is_zero() {
        assert_eq!(parse(&caller(16, 1, &[9])).unwrap(), Now { struct_size: 16, flags: 1, bytes: 9, effort: 55 });
        assert_eq!(parse(&caller(24, 0, &[9, 8])).unwrap().effort, 8);
        assert_eq!(parse(&caller(40, 0, &[9, 8, 0, 0])).unwrap().effort, 8);
        assert_eq!(parse(&caller(40, 0, &[9, 8, 0, 1])).unwrap_err().kind, Kind::Unsupported);
    }

    #[test]
    fn br_58_sizes_and_flags_that_nobody_released_are_refused() {
        for size in [0, 1, 4, 8, 15, 17, 23, 4097, u32::MAX] {
            assert_eq!(parse(&caller(size, 0, &[0, 0])).unwrap_err().kind, Kind::Argument, "{size}");
        }
        assert_eq!(parse(&caller(24, 4, &[0, 0])).unwrap_err().needed, Some(4));
        assert_eq!(parse(&caller(24, u32::MAX, &[0, 0])).unwrap_err().kind, Kind::Argument);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read::<Now>(ptr::null(), "null") }.unwrap_err().kind, Kind::Null);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read_or_default::<Now>(ptr::null()) }.unwrap(), Now::DEFAULT);
    }

    #[test]
    fn filling_keeps_the_head_and_clears_what_only_the_caller_knows() {
        let value = Now { struct_size: 24, flags: 0, bytes: 3, effort: 4 };
        let fill_in = |bytes: &mut Vec<u8>| {
            // SAFETY: the sizes below are those of the buffers.
            unsafe { fill(bytes[1..].as_mut_ptr().cast::<Now>(), &value, "null") }
        };
        let mut old = caller(16, 2, &[0, 77]);
        fill_in(&mut old).unwrap();
        assert_eq!(old, caller(16, 2, &[3, 77]), "nothing past the caller's struct");
        let mut new = caller(40, 0, &[1, 1, 1, 1]);
        fill_in(&mut new).unwrap();
        assert_eq!(new, caller(40, 0, &[3, 4, 0, 0]));
        let mut bad = caller(24, 8, &[1, 1]);
        assert!(fill_in(&mut bad).is_err());
        assert_eq!(bad, caller(24, 8, &[1, 1]), "untouched on failure");
    }

    #[test]
    fn arrays_are_checked_before_a_slice_exists() {
        let words = [1u32, 2, 3];
        let read = |pointer: *const u32, count: u64| {
            // SAFETY: every call below has count 0, a pointer or count that is refused, or the array itself.
            unsafe { array(pointer, count, "null") }
        };
        assert_eq!(read(ptr::null(), 0).unwrap(), &[] as &[u32]);
        assert_eq!(read(ptr::without_provenance(1), 0).unwrap(), &[] as &[u32]);
        assert_eq!(read(ptr::null(), 1).unwrap_err().kind, Kind::Null);
        assert_eq!(read(words.as_ptr(), 3).unwrap(), &words);
        assert_eq!(read(words.as_ptr(), u64::MAX / 4).unwrap_err().kind, Kind::Overflow);
        assert_eq!(read(words.as_ptr(), u64::MAX).unwrap_err().kind, Kind::Overflow);
        assert_eq!(read(words.as_ptr().wrapping_byte_add(1), 1).unwrap_err().kind, Kind::Alignment);
    }
}
