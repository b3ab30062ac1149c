//! The TfLite mirror: structs byte for byte like TfLite's, so that an engine passes its own arrays with a cast.
//!
//! TfLite has two layouts, chosen by one macro (`TF_LITE_STATIC_MEMORY`): the full build and the microcontroller build.
//! Here both exist side by side and the caller names one by `ARENITE_LAYOUT_`. Flags that are `bool` there are `u8`
//! here: the same byte, and any value of it is valid.

use core::ffi::{c_char, c_void};
use core::mem::{offset_of, size_of};
use core::slice;

use super::guard;
use super::status::arenite_status_t;
use crate::error::Error;

/// No memory: the tensor has none, or an optional one is absent.
pub const kAreniteMemNone: u32 = 0;
/// Constant data in the model file.
pub const kAreniteMmapRo: u32 = 1;
/// In the main arena: the bytes are shared with tensors that are alive at other times.
pub const kAreniteArenaRw: u32 = 2;
/// In the persistent arena: the bytes are the tensor's own and keep their contents.
pub const kAreniteArenaRwPersistent: u32 = 3;
/// Allocated by the runtime while it runs.
pub const kAreniteDynamic: u32 = 4;
/// Constant data computed once at preparation.
pub const kArenitePersistentRo: u32 = 5;
/// Memory the application provides.
pub const kAreniteCustom: u32 = 6;
/// An object that is no tensor buffer.
pub const kAreniteVariantObject: u32 = 7;
/// Memory of another device.
pub const kAreniteNonCpu: u32 = 8;

/// TfLite's full build: tensors are `AreniteTensor`, nodes `AreniteNode`.
pub const ARENITE_LAYOUT_FULL: u32 = 1;
/// TfLite's microcontroller build: tensors are `AreniteMicroTensor`, nodes `AreniteMicroNode`.
pub const ARENITE_LAYOUT_MICRO: u32 = 2;

/// An optional tensor that is absent, in a node's list of inputs.
pub const ARENITE_OPTIONAL_TENSOR: i32 = -1;

/// A size followed in memory by that many `int32_t`; read them with `arenite_int_array_data`.
///
/// To declare one with room for its elements use `ARENITE_INT_ARRAY(n)` and pass its address with a cast.
#[repr(C)]
pub struct AreniteIntArray {
    /// Number of elements that follow.
    pub size: i32,
}

/// Scale and zero point of a tensor quantised as a whole.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteQuantizationParams {
    /// Scale.
    pub scale: f32,
    /// Zero point.
    pub zero_point: i32,
}

/// Kind of quantisation with its parameters.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteQuantization {
    /// Kind, as TfLite numbers it.
    pub kind: u32,
    /// Parameters of that kind; not read.
    pub params: *mut c_void,
}

/// Memory that the application provides for a tensor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteCustomAllocation {
    /// Start.
    pub data: *mut c_void,
    /// Size.
    pub bytes: usize,
}

/// A tensor of TfLite's full build (112 bytes on 64-bit targets, 64 on 32-bit).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteTensor {
    /// Element type, as TfLite numbers it.
    pub kind: u32,
    /// Data; a union of pointers in TfLite.
    pub data: *mut c_void,
    /// Shape; null where it is not known.
    pub dims: *const AreniteIntArray,
    /// Scale and zero point; not read.
    pub params: AreniteQuantizationParams,
    /// Where its memory comes from: one of the numbers from `kAreniteMemNone` to `kAreniteNonCpu`.
    pub allocation_type: u32,
    /// Size of the data.
    pub bytes: usize,
    /// The mapped file that holds the data; not read.
    pub allocation: *const c_void,
    /// Name; null allowed.
    pub name: *const c_char,
    /// Delegate; not read.
    pub delegate: *mut c_void,
    /// Delegate's handle; not read.
    pub buffer_handle: i32,
    /// Boolean; not read.
    pub data_is_stale: u8,
    /// Boolean: a variable keeps its contents from one run to the next.
    pub is_variable: u8,
    /// Quantisation; not read.
    pub quantization: AreniteQuantization,
    /// Sparsity; not read.
    pub sparsity: *mut c_void,
    /// Shape with -1 for what is not known; null allowed.
    pub dims_signature: *const AreniteIntArray,
}

/// A tensor of TfLite's microcontroller build (64 bytes on 64-bit targets, 40 on 32-bit).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteMicroTensor {
    /// Quantisation; not read.
    pub quantization: AreniteQuantization,
    /// Scale and zero point; not read.
    pub params: AreniteQuantizationParams,
    /// Data; a union of pointers in TfLite.
    pub data: *mut c_void,
    /// Shape; null where it is not known.
    pub dims: *const AreniteIntArray,
    /// Size of the data.
    pub bytes: usize,
    /// Element type, as TfLite numbers it.
    pub kind: u32,
    /// Where its memory comes from: one of the numbers from `kAreniteMemNone` to `kAreniteNonCpu`.
    pub allocation_type: u32,
    /// Boolean: a variable keeps its contents from one run to the next.
    pub is_variable: u8,
}

