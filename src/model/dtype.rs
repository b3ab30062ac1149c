//! Element types and their sizes.

use crate::error::Error;
use crate::units::{shape_bytes, Bytes};

macro_rules! types {
    ($($variant:ident $number:literal $name:literal $bits:expr, $doc:literal;)*) => {
        /// The element type of a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub enum DType {
            $(#[doc = $doc] $variant,)*
            /// A type this version does not know.
            #[default]
            Unknown,
        }

        impl DType {
            /// The type with TFLite's `number`; `Unknown` for any other.
            pub fn from_tflite(number: i8) -> DType {
                match number {
                    $($number => DType::$variant,)*
                    _ => DType::Unknown,
                }
            }

            /// The type called `name` in a graph table.
            pub fn from_name(name: &str) -> Option<DType> {
                match name {
                    $($name => Some(DType::$variant),)*
                    "unknown" => Some(DType::Unknown),
                    _ => None,
                }
            }

            /// Its name in a graph table.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DType::$variant => $name,)*
                    DType::Unknown => "unknown",
                }
            }

            /// Bits per element; `None` where the type has no size of its own.
            pub const fn bits(self) -> Option<u64> {
                match self {
                    $(DType::$variant => $bits,)*
                    DType::Unknown => None,
                }
            }
        }
    };
}

types! {
    Float32 0 "float32" Some(32), "IEEE single precision.";
    Float16 1 "float16" Some(16), "IEEE half precision.";
    Int32 2 "int32" Some(32), "Signed, 32 bits.";
    UInt8 3 "uint8" Some(8), "Unsigned, 8 bits.";
    Int64 4 "int64" Some(64), "Signed, 64 bits.";
    String 5 "string" None, "Strings: sized at run time.";
    Bool 6 "bool" Some(8), "One byte, 0 or 1.";
    Int16 7 "int16" Some(16), "Signed, 16 bits.";
    Complex64 8 "complex64" Some(64), "Two single precision numbers.";
    Int8 9 "int8" Some(8), "Signed, 8 bits.";
    Float64 10 "float64" Some(64), "IEEE double precision.";
    Complex128 11 "complex128" Some(128), "Two double precision numbers.";
    UInt64 12 "uint64" Some(64), "Unsigned, 64 bits.";
    Resource 13 "resource" None, "A handle to state of the runtime.";
    Variant 14 "variant" None, "A C++ object.";
    UInt32 15 "uint32" Some(32), "Unsigned, 32 bits.";
    UInt16 16 "uint16" Some(16), "Unsigned, 16 bits.";
    Int4 17 "int4" Some(4), "Signed, 4 bits, two in a byte.";
    BFloat16 18 "bfloat16" Some(16), "The upper half of a single precision number.";
    Int2 19 "int2" Some(2), "Signed, 2 bits, four in a byte.";
    UInt4 20 "uint4" Some(4), "Unsigned, 4 bits, two in a byte.";
}

impl DType {
    /// The bytes of a dense tensor of this type, `None` where the type or an unknown dimension leaves them open.
    /// `Overflow` where the product does not fit 64 bits.
    pub fn tensor_bytes(self, dims: &[i64]) -> Result<Option<Bytes>, Error> {
        match self.bits() {
            Some(bits) if dims.iter().all(|&d| d >= 0) => shape_bytes(dims, bits).map(Some),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_sizes() {
        for number in 0..=20 {
            let t = DType::from_tflite(number);
            assert_ne!(t, DType::Unknown);
            assert_eq!(DType::from_name(t.name()), Some(t));
        }
        assert_eq!((DType::from_tflite(-1), DType::from_tflite(21)), (DType::Unknown, DType::Unknown));
        assert_eq!(DType::Int4.tensor_bytes(&[3, 3]), Ok(Some(5)));
        assert_eq!(DType::String.tensor_bytes(&[1]), Ok(None));
        assert_eq!(DType::Float32.tensor_bytes(&[-1, 2]), Ok(None));
        assert_eq!(DType::Float32.tensor_bytes(&[65536, 65536]), Ok(Some(17_179_869_184)), "BR-21");
        assert!(DType::Float32.tensor_bytes(&[i64::MAX, i64::MAX, 4]).is_err(), "BR-21");
    }
}
