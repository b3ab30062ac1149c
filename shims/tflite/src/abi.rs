//! TensorFlow Lite's structs and classes as the compiler laid them out (Itanium C++ ABI, 64 bit).
//!
//! The layouts are those of TFLite 2.14 to 2.20. [`super::host`] checks in the running library that they hold before
//! anything here is used.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{offset_of, size_of};

/// A size followed by that many numbers.
#[repr(C)]
pub struct IntArray {
    /// How many.
    pub size: c_int,
}

/// A tensor.
#[repr(C)]
pub struct Tensor {
    /// Element type.
    pub kind: u32,
    /// Where its bytes are.
    pub data: *mut u8,
    /// Shape.
    pub dims: *const IntArray,
    /// Scale and zero point.
    pub params: [u32; 2],
    /// Where its memory comes from.
    pub allocation_type: u32,
    /// Size.
    pub bytes: usize,
    /// The mapped file.
    pub allocation: *const c_void,
    /// Name, may be null.
    pub name: *const c_char,
    /// Delegate.
    pub delegate: *mut c_void,
    /// Handle of the delegate's buffer.
    pub buffer_handle: c_int,
    /// Boolean.
    pub data_is_stale: u8,
    /// Boolean: it keeps its value between runs.
    pub is_variable: u8,
    /// Kind and parameters.
    pub quantization: [usize; 2],
    /// Sparsity.
    pub sparsity: *mut c_void,
    /// Shape with -1 for what is unknown.
    pub dims_signature: *const IntArray,
}

/// A node; in memory its [`Registration`] follows.
#[repr(C)]
pub struct Node {
    /// Tensors read.
    pub inputs: *const IntArray,
    /// Tensors written.
    pub outputs: *const IntArray,
    /// Not arena tensors.
    pub intermediates: *const IntArray,
    /// Tensors alive during the node.
    pub temporaries: *const IntArray,
    /// The kernel's own.
    pub user_data: *mut c_void,
    /// Options of a built-in operator.
    pub builtin_data: *mut c_void,
    /// Options of a custom operator.
    pub custom_initial_data: *const c_void,
    /// Their size.
    pub custom_initial_data_size: c_int,
    /// Delegate.
    pub delegate: *mut c_void,
    /// Boolean.
    pub might_have_side_effect: u8,
}

/// An operator.
#[repr(C)]
pub struct Registration {
    functions: [usize; 5],
    /// Number of the built-in operator.
    pub builtin_code: i32,
    /// Name of a custom operator, else null.
    pub custom_name: *const c_char,
    version: c_int,
    external: [usize; 2],
    /// Which inputs the first output may take over.
    pub inplace_operator: u64,
}

/// The subgraph's context, up to what is used here.
#[repr(C)]
pub struct Context {
    /// How many tensors.
    pub tensors_size: usize,
    execution_plan: usize,
    /// The tensors.
    pub tensors: *mut Tensor,
    own: *mut c_void,
    resize_tensor: usize,
    /// Takes a printf format and its arguments.
    pub report_error: Option<unsafe extern "C" fn(*mut Context, *const c_char, ...)>,
    functions: [usize; 3],
    threads: usize,
    /// Gives what all subgraphs of an interpreter share, by kind.
    pub external_context: Option<unsafe extern "C" fn(*mut Context, c_int) -> *mut c_void>,
}

const _: () = {
    assert!(size_of::<Tensor>() == 112 && offset_of!(Tensor, bytes) == 40 && offset_of!(Tensor, name) == 56);
    assert!(offset_of!(Tensor, data) == 8 && offset_of!(Tensor, dims) == 16);
    assert!(offset_of!(Tensor, allocation_type) == 32 && offset_of!(Tensor, is_variable) == 77);
    assert!(size_of::<Node>() == 80 && offset_of!(Node, temporaries) == 24 && offset_of!(Node, builtin_data) == 40);
    assert!(size_of::<Registration>() == 88 && offset_of!(Registration, builtin_code) == 40);
    assert!(offset_of!(Registration, custom_name) == 48 && offset_of!(Registration, inplace_operator) == 80);
    assert!(offset_of!(Context, tensors) == 16 && offset_of!(Context, report_error) == 40);
    assert!(offset_of!(Context, external_context) == 80);
};

