//! The host's graph, read in place.

use core::marker::PhantomData;
use core::mem::size_of;
use core::slice;

use arenite::graph::tables::{Allocation, InPlace, Node, Tables, Tensor};

use crate::abi::{self, GraphInfo, IntArray, IntVector, Registration};

/// Bits of `inplace_operator` that are understood.
const KNOWN_INPLACE: u64 = InPlace::DATA_UNMODIFIED | InPlace::INPUT_0 | InPlace::INPUT_1 | InPlace::INPUT_2;

/// A view of the graph during one call of the host's.
pub struct View<'a> {
    tensors: *mut abi::Tensor,
    tensor_count: usize,
    nodes: Vec<(*const abi::Node, *const Registration)>,
    inputs: &'a [i32],
    outputs: &'a [i32],
    variables: &'a [i32],
    graph: PhantomData<&'a GraphInfo>,
}

unsafe fn vector<'a>(v: *const IntVector) -> &'a [i32] {
    // SAFETY: the caller passes a vector of the host's.
    let v = unsafe { &*v };
    let (begin, end) = (v.begin, v.end);
    if begin.is_null() || begin == end {
        return &[];
    }
    let count = (end as usize - begin as usize) / size_of::<i32>();
    // SAFETY: a vector's elements lie between its two ends.
    unsafe { slice::from_raw_parts(begin, count) }
}

unsafe fn array<'a>(a: *const IntArray) -> &'a [i32] {
    if a.is_null() {
        return &[];
    }
    // SAFETY: an array of the host's.
    let size = unsafe { (*a).size };
    let elements = a.wrapping_add(1).cast();
    // SAFETY: the elements follow the size; a size below 0 is none.
    unsafe { slice::from_raw_parts(elements, usize::try_from(size).unwrap_or(0)) }
}

impl<'a> View<'a> {
    /// Reads the tables' places. They are valid until control returns to the host.
    ///
    /// # Safety
    /// `graph` is a verified graph of the host's that nobody else uses during `'a`.
    pub unsafe fn new(graph: *mut GraphInfo) -> View<'a> {
        // SAFETY: the contract, here and below: the functions are those of a verified table, called on their object.
        let f = unsafe { abi::functions(graph) };
        // SAFETY: as above.
        let count = unsafe { (f.num_execution_nodes)(graph) };
        let mut nodes = Vec::with_capacity(count);
        for i in 0..count {
            // SAFETY: as above, `i` below the count.
            let node = unsafe { (f.node)(graph, i) };
            // SAFETY: as above.
            let registration = unsafe { (f.registration)(graph, i) };
            nodes.push((node, registration));
        }
        // SAFETY: as above.
        let inputs = unsafe { (f.inputs)(graph) };
        // SAFETY: as above.
        let outputs = unsafe { (f.outputs)(graph) };
        // SAFETY: as above.
        let variables = unsafe { (f.variables)(graph) };
        View {
            // SAFETY: as above.
            tensors: unsafe { (f.tensors)(graph) },
            // SAFETY: as above.
            tensor_count: unsafe { (f.num_tensors)(graph) },
            nodes,
            // SAFETY: vectors of the graph, which stay as they are during `'a`.
            inputs: unsafe { vector(inputs) },
            // SAFETY: as above.
            outputs: unsafe { vector(outputs) },
            // SAFETY: as above.
            variables: unsafe { vector(variables) },
            graph: PhantomData,
        }
    }

    /// The host's struct of a tensor.
    pub fn raw(&self, t: usize) -> *mut abi::Tensor {
        assert!(t < self.tensor_count);
        self.tensors.wrapping_add(t)
    }

    /// Where the host believes a tensor's bytes to be.
    pub fn data(&self, t: usize) -> *mut u8 {
        // SAFETY: `raw` is one of the host's tensors.
        unsafe { (*self.raw(t)).data }
    }

    /// Tells the host where a tensor's bytes are.
    pub fn set_data(&self, t: usize, data: *mut u8) {
        // SAFETY: `raw` is one of the host's tensors, and the host leaves this field of arena tensors to its planner.
        unsafe { (*self.raw(t)).data = data };
    }

    /// How the host gets a tensor's memory.
    pub fn allocation(&self, t: usize) -> Allocation {
        // SAFETY: `raw` is one of the host's tensors.
        let number = unsafe { (*self.raw(t)).allocation_type };
        // A kind that newer versions may add gets no memory here, as in the host.
        Allocation::try_from(number).unwrap_or(Allocation::None)
    }

    /// A node with its operator, by its place in the execution plan.
    pub fn operator(&self, i: usize) -> (&abi::Node, &Registration) {
        let (node, registration) = self.nodes[i];
        // SAFETY: both are the host's and stay where they are during `'a`.
        let node = unsafe { &*node };
        // SAFETY: as above.
        (node, unsafe { &*registration })
    }

    /// The numbers of one of the host's arrays.
    pub fn list(&self, array_of_host: *const IntArray) -> &'a [i32] {
        // SAFETY: only called with arrays of this graph's nodes and tensors.
        unsafe { array(array_of_host) }
    }
}

