//! An engine's own TfLite arrays, read in place.

use core::ffi::c_void;

use super::abi::{self, Versioned};
use super::lite::{
    int_array, AreniteIntArray, AreniteMicroNode, AreniteMicroTensor, AreniteNode, AreniteTensor, Layout,
};
use crate::error::{Error, Kind};
use crate::graph::tables::{Allocation, Call, InPlace, Node, Tables, Tensor, View};
use crate::units::Align;

/// An engine's tensors and nodes as they lie in its memory. Nothing of it is changed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct arenite_lite_desc_t {
    /// `sizeof(arenite_lite_desc_t)`.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// `ARENITE_LAYOUT_FULL` or `ARENITE_LAYOUT_MICRO`: what `tensors` and `nodes` point to.
    pub layout: u32,
    /// 0.
    pub reserved: u32,
    /// `tensor_count` structs of the layout, one after the other.
    pub tensors: *const c_void,
    /// How many.
    pub tensor_count: u64,
    /// `node_count` node structs of the layout.
    pub nodes: *const c_void,
    /// How many.
    pub node_count: u64,
    /// Bytes from one node to the next, for engines that keep something between them; 0 when they lie side by side.
    pub node_stride: u64,
    /// Indices into `nodes` in execution order; null for all nodes as they lie.
    pub execution_plan: *const i32,
    /// How many; 0 when `execution_plan` is null.
    pub execution_plan_count: u64,
    /// The graph's inputs: indices into `tensors`, -1 for none.
    pub inputs: *const i32,
    /// How many.
    pub input_count: u64,
    /// The graph's outputs.
    pub outputs: *const i32,
    /// How many.
    pub output_count: u64,
    /// Tensors that keep their contents between runs, besides those with `is_variable`.
    pub variables: *const i32,
    /// How many.
    pub variable_count: u64,
    /// Per node of `nodes`: which inputs its first output may take over, as in TfLite's `inplace_operator`
    /// (`ARENITE_INPLACE_`); null for none.
    pub inplace: *const u64,
    /// Per node of `nodes`: the alignment its kernel asks of every tensor it touches, 0 for none; null for none.
    pub node_alignments: *const u32,
}

/// The node hands its input's bytes on unchanged (a reshape).
pub const ARENITE_INPLACE_DATA_UNMODIFIED: u64 = 1;
/// The first output may take over input 0.
pub const ARENITE_INPLACE_INPUT0: u64 = 4;
/// The first output may take over input 1.
pub const ARENITE_INPLACE_INPUT1: u64 = 8;
/// The first output may take over input 2.
pub const ARENITE_INPLACE_INPUT2: u64 = 16;
/// The node's first output may take over any input whose last use the node is, inputs and outputs of the graph included
/// where they need not survive: its kernel reads each element before it writes there. Not one of TfLite's bits.
pub const ARENITE_INPLACE_ANY_INPUT: u64 = 1 << 32;

// SAFETY: `repr(C)`, begins with the two numbers, and every field is an integer or a raw pointer.
unsafe impl Versioned for arenite_lite_desc_t {
    const DEFAULT: Self = Self {
        struct_size: size_of::<Self>() as u32,
        flags: 0,
        layout: 0,
        reserved: 0,
        tensors: core::ptr::null(),
        tensor_count: 0,
        nodes: core::ptr::null(),
        node_count: 0,
        node_stride: 0,
        execution_plan: core::ptr::null(),
        execution_plan_count: 0,
        inputs: core::ptr::null(),
        input_count: 0,
        outputs: core::ptr::null(),
        output_count: 0,
        variables: core::ptr::null(),
        variable_count: 0,
        inplace: core::ptr::null(),
        node_alignments: core::ptr::null(),
    };
    const OLDER: &'static [usize] = &[];
    const FLAGS: u32 = 0;
}

/// The arrays of a description, checked once: every pointer, count and int array size.
pub(crate) struct LiteTables<'a> {
    layout: Layout,
    tensors: *const u8,
    tensor_count: usize,
    nodes: *const u8,
    stride: usize,
    plan: Option<&'a [i32]>,
    node_count: usize,
    inputs: &'a [i32],
    outputs: &'a [i32],
    variables: &'a [i32],
    inplace: &'a [u64],
    aligns: &'a [u32],
}

/// The lists of one node.
struct Lists<'a> {
    inputs: &'a [i32],
    outputs: &'a [i32],
    temporaries: &'a [i32],
}

fn extent(
    pointer: *const c_void,
    count: u64,
    stride: usize,
    align: usize,
    reason: &'static str,
) -> Result<usize, Error> {
    let count = usize::try_from(count).map_err(|_| Error::overflow("a count does not fit the address space"))?;
    if count > 0 && pointer.is_null() {
        return Err(Error::new(Kind::Null, reason));
    }
    if pointer as usize & (align - 1) != 0 {
        return Err(Error::alignment("an array is not aligned for its elements"));
    }
    if count.checked_mul(stride).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Error::overflow("an array does not fit the address space").needed(count as u64));
    }
    Ok(count)
}