/// `std::vector<int>`.
#[repr(C)]
pub struct IntVector {
    /// The first element.
    pub begin: *const c_int,
    /// One past the last.
    pub end: *const c_int,
    capacity: *const c_int,
}

/// The graph as the host's planner sees it: an object with these functions, two destructors first.
#[repr(C)]
pub struct GraphInfo {
    /// Its functions.
    pub vtable: *const GraphInfoVtable,
}

/// The functions of `tflite::GraphInfo`.
#[repr(C)]
pub struct GraphInfoVtable {
    destroy: unsafe extern "C" fn(*mut GraphInfo),
    /// Destroys and frees.
    pub delete: unsafe extern "C" fn(*mut GraphInfo),
    /// How many tensors.
    pub num_tensors: unsafe extern "C" fn(*mut GraphInfo) -> usize,
    /// One tensor.
    pub tensor: unsafe extern "C" fn(*mut GraphInfo, usize) -> *mut Tensor,
    /// All tensors.
    pub tensors: unsafe extern "C" fn(*mut GraphInfo) -> *mut Tensor,
    /// Nodes in the execution plan.
    pub num_execution_nodes: unsafe extern "C" fn(*mut GraphInfo) -> usize,
    num_total_nodes: unsafe extern "C" fn(*mut GraphInfo) -> usize,
    /// A node by its place in the execution plan.
    pub node: unsafe extern "C" fn(*mut GraphInfo, usize) -> *const Node,
    /// Its operator.
    pub registration: unsafe extern "C" fn(*mut GraphInfo, usize) -> *const Registration,
    node_index: unsafe extern "C" fn(*mut GraphInfo, usize) -> usize,
    /// The graph's inputs.
    pub inputs: unsafe extern "C" fn(*mut GraphInfo) -> *const IntVector,
    /// The graph's outputs.
    pub outputs: unsafe extern "C" fn(*mut GraphInfo) -> *const IntVector,
    /// The graph's variables.
    pub variables: unsafe extern "C" fn(*mut GraphInfo) -> *const IntVector,
}

/// The functions of a graph.
///
/// # Safety
/// `graph` is a live object of the host's.
pub unsafe fn functions<'a>(graph: *const GraphInfo) -> &'a GraphInfoVtable {
    // SAFETY: the contract.
    let table = unsafe { (*graph).vtable };
    // SAFETY: tables are constant data of a library that stays loaded.
    unsafe { &*table }
}

/// The functions of `tflite::GraphInfo` as the wheel's only implementation names them, in order.
pub const GRAPH_INFO: [&str; 13] = [
    "_ZN6tflite15InterpreterInfoD1Ev",
    "_ZN6tflite15InterpreterInfoD0Ev",
    "_ZNK6tflite15InterpreterInfo11num_tensorsEv",
    "_ZN6tflite15InterpreterInfo6tensorEm",
    "_ZN6tflite15InterpreterInfo7tensorsEv",
    "_ZNK6tflite15InterpreterInfo19num_execution_nodesEv",
    "_ZNK6tflite15InterpreterInfo15num_total_nodesEv",
    "_ZNK6tflite15InterpreterInfo4nodeEm",
    "_ZNK6tflite15InterpreterInfo12registrationEm",
    "_ZNK6tflite15InterpreterInfo10node_indexEm",
    "_ZNK6tflite15InterpreterInfo6inputsEv",
    "_ZNK6tflite15InterpreterInfo7outputsEv",
    "_ZNK6tflite15InterpreterInfo9variablesEv",
];