impl Tables for View<'_> {
    fn tensor_count(&self) -> usize {
        self.tensor_count
    }

    fn tensor(&self, index: usize) -> Tensor {
        let raw = self.raw(index);
        // SAFETY: one of the host's tensors.
        let raw = unsafe { &*raw };
        let (bytes, variable) = (Some(raw.bytes as u64), raw.is_variable != 0);
        Tensor { bytes, allocation: self.allocation(index), align: None, variable }
    }

    fn node_count(&self) -> usize {
        self.nodes.len()
    }

    fn node(&self, index: usize) -> Node<'_> {
        let (node, registration) = self.operator(index);
        let flags = registration.inplace_operator;
        Node {
            inputs: self.list(node.inputs),
            outputs: self.list(node.outputs),
            temporaries: self.list(node.temporaries),
            // With a bit that nobody explained no sharing is the safe answer.
            inplace: if flags & !KNOWN_INPLACE == 0 { InPlace(flags) } else { InPlace::NONE },
            align: None,
            ..Node::default()
        }
    }

    fn inputs(&self) -> &[i32] {
        self.inputs
    }

    fn outputs(&self) -> &[i32] {
        self.outputs
    }

    fn variables(&self) -> &[i32] {
        self.variables
    }
}

/// Checks the strides and numbers of a graph whose functions are known: a struct of another size shows here.
///
/// # Safety
/// `graph` has the functions of [`abi::GRAPH_INFO`]; `context` is its context.
pub unsafe fn verify(graph: *mut GraphInfo, context: *const abi::Context) -> Result<(), String> {
    // SAFETY: the contract, here and below.
    let f = unsafe { abi::functions(graph) };
    // SAFETY: as above.
    let count = unsafe { (f.num_tensors)(graph) };
    // SAFETY: as above.
    let tensors = unsafe { (f.tensors)(graph) };
    // SAFETY: as above; a context is larger than the part read here.
    let context = unsafe { &*context };
    if (context.tensors_size, context.tensors) != (count, tensors) {
        return Err("the context and the graph disagree about the tensors".into());
    }
    for t in 0..count {
        // SAFETY: as above, `t` below the count.
        if unsafe { (f.tensor)(graph, t) } != tensors.wrapping_add(t) {
            return Err("a tensor does not have 112 bytes".into());
        }
        // SAFETY: the tensors lie side by side, as just seen.
        let tensor = unsafe { &*tensors.wrapping_add(t) };
        if tensor.allocation_type > Allocation::NonCpu as u32 || tensor.is_variable > 1 {
            return Err(format!("tensor {t} has allocation type {}", tensor.allocation_type));
        }
    }
    // SAFETY: as above.
    let nodes = unsafe { (f.num_execution_nodes)(graph) };
    let mut before: Option<usize> = None;
    for i in 0..nodes {
        // SAFETY: as above, `i` below the count.
        let node = unsafe { (f.node)(graph, i) } as usize;
        // SAFETY: as above.
        let registration = unsafe { (f.registration)(graph, i) } as usize;
        let pair = size_of::<abi::Node>() + size_of::<Registration>();
        if registration.wrapping_sub(node) != size_of::<abi::Node>() {
            return Err("an operator does not stand 80 bytes after its node".into());
        }
        if before.is_some_and(|b| node.abs_diff(b) % pair != 0) {
            return Err("a node with its operator does not have 168 bytes".into());
        }
        before = Some(node);
    }
    // SAFETY: the strides hold.
    let view = unsafe { View::new(graph) };
    arenite::graph::tables::validate(&view).map_err(|e| e.to_string())
}