/// A node of TfLite's full build (80 bytes on 64-bit targets, 40 on 32-bit).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteNode {
    /// Tensors it reads; -1 for an optional one that is absent.
    pub inputs: *const AreniteIntArray,
    /// Tensors it writes.
    pub outputs: *const AreniteIntArray,
    /// Tensors it uses inside; null allowed.
    pub intermediates: *const AreniteIntArray,
    /// Tensors alive only while it runs; null allowed.
    pub temporaries: *const AreniteIntArray,
    /// Operator's data; not read.
    pub user_data: *mut c_void,
    /// Operator's options; not read.
    pub builtin_data: *mut c_void,
    /// Custom operator's options; not read.
    pub custom_initial_data: *const c_void,
    /// Their size; not read.
    pub custom_initial_data_size: i32,
    /// Delegate; not read.
    pub delegate: *mut c_void,
    /// Boolean; not read.
    pub might_have_side_effect: u8,
}

/// A node of TfLite's microcontroller build (56 bytes on 64-bit targets, 28 on 32-bit).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AreniteMicroNode {
    /// Tensors it reads; -1 for an optional one that is absent.
    pub inputs: *const AreniteIntArray,
    /// Tensors it writes.
    pub outputs: *const AreniteIntArray,
    /// Tensors it uses inside; null allowed.
    pub intermediates: *const AreniteIntArray,
    /// Operator's data; not read.
    pub user_data: *mut c_void,
    /// Operator's options; not read.
    pub builtin_data: *mut c_void,
    /// Custom operator's options; not read.
    pub custom_initial_data: *const c_void,
    /// Their size; not read.
    pub custom_initial_data_size: i32,
}

/// Asserts a struct's size and offsets, `field: 64-bit offset / 32-bit offset`. The C side of the same table is
/// `c_tests/layout_asserts.c`.
macro_rules! layout {
    ($type:ident: $size64:literal / $size32:literal { $($field:ident: $at64:literal / $at32:literal,)* }) => {
        const _: () = {
            const WIDE: bool = size_of::<usize>() == 8;
            assert!(size_of::<$type>() == if WIDE { $size64 } else { $size32 });
            $(assert!(offset_of!($type, $field) == if WIDE { $at64 } else { $at32 });)*
        };
    };
}

layout!(AreniteIntArray: 4 / 4 { size: 0 / 0, });
layout!(AreniteQuantizationParams: 8 / 8 { scale: 0 / 0, zero_point: 4 / 4, });
layout!(AreniteQuantization: 16 / 8 { kind: 0 / 0, params: 8 / 4, });
layout!(AreniteCustomAllocation: 16 / 8 { data: 0 / 0, bytes: 8 / 4, });
layout!(AreniteTensor: 112 / 64 {
    kind: 0 / 0, data: 8 / 4, dims: 16 / 8, params: 24 / 12, allocation_type: 32 / 20, bytes: 40 / 24,
    allocation: 48 / 28, name: 56 / 32, delegate: 64 / 36, buffer_handle: 72 / 40, data_is_stale: 76 / 44,
    is_variable: 77 / 45, quantization: 80 / 48, sparsity: 96 / 56, dims_signature: 104 / 60,
});
layout!(AreniteMicroTensor: 64 / 40 {
    quantization: 0 / 0, params: 16 / 8, data: 24 / 16, dims: 32 / 20, bytes: 40 / 24, kind: 48 / 28,
    allocation_type: 52 / 32, is_variable: 56 / 36,
});
layout!(AreniteNode: 80 / 40 {
    inputs: 0 / 0, outputs: 8 / 4, intermediates: 16 / 8, temporaries: 24 / 12, user_data: 32 / 16,
    builtin_data: 40 / 20, custom_initial_data: 48 / 24, custom_initial_data_size: 56 / 28, delegate: 64 / 32,
    might_have_side_effect: 72 / 36,
});
layout!(AreniteMicroNode: 56 / 28 {
    inputs: 0 / 0, outputs: 8 / 4, intermediates: 16 / 8, user_data: 24 / 12, builtin_data: 32 / 16,
    custom_initial_data: 40 / 20, custom_initial_data_size: 48 / 24,
});

/// Which of TfLite's two layouts an array from C has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Layout {
    /// `AreniteTensor`, `AreniteNode`.
    Full = ARENITE_LAYOUT_FULL,
    /// `AreniteMicroTensor`, `AreniteMicroNode`.
    Micro = ARENITE_LAYOUT_MICRO,
}

impl TryFrom<u32> for Layout {
    type Error = Error;
    fn try_from(number: u32) -> Result<Self, Error> {
        match number {
            ARENITE_LAYOUT_FULL => Ok(Layout::Full),
            ARENITE_LAYOUT_MICRO => Ok(Layout::Micro),
            _ => Err(Error::argument("the layout is not one of ARENITE_LAYOUT_").needed(number.into())),
        }
    }
}

impl Layout {
    /// Bytes of a tensor in an array.
    #[must_use]
    pub const fn tensor_bytes(self) -> usize {
        match self {
            Layout::Full => size_of::<AreniteTensor>(),
            Layout::Micro => size_of::<AreniteMicroTensor>(),
        }
    }

