//! The tables of a `.tflite` file by slot: verified first, read after. The only file of the model readers with `unsafe`.
//!
//! A table type lists its fields once; the verifier and the accessors are both made from that list, so a field is
//! always read as the type it was verified as. A value of a table type exists only inside a buffer that was verified
//! from [`root`] down or, for an operator's options, by [`Operator::options`].
#![allow(unsafe_code)]

use flatbuffers::{
    Follow, ForwardsUOffset, InvalidFlatbuffer, Table, VOffsetT, Vector, Verifiable, Verifier, VerifierOptions,
};

use super::error::{Position, ReadError};

/// A vector of tables.
pub(super) type Tables<'a, T> = ForwardsUOffset<Vector<'a, ForwardsUOffset<T>>>;
/// A vector of numbers or bytes. Strings are read as bytes: writers in C++ do not promise UTF-8.
pub(super) type List<'a, T> = ForwardsUOffset<Vector<'a, T>>;

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($field:ident $slot:literal $type:ty;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name<'a>(Table<'a>);

        impl<'a> Follow<'a> for $name<'a> {
            type Inner = $name<'a>;
            unsafe fn follow(buf: &'a [u8], loc: usize) -> $name<'a> {
                // SAFETY: `follow`'s own contract says that a verified table is at `loc`.
                $name(unsafe { Table::new(buf, loc) })
            }
        }

        impl<'a> Verifiable for $name<'a> {
            fn run_verifier(v: &mut Verifier, pos: usize) -> Result<(), InvalidFlatbuffer> {
                v.visit_table(pos)?$(.visit_field::<$type>(stringify!($field), $slot, false)?)*.finish();
                Ok(())
            }
        }

        #[allow(dead_code)] // a table without fields in use still has its position
        impl<'a> $name<'a> {
            /// The byte at which the table begins.
            pub(super) fn position(self) -> Position {
                Position::Byte(self.0.loc() as u64)
            }

            /// The byte at which the field of `slot` is, to be read or written over; `None` where it is absent.
            pub(super) fn place(self, slot: VOffsetT) -> Option<usize> {
                match self.0.vtable().get(slot) {
                    0 => None,
                    at => Some(self.0.loc() + usize::from(at)),
                }
            }

            /// How many fields its field list has, present or not.
            pub(super) fn slots(self) -> usize {
                self.0.vtable().num_fields()
            }

            $(pub(super) fn $field(self) -> Option<<$type as Follow<'a>>::Inner> {
                // SAFETY: `run_verifier` above checked this slot as this very type before `self` could be made.
                unsafe { self.0.get::<$type>($slot, None) }
            })*
        }
    };
}

// Slots that are never read are not listed, and the verifier does not follow them.
table! {
    /// The root.
    Model {
        operator_codes 6 Tables<'a, OperatorCode<'a>>;
        subgraphs 8 Tables<'a, SubGraph<'a>>;
        buffers 12 Tables<'a, Buffer<'a>>;
        metadata 16 Tables<'a, Metadata<'a>>;
        signatures 18 Tables<'a, SignatureDef<'a>>;
    }
}
table! {
    /// An operator kind; its code is the larger of the two numbers.
    OperatorCode {
        deprecated_code 4 i8;
        custom_code 6 List<'a, u8>;
        builtin_code 10 i32;
    }
}
table! {
    /// A graph.
    SubGraph {
        tensors 4 Tables<'a, Tensor<'a>>;
        inputs 6 List<'a, i32>;
        outputs 8 List<'a, i32>;
        operators 10 Tables<'a, Operator<'a>>;
        name 12 List<'a, u8>;
    }
}
table! {
    /// A tensor.
    Tensor {
        shape 4 List<'a, i32>;
        dtype 6 i8;
        buffer 8 u32;
        name 10 List<'a, u8>;
        is_variable 14 bool;
        sparsity 16 ForwardsUOffset<Sparsity<'a>>;
        shape_signature 18 List<'a, i32>;
    }
}
table! {
    /// Storage of a sparse tensor: only its presence matters here.
    Sparsity {}
}
table! {
    /// Data, in the FlatBuffer or at an offset of the file.
    Buffer {
        data 4 List<'a, u8>;
        offset 6 u64;
        size 8 u64;
    }
}
table! {
    /// A node.
    Operator {
        opcode 4 u32;
        inputs 6 List<'a, i32>;
        outputs 8 List<'a, i32>;
        options_type 10 u8;
        mutating 18 List<'a, bool>;
        intermediates 20 List<'a, i32>;
        large_options 22 u64;
        options_2_type 26 u8;
    }
}
table! {
    /// A named buffer.
    Metadata {
        name 4 List<'a, u8>;
        buffer 6 u32;
    }
}
table! {
    /// An entry point.
    SignatureDef {
        inputs 4 Tables<'a, TensorMap<'a>>;
        outputs 6 Tables<'a, TensorMap<'a>>;
        key 8 List<'a, u8>;
        subgraph 12 u32;
    }
}
table! {
    /// A name for a tensor.
    TensorMap {
        name 4 List<'a, u8>;
        tensor 6 u32;
    }
}
table! {
    /// Options that name up to two subgraphs: IF, WHILE, CALL, CALL_ONCE, STABLEHLO_WHILE.
    Subgraphs {
        first 4 i32;
        second 6 i32;
    }
}
table! {
    /// Options of STABLEHLO_COMPOSITE.
    Composite {
        decomposition 6 i32;
    }
}
table! {
    /// Options of VAR_HANDLE.
    VarHandle {
        container 4 List<'a, u8>;
        shared_name 6 List<'a, u8>;
    }
}

