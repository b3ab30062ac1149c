//! Operators: names of the built-in codes, which of them run subgraphs, and which must not change places.

/// The built-in operators by code.
#[rustfmt::skip] // one name a line would be 209 lines
const BUILTIN: [&str; 209] = [
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU",
    "RELU_N1_TO_1", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH",
    "CONCAT_EMBEDDINGS", "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB",
    "DIV", "SQUEEZE", "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2",
    "SPLIT", "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM", "ARG_MAX",
    "MINIMUM", "LESS", "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN",
    "TRANSPOSE_CONV", "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT",
    "SHAPE", "POW", "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT",
    "LOGICAL_AND", "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE", "FILL",
    "FLOOR_MOD", "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS",
    "SPLIT_V", "UNIQUE", "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU",
    "REVERSE_SEQUENCE", "MATRIX_DIAG", "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE",
    "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM",
    "BATCH_MATMUL", "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D",
    "IMAG", "REAL", "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "REDUCE_ALL",
    "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1",
    "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN",
    "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD", "STABLEHLO_DIVIDE",
    "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP", "STABLEHLO_CONCATENATE",
    "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL",
    "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL",
    "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR", "STABLEHLO_POWER",
    "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT", "STABLEHLO_SUBTRACT", "STABLEHLO_TANH",
    "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT", "STABLEHLO_DYNAMIC_SLICE",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA", "STABLEHLO_DOT_GENERAL",
    "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE",
    "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE", "STABLEHLO_SHIFT_LEFT",
    "STABLEHLO_CBRT",
];

/// The code of custom operators.
pub(crate) const CUSTOM: i32 = 32;

/// The name of built-in `code`, if this version knows it.
pub fn builtin_name(code: i32) -> Option<&'static str> {
    usize::try_from(code).ok().and_then(|c| BUILTIN.get(c).copied())
}

/// The code of the built-in operator `name`.
pub fn builtin_code(name: &str) -> Option<i32> {
    if name.starts_with("CUSTOM:") {
        return Some(CUSTOM);
    }
    if let Some(number) = name.strip_prefix("BUILTIN_") {
        return number.parse().ok().filter(|&c| c >= 0);
    }
    BUILTIN.iter().position(|&n| n == name).map(|c| c as i32)
}

/// How a node runs the subgraphs it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CallKind {
    /// It names none.
    #[default]
    None,
    /// One of them.
    Branch,
    /// All of them, over and over.
    Loop,
    /// All of them, one after the other.
    Sequence,
}

impl CallKind {
    /// What operator `op` does with subgraphs. An unknown operator is taken for a loop: of the three, that asks most.
    pub fn of_op(op: &str) -> CallKind {
        match op {
            "IF" | "If" => CallKind::Branch,
            "CALL" | "CALL_ONCE" | "STABLEHLO_COMPOSITE" => CallKind::Sequence,
            _ => CallKind::Loop, // WHILE, STABLEHLO_WHILE; ONNX Loop and Scan
        }
    }
}

/// What a node does besides writing its outputs. Nodes may change places unless one writes what the other touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// It reads state that outlives the node.
    Reads,
    /// It changes such state, or may: nobody knows what a custom operator does.
    Writes,
}

impl Effect {
    /// The effect operator `op` has by itself, its subgraphs and variable inputs aside.
    pub fn of_op(op: &str) -> Effect {
        match op {
            "READ_VARIABLE" | "HASHTABLE_FIND" | "HASHTABLE_SIZE" => Effect::Reads,
            // Random operators step a generator: another order gives other numbers.
            "ASSIGN_VARIABLE"
            | "HASHTABLE_IMPORT"
            | "CALL_ONCE"
            | "DELEGATE"
            | "RANDOM_STANDARD_NORMAL"
            | "RANDOM_UNIFORM"
            | "MULTINOMIAL"
            | "STABLEHLO_RNG_BIT_GENERATOR"
            | "STABLEHLO_CUSTOM_CALL" => Effect::Writes,
            _ if op.starts_with("CUSTOM:") || op.starts_with("BUILTIN_") => Effect::Writes,
            _ => Effect::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_agree() {
        for code in 0..209 {
            assert_eq!(builtin_code(builtin_name(code).unwrap()), Some(code));
        }
        assert_eq!((builtin_name(-1), builtin_name(209)), (None, None));
        assert_eq!((builtin_code("BUILTIN_999"), builtin_code("CUSTOM:Foo")), (Some(999), Some(CUSTOM)));
        assert_eq!((builtin_name(118), builtin_name(200)), (Some("IF"), Some("STABLEHLO_WHILE")));
    }
}