impl<'a> LiteTables<'a> {
    /// Reads a description.
    ///
    /// # Safety
    /// Every array of the description is null or readable for its count, every int array a node points to is null or
    /// readable for its size, and nobody writes to any of them during `'a`.
    pub(crate) unsafe fn new(desc: &arenite_lite_desc_t) -> Result<LiteTables<'a>, Error> {
        super::options::zero(desc.reserved)?;
        let layout = Layout::try_from(desc.layout)?;
        let (tensor, node) = (layout.tensor_bytes(), layout.node_bytes());
        let stride = match usize::try_from(desc.node_stride) {
            Ok(0) => node,
            Ok(s) if s >= node && s % align_of::<AreniteNode>() == 0 => s,
            _ => {
                return Err(Error::argument("node_stride is less than a node or misaligns it").needed(desc.node_stride));
            }
        };
        let align = align_of::<AreniteTensor>();
        let tensor_count = extent(desc.tensors, desc.tensor_count, tensor, align, "tensors is null")?;
        let all_nodes = extent(desc.nodes, desc.node_count, stride, align, "nodes is null")?;
        // SAFETY: the contract of this function.
        let plan = unsafe { abi::array(desc.execution_plan, desc.execution_plan_count, "execution_plan is null") }?;
        let plan = (!desc.execution_plan.is_null()).then_some(plan);
        let node_count = plan.map_or(all_nodes, <[i32]>::len);
        // SAFETY: the contract of this function.
        let inputs = unsafe { abi::array(desc.inputs, desc.input_count, "inputs is null") }?;
        // SAFETY: the contract of this function.
        let outputs = unsafe { abi::array(desc.outputs, desc.output_count, "outputs is null") }?;
        // SAFETY: the contract of this function.
        let variables = unsafe { abi::array(desc.variables, desc.variable_count, "variables is null") }?;
        let optional = |present: bool| if present { desc.node_count } else { 0 };
        // SAFETY: the contract of this function.
        let inplace = unsafe { abi::array(desc.inplace, optional(!desc.inplace.is_null()), "") }?;
        // SAFETY: the contract of this function.
        let aligns = unsafe { abi::array(desc.node_alignments, optional(!desc.node_alignments.is_null()), "") }?;
        let tables = LiteTables {
            layout,
            tensors: desc.tensors.cast(),
            tensor_count,
            nodes: desc.nodes.cast(),
            stride,
            plan,
            node_count,
            inputs,
            outputs,
            variables,
            inplace,
            aligns,
        };
        tables.check(all_nodes)?;
        Ok(tables)
    }

    fn check(&self, all_nodes: usize) -> Result<(), Error> {
        for (i, &n) in self.plan.unwrap_or(&[]).iter().enumerate() {
            if n < 0 || n as usize >= all_nodes {
                return Err(Error::argument("the execution plan names no node").node(i).needed(n as i64 as u64));
            }
        }
        for i in 0..self.node_count {
            self.lists(i).map_err(|e| e.node(i))?;
            if let Some(&a) = self.aligns.get(self.place(i)).filter(|&&a| a != 0) {
                Align::new(a.into()).map_err(|e| e.node(i))?;
            }
        }
        for t in 0..self.tensor_count {
            Allocation::try_from(self.fields(t).0).map_err(|e| e.tensor(t))?;
        }
        Ok(())
    }

    fn place(&self, node: usize) -> usize {
        self.plan.map_or(node, |p| p[node] as usize)
    }

    /// Allocation type, bytes, is_variable.
    fn fields(&self, t: usize) -> (u32, usize, bool) {
        assert!(t < self.tensor_count);
        match self.layout {
            Layout::Full => {
                let p = self.tensors.cast::<AreniteTensor>().wrapping_add(t);
                // SAFETY: `t` is below the count, and the contract of `new` makes that many structs readable.
                let x = unsafe { &*p };
                (x.allocation_type, x.bytes, x.is_variable != 0)
            }
            Layout::Micro => {
                let p = self.tensors.cast::<AreniteMicroTensor>().wrapping_add(t);
                // SAFETY: as above.
                let x = unsafe { &*p };
                (x.allocation_type, x.bytes, x.is_variable != 0)
            }
        }
    }

    fn lists(&self, node: usize) -> Result<Lists<'a>, Error> {
        let p = self.nodes.wrapping_add(self.place(node) * self.stride);
        let (inputs, outputs, temporaries): (*const AreniteIntArray, _, _) = match self.layout {
            Layout::Full => {
                // SAFETY: the place is below the node count (`check`), and the contract of `new` makes it readable.
                let x = unsafe { &*p.cast::<AreniteNode>() };
                (x.inputs, x.outputs, x.temporaries)
            }
            Layout::Micro => {
                // SAFETY: as above.
                let x = unsafe { &*p.cast::<AreniteMicroNode>() };
                (x.inputs, x.outputs, core::ptr::null())
            }
        };
        // SAFETY: the contract of `new` on int arrays.
        let inputs = unsafe { int_array(inputs) }?;
        // SAFETY: as above.
        let outputs = unsafe { int_array(outputs) }?;
        // SAFETY: as above.
        let temporaries = unsafe { int_array(temporaries) }?;
        Ok(Lists { inputs, outputs, temporaries })
    }
}

impl Tables for LiteTables<'_> {
    fn tensor_count(&self) -> usize {
        self.tensor_count
    }

    fn tensor(&self, index: usize) -> Tensor {
        let (allocation, bytes, variable) = self.fields(index);
        Tensor {
            bytes: Some(bytes as u64),
            // `check` refused every other number.
            allocation: Allocation::try_from(allocation).unwrap_or_default(),
            align: None,
            variable,
        }
    }

    fn node_count(&self) -> usize {
        self.node_count
    }

    fn node(&self, index: usize) -> Node<'_> {
        // `check` read the same lists without an error.
        let lists = self.lists(index).unwrap_or(Lists { inputs: &[], outputs: &[], temporaries: &[] });
        let place = self.place(index);
        Node {
            inputs: lists.inputs,
            outputs: lists.outputs,
            temporaries: lists.temporaries,
            inplace: InPlace(self.inplace.get(place).copied().unwrap_or(0)),
            align: self.aligns.get(place).and_then(|&a| Align::new(a.into()).ok()),
            view: View::None,
            call: Call::None,
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