impl<'a> Operator<'a> {
    /// The options union at `slot` (12, or 28 for the second), verified as `T` here because the operator's kind, and
    /// with it `T`, is known only now. `None` where it is absent.
    pub(super) fn options<T>(self, slot: VOffsetT) -> Result<Option<T::Inner>, ReadError>
    where
        T: Follow<'a> + Verifiable + 'a,
    {
        match self.0.vtable().get(slot) {
            0 => Ok(None),
            at => follow::<ForwardsUOffset<T>>(self.0.buf(), self.0.loc() + usize::from(at)).map(Some),
        }
    }
}

/// Verifies the whole file and returns its root.
pub(super) fn root(file: &[u8]) -> Result<Model<'_>, ReadError> {
    follow::<ForwardsUOffset<Model<'_>>>(file, 0)
}

/// Verifies the `T` at `at` and everything below it, then reads it.
fn follow<'a, T: Follow<'a> + Verifiable>(buf: &'a [u8], at: usize) -> Result<T::Inner, ReadError> {
    // A file may name the same bytes many times over. No honest writer does so at length, and these limits keep all
    // that is copied out within a small multiple of the file: a table takes at least 8 bytes of it (itself and the
    // reference), and the verifier counts each visit of shared vtables and field positions.
    let options = VerifierOptions {
        max_depth: 16,
        max_tables: buf.len() / 8 + 16,
        max_apparent_size: buf.len().saturating_mul(6).saturating_add(4096),
        ignore_missing_null_terminator: true,
    };
    T::run_verifier(&mut Verifier::new(&options, buf), at).map_err(|e| refused(&e, buf.len()))?;
    // SAFETY: the line above verified a `T` at `at` of this very buffer.
    Ok(unsafe { T::follow(buf, at) })
}

/// The verifier's finding as a position in the file of `length` bytes and a path of field names.
fn refused(error: &InvalidFlatbuffer, length: usize) -> ReadError {
    use flatbuffers::ErrorTraceDetail as Detail;
    let (at, what, trace) = match error {
        InvalidFlatbuffer::Unaligned { position, error_trace, .. } => {
            (*position, "a value is not aligned", error_trace)
        }
        InvalidFlatbuffer::RangeOutOfBounds { range, error_trace } => {
            (range.start, "a value reaches past the end of the file", error_trace)
        }
        InvalidFlatbuffer::SignedOffsetOutOfBounds { position, error_trace, .. } => {
            (*position, "a table's offset to its field list leaves the file", error_trace)
        }
        InvalidFlatbuffer::TooManyTables | InvalidFlatbuffer::ApparentSizeTooLarge => {
            return ReadError::new(Position::Whole, "the file names the same bytes over and over");
        }
        // Strings, unions and required fields are not verified as such, and the tables here do not nest that deep.
        _ => return ReadError::new(Position::Whole, "not a FlatBuffer"),
    };
    let trace = trace.as_ref();
    // Where an offset points out of the file, the offset's own place is the one to look at.
    let innermost = trace.first().map_or(length, |step| match step {
        Detail::VectorElement { position, .. }
        | Detail::TableField { position, .. }
        | Detail::UnionVariant { position, .. } => *position,
    });
    let at = Position::Byte(if at < length { at } else { innermost.min(length) } as u64);
    let mut path = String::new();
    for step in trace.iter().rev() {
        match step {
            Detail::TableField { field_name, .. } | Detail::UnionVariant { variant: field_name, .. } => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(field_name);
            }
            Detail::VectorElement { index, .. } => path.push_str(&format!("[{index}]")),
        }
    }
    let place = if path.is_empty() { String::new() } else { format!(" (in {path})") };
    ReadError::new(at, format!("{what}{place}"))
}