/// The functions of `tflite::MemoryPlanner`, in order, as the host's planner names them.
pub const PLANNER: [&str; 11] = [
    "_ZN6tflite12ArenaPlannerD1Ev",
    "_ZN6tflite12ArenaPlannerD0Ev",
    "_ZN6tflite12ArenaPlanner15PlanAllocationsEv",
    "_ZN6tflite12ArenaPlanner18ExecuteAllocationsEii",
    "_ZN6tflite12ArenaPlanner16ResetAllocationsEv",
    "_ZN6tflite12ArenaPlanner21ResetAllocationsAfterEi",
    "_ZN6tflite12ArenaPlanner26ReleaseNonPersistentMemoryEv",
    "_ZN6tflite12ArenaPlanner26AcquireNonPersistentMemoryEv",
    "_ZN6tflite12ArenaPlanner22HasNonPersistentMemoryEv",
    "_ZNK6tflite12ArenaPlanner13DumpDebugInfoERKSt6vectorIiSaIiEE",
    "_ZNK6tflite12ArenaPlanner12GetAllocInfoEPmS1_",
];

/// `TfLiteStatus`.
pub const OK: c_int = 0;
/// `TfLiteStatus`.
pub const ERROR: c_int = 1;

/// The functions of `tflite::MemoryPlanner` on an object whose first word points to such a table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlannerVtable {
    /// Destroys, leaves the memory.
    pub destroy: unsafe extern "C" fn(*mut Planner),
    /// Destroys and frees.
    pub delete: unsafe extern "C" fn(*mut Planner),
    /// Finds lifetimes.
    pub plan: unsafe extern "C" fn(*mut Planner) -> c_int,
    /// Places the tensors of a range of nodes.
    pub execute: unsafe extern "C" fn(*mut Planner, c_int, c_int) -> c_int,
    /// Forgets all places.
    pub reset: unsafe extern "C" fn(*mut Planner) -> c_int,
    /// Forgets the places of what begins after a node.
    pub reset_after: unsafe extern "C" fn(*mut Planner, c_int) -> c_int,
    /// Gives the main arena's memory up.
    pub release: unsafe extern "C" fn(*mut Planner) -> c_int,
    /// Takes it back.
    pub acquire: unsafe extern "C" fn(*mut Planner) -> c_int,
    /// Whether it is there.
    pub has_memory: unsafe extern "C" fn(*mut Planner) -> bool,
    /// Prints what is placed.
    pub dump: unsafe extern "C" fn(*mut Planner, *const IntVector),
    /// Bytes of both arenas.
    pub info: unsafe extern "C" fn(*mut Planner, *mut usize, *mut usize),
}

/// What stands before and in a table of virtual functions.
#[repr(C)]
pub struct PlannerTable {
    /// Distance to the whole object.
    pub offset_to_top: isize,
    /// For `dynamic_cast` and `typeid`.
    pub typeinfo: *const c_void,
    /// Where an object's first word points to.
    pub functions: PlannerVtable,
}

// SAFETY: a table is never written after it is made, and the typeinfo it points to is constant data of the host.
unsafe impl Send for PlannerTable {}
// SAFETY: as above.
unsafe impl Sync for PlannerTable {}

/// The host's `ArenaPlanner` object. Its memory is the host's and larger than this.
#[repr(C)]
pub struct Planner {
    /// The functions.
    pub vtable: *const PlannerVtable,
    /// The host's first field, or our state.
    pub state: *mut c_void,
}

/// The constructor that is replaced.
pub type Constructor = unsafe extern "C" fn(*mut Planner, *mut Context, *mut *mut GraphInfo, bool, c_int, c_int);

/// The name of that constructor for complete objects.
pub const CONSTRUCTOR: &str =
    "_ZN6tflite12ArenaPlannerC1EP13TfLiteContextSt10unique_ptrINS_9GraphInfoESt14default_deleteIS4_EEbii";

/// `tflite::Subgraph::GetExternalContext(TfLiteContext *, TfLiteExternalContextType)`.
pub const EXTERNAL_CONTEXT: &str =
    "_ZN6tflite8Subgraph18GetExternalContextEP13TfLiteContext25TfLiteExternalContextType";
/// The kind of external context that every interpreter makes for itself.
pub const CPU_BACKEND: c_int = 3;

/// `operator delete(void *)`.
pub type Delete = unsafe extern "C" fn(*mut c_void);