    /// Bytes of a node in an array.
    #[must_use]
    pub const fn node_bytes(self) -> usize {
        match self {
            Layout::Full => size_of::<AreniteNode>(),
            Layout::Micro => size_of::<AreniteMicroNode>(),
        }
    }
}

/// The elements of an int array: none where the pointer is null, `Argument` where the size is negative.
///
/// # Safety
/// `array` is null, or readable for its size and for that many `i32` after it, which nobody writes during `'a`.
pub(crate) unsafe fn int_array<'a>(array: *const AreniteIntArray) -> Result<&'a [i32], Error> {
    if array.is_null() {
        return Ok(&[]);
    }
    if !array.is_aligned() {
        return Err(Error::alignment("an int array is not aligned for its elements"));
    }
    // The size is the first field. No reference to the struct is made, since it would cover the size but not the elements.
    // SAFETY: not null, aligned, and its size is readable per the contract.
    let size = unsafe { array.cast::<i32>().read() };
    let count = usize::try_from(size).map_err(|_| Error::argument("an int array has a negative size"))?;
    // SAFETY: the elements follow the size per the contract, so the offset stays inside the array or one past it.
    let data = unsafe { array.cast::<i32>().add(1) };
    // SAFETY: `count` elements are readable per the contract, aligned as the size is, and `count` fits `i32`.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// The elements of an int array: `array->size` of them; null when `array` is null.
///
/// Ownership: they are part of `array` and valid as long as it. Threads: any.
///
/// # Safety
/// `array` is null or readable for its size.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn arenite_int_array_data(array: *const AreniteIntArray) -> *const i32 {
    if array.is_null() {
        core::ptr::null()
    } else {
        // `wrapping_add` asks nothing of the pointer; whoever reads the elements vouches for them.
        array.cast::<i32>().wrapping_add(1)
    }
}

/// Checks at start-up that the engine's structs have the layout it is going to name.
///
/// Call it once as `arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(TfLiteTensor), sizeof(TfLiteNode))`: an engine that
/// was compiled with the macros of the other build is caught here and not by corrupted memory later.
///
/// Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` when `layout` is none of `ARENITE_LAYOUT_` or a size is not that
/// layout's. Threads: any.
#[no_mangle]
#[must_use]
pub extern "C" fn arenite_layout_check(layout: u32, sizeof_tensor: usize, sizeof_node: usize) -> arenite_status_t {
    guard::call(|| {
        let layout = Layout::try_from(layout)?;
        if sizeof_tensor != layout.tensor_bytes() {
            return Err(Error::argument("the tensor struct is not of this layout").needed(sizeof_tensor as u64));
        }
        if sizeof_node != layout.node_bytes() {
            return Err(Error::argument("the node struct is not of this layout").needed(sizeof_node as u64));
        }
        Ok(())
    })
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::ffi::status::{ARENITE_ERR_ARGUMENT, ARENITE_OK};

    #[test]
    fn br_50_a_struct_of_the_other_build_is_caught() {
        let (tensor, micro) = (size_of::<AreniteTensor>(), size_of::<AreniteMicroTensor>());
        let (node, micro_node) = (size_of::<AreniteNode>(), size_of::<AreniteMicroNode>());
        assert_eq!(arenite_layout_check(ARENITE_LAYOUT_FULL, tensor, node), ARENITE_OK);
        assert_eq!(arenite_layout_check(ARENITE_LAYOUT_MICRO, micro, micro_node), ARENITE_OK);
        assert_eq!(arenite_layout_check(ARENITE_LAYOUT_FULL, micro, node), ARENITE_ERR_ARGUMENT);
        assert_eq!(arenite_layout_check(ARENITE_LAYOUT_FULL, tensor, micro_node), ARENITE_ERR_ARGUMENT);
        assert_eq!(arenite_layout_check(ARENITE_LAYOUT_MICRO, tensor, node), ARENITE_ERR_ARGUMENT);
        for layout in [0, 3, u32::MAX] {
            assert_eq!(arenite_layout_check(layout, tensor, node), ARENITE_ERR_ARGUMENT);
        }
    }

    #[test]
    fn int_arrays_are_read_behind_their_size() {
        let whole = [3i32, 7, -1, 9];
        let negative = [-1i32];
        let read = |array: *const i32| {
            // SAFETY: null, or an array that holds as many elements as its first number says, or a negative size.
            unsafe { int_array(array.cast()) }
        };
        let data = |array: *const i32| {
            // SAFETY: null or an array with a size.
            unsafe { arenite_int_array_data(array.cast()) }
        };
        assert_eq!(read(whole.as_ptr()).unwrap(), &[7, -1, 9]);
        assert_eq!(data(whole.as_ptr()), whole[1..].as_ptr());
        assert_eq!(read(core::ptr::null()).unwrap(), &[] as &[i32]);
        assert!(data(core::ptr::null()).is_null());
        assert_eq!(read(negative.as_ptr()).unwrap_err().kind, Kind::Argument);
    }
}
