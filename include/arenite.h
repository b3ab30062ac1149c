/*
 * arenite: memory planner, arena and allocator for on-device inference engines.
 *
 * Generated from the documentation in src/ffi; change it there, then run
 *   ARENITE_UPDATE_HEADER=1 cargo build --features header
 *
 * C99 or later, C++11 or later. Link with CMake, after find_package(arenite 0.1 REQUIRED), add_subdirectory or FetchContent:
 *   target_link_libraries(app PRIVATE arenite::arenite)
 * or with pkg-config:
 *   cc app.c $(pkg-config --cflags --libs arenite)             shared
 *   cc app.c $(pkg-config --cflags --libs arenite-static)      static: libraries come after the sources
 *
 * CONVENTIONS, for every function below unless its own text says otherwise
 *
 * Status      Functions that can fail return arenite_status_t: ARENITE_OK (0) or a positive ARENITE_ERR_ code. Codes are
 *             never renumbered. Detail (which tensor, how much was needed) is in a failure record, arenite_failure_t.
 * Null        Object pointers, output pointers and text must not be null: ARENITE_ERR_NULL. Three exceptions: an array
 *             may be null when its count is 0, a failure record may be null, and _destroy(NULL) does nothing.
 * Outputs     come last. They are written only when the call returns ARENITE_OK; a failure record only when it does not.
 * Ownership   What _create or another function hands out through a pointer to a pointer is the caller's until the
 *             matching _destroy. Everything passed in is only read during the call, unless its text says "kept".
 * Structs     that may grow begin with struct_size and flags. Set struct_size to sizeof the struct and flags to 0, and
 *             zero what you do not use. A program compiled against an older or newer header than the library still
 *             works: missing fields get their defaults; fields and flags the library does not know must be zero.
 * Numbers     Enumerations are uint32_t; a number that means nothing is ARENITE_ERR_ARGUMENT, never undefined behaviour.
 *             Sizes in plans are uint64_t, sizes of memory in this process size_t.
 * Threads     Objects share nothing with each other: two objects may be used from two threads. On one object, calls that
 *             take it as const may run at the same time; any other call needs it alone. Breaking that is answered with
 *             ARENITE_ERR_BUSY where it is noticed. Objects declared "any thread" need no such care.
 * Callbacks   must not throw, longjmp or unwind, and must not call back into the object that is calling them
 *             (ARENITE_ERR_BUSY).
 * Bugs        A bug inside the library is caught and returned as ARENITE_ERR_INTERNAL; the object then refuses everything
 *             but _last_failure and _destroy. The process goes on, the panic hook of a host in Rust is left alone.
 * Destroyed   Passing a destroyed object is undefined behaviour, as with free(). _destroy of an object that another call
 *             is using returns ARENITE_ERR_BUSY and destroys nothing.
 */


#ifndef ARENITE_H
#define ARENITE_H

#include <stddef.h>
#include <stdint.h>

/* Version of this header; compare it with the running library by arenite_version_string() and arenite_abi_version(). */
#define ARENITE_VERSION_MAJOR 0
#define ARENITE_VERSION_MINOR 1
#define ARENITE_VERSION_PATCH 0
#define ARENITE_VERSION_STRING "0.1.0"

/* Asks the compiler to warn when a status is thrown away. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define ARENITE_NODISCARD [[nodiscard]]
#elif defined(__GNUC__) || defined(__clang__)
#define ARENITE_NODISCARD __attribute__((warn_unused_result))
#else
#define ARENITE_NODISCARD
#endif

/* A type for an int array of n elements: ARENITE_INT_ARRAY(2) shape = {2, {4, 5}}; pass (const AreniteIntArray *)&shape. */
#define ARENITE_INT_ARRAY(n) struct { int32_t size; int32_t data[n]; }


/**
 * Version of the binary interface, and the number in the shared library's name (`libarenite.so.0`). It changes when a
 * program compiled against an older header would misbehave with a newer library.
 */
#define ARENITE_ABI_VERSION 0

/** A failure concerns nothing in particular. */
#define ARENITE_SUBJECT_NONE 0

/** A tensor, by its index in the graph's table. */
#define ARENITE_SUBJECT_TENSOR 1

/** A node, by its position in the execution order. */
#define ARENITE_SUBJECT_NODE 2

/** A buffer, by its index in the problem. */
#define ARENITE_SUBJECT_BUFFER 3

/** A subgraph, by its index. */
#define ARENITE_SUBJECT_SUBGRAPH 4

/** A memory region, by its index. */
#define ARENITE_SUBJECT_REGION 5

/** An index or step that a failure record does not have. */
#define ARENITE_NO_INDEX 4294967295

/** An amount that a failure record does not have. */
#define ARENITE_NO_AMOUNT 18446744073709551615ull

/** Size of the message in a failure record, its terminating zero included. */
#define ARENITE_MESSAGE_BYTES 192

/** No memory: the tensor has none, or an optional one is absent. */
#define kAreniteMemNone 0

/** Constant data in the model file. */
#define kAreniteMmapRo 1

/** In the main arena: the bytes are shared with tensors that are alive at other times. */
#define kAreniteArenaRw 2

/** In the persistent arena: the bytes are the tensor's own and keep their contents. */
#define kAreniteArenaRwPersistent 3

/** Allocated by the runtime while it runs. */
#define kAreniteDynamic 4

/** Constant data computed once at preparation. */
#define kArenitePersistentRo 5

/** Memory the application provides. */
#define kAreniteCustom 6

/** An object that is no tensor buffer. */
#define kAreniteVariantObject 7

/** Memory of another device. */
#define kAreniteNonCpu 8

/** TfLite's full build: tensors are `AreniteTensor`, nodes `AreniteNode`. */
#define ARENITE_LAYOUT_FULL 1

/** TfLite's microcontroller build: tensors are `AreniteMicroTensor`, nodes `AreniteMicroNode`. */
#define ARENITE_LAYOUT_MICRO 2

/** An optional tensor that is absent, in a node's list of inputs. */
#define ARENITE_OPTIONAL_TENSOR (-1)

/** The node hands its input's bytes on unchanged (a reshape). */
#define ARENITE_INPLACE_DATA_UNMODIFIED 1

/** The first output may take over input 0. */
#define ARENITE_INPLACE_INPUT0 4

/** The first output may take over input 1. */
#define ARENITE_INPLACE_INPUT1 8

/** The first output may take over input 2. */
#define ARENITE_INPLACE_INPUT2 16

/**
 * The node's first output may take over any input whose last use the node is, inputs and outputs of the graph included
 * where they need not survive: its kernel reads each element before it writes there. Not one of TfLite's bits.
 */
#define ARENITE_INPLACE_ANY_INPUT (1 << 32)

/** A portfolio of rules and then a bounded search, which ends as soon as the lower bound is met. The default. */
#define ARENITE_STRATEGY_AUTO 0

/** Order of first use, lowest gap. */
#define ARENITE_STRATEGY_FIRST_FIT 1

/** Exactly what TensorFlow Lite does. */
#define ARENITE_STRATEGY_GREEDY_BY_SIZE 2

/** What TensorFlow Lite Micro does. */
#define ARENITE_STRATEGY_TFLM_GREEDY 3

/** Search until the plan is proven optimal or the effort is spent; the plan says which. */
#define ARENITE_STRATEGY_EXACT 4

/** An answer only, in a plan by AUTO or EXACT: the skyline heuristic won. */
#define ARENITE_STRATEGY_VALLEY 5

/** An answer only, in a plan by AUTO or EXACT: repacking parts of a large problem won. */
#define ARENITE_STRATEGY_WINDOWS 6

/** An answer only, in a plan by AUTO or EXACT: search won. */
#define ARENITE_STRATEGY_SEARCH 7

/** Inputs and outputs are kept; an output that nobody reads lives at its step. The default. */
#define ARENITE_POLICY_SAFE 0

/** As TensorFlow Lite: also outputs that nobody reads are kept to the end. */
#define ARENITE_POLICY_TFLITE 1

/** As TensorFlow Lite Micro: an input's bytes are free after its last reader. */
#define ARENITE_POLICY_TFLM 2

/** An input's bytes may be reused after its last reader. */
#define ARENITE_GRAPH_REUSE_INPUTS 1

/** Nothing is released and nothing shared, so that every tensor can be read after the run. */
#define ARENITE_GRAPH_KEEP_ALL 2

/** No node writes over one of its inputs, whatever the nodes allow. */
#define ARENITE_GRAPH_NO_IN_PLACE 4

/**
 * The plan may expect another execution order, where that makes the arena smaller: ask `arenite_plan_order` for it. Only
 * for `arenite_planner_plan_graph`, and only where nodes do nothing but write their outputs; for others see
 * `arenite_graph_order`. Nodes that run subgraphs keep their order.
 */
#define ARENITE_GRAPH_REORDER 8

/** The tensor keeps its contents between runs. */
#define ARENITE_TENSOR_VARIABLE 1

/** The tensor's size is not known yet; `bytes` is not read. */
#define ARENITE_TENSOR_UNKNOWN_SIZE 2

/** The node runs no subgraph. */
#define ARENITE_CALL_NONE 0

/** The node runs one of its subgraphs (IF): they exclude each other and share bytes. */
#define ARENITE_CALL_BRANCH 1

/** The node runs all of its subgraphs over and over (WHILE): what they carry lives through the whole loop. */
#define ARENITE_CALL_LOOP 2

/** The node runs all of its subgraphs once, one after the other. */
#define ARENITE_CALL_SEQUENCE 3

/** No tensor of the node lies in another. */
#define ARENITE_VIEW_NONE 0

/**
 * The outputs may lie one after the other in an input, whose bytes they are: a reshape, a squeeze, a slice or a split
 * along the outer dimension. The kernel copies nothing where they do.
 */
#define ARENITE_VIEW_OUTPUTS 1

/**
 * The inputs may lie one after the other in the first output: a concatenation along the outer dimension. The kernel
 * copies only those that do not.
 */
#define ARENITE_VIEW_INPUTS 2

/** The tensor is alive to the end of the run and beyond. */
#define ARENITE_LIFETIME_KEPT 1

/** The tensor has no bytes in either arena. */
#define ARENITE_ARENA_NONE 0

/** The reusable arena. */
#define ARENITE_ARENA_MAIN 1

/** The persistent arena: bytes of its own that keep their contents. */
#define ARENITE_ARENA_PERSISTENT 2

/** The buffer is alive to the end of the run and beyond, not merely to its last step. */
#define ARENITE_BUFFER_KEPT 1

/** The buffer must be at `fixed_offset`. */
#define ARENITE_BUFFER_FIXED 2

/** The plan fits. */
#define ARENITE_FIT_YES 1

/** No plan fits: already the buffers alive at one step need more. Those are marked `ARENITE_FIT_ALIVE`. */
#define ARENITE_FIT_TOO_MUCH_ALIVE 2

/** No plan fits, although the bytes would suffice at every step: search has tried all that could be. */
#define ARENITE_FIT_NO_PACKING 3

/** The effort was spent, or the progress function ended the search, without an answer. Not an error. */
#define ARENITE_FIT_UNKNOWN 4

/** In the best plan the buffer ends above the capacity. All others can be placed as that plan says. */
#define ARENITE_FIT_OUTSIDE 1

/** The buffer is one of those whose bytes together prove `ARENITE_FIT_TOO_MUCH_ALIVE`. */
#define ARENITE_FIT_ALIVE 2

/** Where the old offsets do not hold any more, plan afresh: the smallest arena matters. The default. */
#define ARENITE_KEEP_ARENA 0

/** Move as few buffers as possible, even if the arena grows: pointers into it matter. */
#define ARENITE_KEEP_OFFSETS 1

/** Every region is allowed. */
#define ARENITE_REGION_ANY 4294967295

/** Text for people: the figures, the peak and who is alive there, every block with who had its bytes before, and a map. */
#define ARENITE_REPORT_TEXT 0

/** One JSON object; docs/REPORT.md describes it. */
#define ARENITE_REPORT_JSON 1

/** A CSV with the columns id, lower, upper, size, alignment, offset, gaps, name, root, which the command line reads. */
#define ARENITE_REPORT_CSV 2

/** A picture: time across, bytes up. */
#define ARENITE_REPORT_SVG 3

/** The process's allocator. */
#define ARENITE_SOURCE_SYSTEM 0

/** One buffer of the caller's. */
#define ARENITE_SOURCE_BUFFER 1

/** The caller's functions. */
#define ARENITE_SOURCE_CALLBACKS 2

/**
 * Anonymous pages of the system, which go back to it at once. What must survive growing is moved by page table where the
 * system can do that (Linux), not copied, so that old and new are never held together. Elsewhere the same as SYSTEM.
 */
#define ARENITE_SOURCE_MAP 3

/** The row is alive to the end of the run and beyond. */
#define ARENITE_ROW_KEPT 1

/** The row must be at `fixed_offset`. */
#define ARENITE_ROW_FIXED 2

/**
 * With `ARENITE_ROW_FIXED`: it may overlap other rows with a fixed offset, and its offset may be misaligned, as whoever
 * gave it meant it. Rows without a fixed offset keep clear of it all the same.
 */
#define ARENITE_ROW_SHARED 4

/** Nothing is known of the block's lifetime. */
#define ARENITE_POOL_HINT_UNKNOWN 0

/** The block lives about as long as a frame, or longer: weights, outputs that are kept. */
#define ARENITE_POOL_HINT_LONG 1

/** It is freed within the frame: a tensor on its way to the next operators. */
#define ARENITE_POOL_HINT_SHORT 2

/** It is freed by the operator that asks for it: a workspace. */
#define ARENITE_POOL_HINT_SCRATCH 3

/** It will grow by `arenite_pool_realloc`: it is put where there is the most room, without any being set aside. */
#define ARENITE_POOL_HINT_GROWING 4

/** Blocks are found by their offset, too: 4 bytes more for every 4 KiB of the region. */
#define ARENITE_HEAP_FIND 1

/** Nothing is released and nothing shared, so that every tensor can be read after the run. */
#define ARENITE_INCREMENTAL_PRESERVE_ALL 1

/** Tensors share bytes in place exactly as in TFLite, also where that corrupts. Otherwise they share only where it is safe. */
#define ARENITE_INCREMENTAL_TFLITE_SHARING 2

/** No tensor shares bytes in place. */
#define ARENITE_INCREMENTAL_NO_IN_PLACE 4

/** Growing keeps the old block until the new one is there, also where contents need not survive. */
#define ARENITE_INCREMENTAL_KEEP_ON_FAILURE 8

/** A zone behind every tensor shows which node wrote past its end. */
#define ARENITE_INCREMENTAL_GUARD 16

/** A run refuses other threads than the one that acquired or adopted it, with `ARENITE_ERR_BUSY`. */
#define ARENITE_INSTANCES_CHECK_THREADS 1

/** Growing takes the new block before the old one is given back: both at once, but a failure moves nothing. */
#define ARENITE_MEMORY_KEEP_ON_FAILURE 1

/** The state that stands for anything: what an unknown operator may do. It stays in order with all other states. */
#define ARENITE_STATE_WORLD UINT32_MAX

/** Nodes that run subgraphs have no effect but their outputs. Without this flag each may do anything. */
#define ARENITE_ORDER_PURE_CALLS 1

/**
 * Grows by as much as it has, the request, `growth_bytes` or 1 MiB, whichever is the most; a pool over a buffer does not
 * grow. The default.
 */
#define ARENITE_GROWTH_DEFAULT 0

/** Never grows. */
#define ARENITE_GROWTH_NONE 1

/** Grows by what the request needs, or by `growth_bytes` if that is more. */
#define ARENITE_GROWTH_EXACT 2

/** Grows by as much as it has, the request, or `growth_bytes`, whichever is the most. */
#define ARENITE_GROWTH_GEOMETRIC 3

/** A request that does not fit is refused. The default. */
#define ARENITE_FALLBACK_NONE 0

/** It is passed to the system's heap. */
#define ARENITE_FALLBACK_SYSTEM 1

/** It is passed to `fallback_pool`. */
#define ARENITE_FALLBACK_POOL 2

/** Nothing behind a block. The default. */
#define ARENITE_TAIL_NONE 0

/** `tail_bytes` behind a block can be read, though they may be another block's. */
#define ARENITE_TAIL_READABLE 1

/** `tail_bytes` behind a block are its own. */
#define ARENITE_TAIL_EXCLUSIVE 2

/** Regions from the system are aligned to 2 MiB and advised to use huge pages. */
#define ARENITE_POOL_HUGE_PAGES 1

/**
 * Writes before a block's start and past its end are found when it is freed and by `arenite_pool_check`. The block then stays
 * live. With this flag, POISON, LEAKS, SANITIZER or a quarantine frames have no plans and are not counted.
 */
#define ARENITE_POOL_GUARDS 2

/**
 * Freed blocks are filled, and writes to them found while they are in the quarantine (`quarantine_bytes`) and as they leave
 * it, by `arenite_pool_check`.
 */
#define ARENITE_POOL_POISON 4

/** Live blocks are listed by `arenite_pool_leaks`. */
#define ARENITE_POOL_LEAKS 8

/** Under AddressSanitizer or Valgrind, it reports a use after free and an overrun inside the pool. */
#define ARENITE_POOL_SANITIZER 16

/**
 * Frames are found by themselves, for hosts that cannot say where one begins and ends: a sequence of requests that repeats
 * on a thread is served from a plan, and free pages are given back as the pool grows past what was ever live.
 */
#define ARENITE_POOL_AUTO_FRAMES 32

/** A zone behind every planned tensor shows which node wrote past its end. */
#define ARENITE_SESSION_GUARD 1

/**
 * A commit plans for the smallest arena. Otherwise it keeps the offsets before where they are valid, so that fewer addresses
 * move.
 */
#define ARENITE_SESSION_SMALLEST 2

/** Growing takes the new block before the old one is given back: both at once, but a failure moves nothing. */
#define ARENITE_SESSION_KEEP_ON_FAILURE 4

/** Inputs and outputs come from `io` and stay where they are while the rest is re-planned. */
#define ARENITE_SESSION_SEPARATE_IO 8

/** Memory for the tensors of one plan. Threads: one at a time for calls that change it. */
typedef struct arenite_arena_t arenite_arena_t;

/** A heap over offsets that lives in the caller's memory and calls nobody. Threads: one at a time. */
typedef struct arenite_bare_heap_t arenite_bare_heap_t;

/** One run of a repeating sequence. Threads: any; as a rule one thread has it, and others free through the pool. */
typedef struct arenite_frame_t arenite_frame_t;

/**
 * Tensors and nodes of one graph and of the subgraphs it calls.
 *
 * Subgraph 0 is the graph itself; `arenite_graph_attach` adds others. Threads: one at a time for calls that change it.
 */
typedef struct arenite_graph_t arenite_graph_t;

/**
 * A heap over the offsets of one region, which it never touches: DMA, GPU or NPU memory, another process's, a file's.
 * Blocks are named by `arenite_heap_block_t`. Threads: any; no call needs the heap alone.
 */
typedef struct arenite_heap_t arenite_heap_t;

/**
 * One graph whose tensors get their sizes while it runs, with the memory for it. Threads: one at a time for calls that
 * change it.
 */
typedef struct arenite_incremental_t arenite_incremental_t;

/**
 * Instances of one plan: constants shared, persistent memory each, reusable arenas lent to those that run.
 * Threads: any.
 */
typedef struct arenite_instances_t arenite_instances_t;

/** A set of equal areas of a pool, leased for an inference each. Threads: any. */
typedef struct arenite_lease_t arenite_lease_t;

/** A file mapped read-only: one copy of the weights for all sessions and instances. Threads: any. */
typedef struct arenite_mapping_t arenite_mapping_t;

/**
 * Offsets for one problem or graph.
 *
 * Threads: it never changes, so any number of threads may read one plan.
 */
typedef struct arenite_plan_t arenite_plan_t;

/** Buffers to place, and how. Threads: one at a time. */
typedef struct arenite_planner_t arenite_planner_t;

/** A pool of memory. Threads: any; no call needs the pool alone. */
typedef struct arenite_pool_t arenite_pool_t;

/**
 * What a plan looks like: every block with its offset, lifetime and name.
 *
 * Threads: it never changes, so any number of threads may read one report.
 */
typedef struct arenite_report_t arenite_report_t;

/** An instance that has an arena until the run is destroyed. Threads: one at a time for calls that change it. */
typedef struct arenite_run_t arenite_run_t;

/**
 * A graph with its plan and memory. Sizes change, nothing happens until the commit. Threads: one at a time for calls that
 * change it.
 */
typedef struct arenite_session_t arenite_session_t;

/** Result of a call: `ARENITE_OK` or one of the `ARENITE_ERR_` codes. Codes are positive and never reused. */
typedef int32_t arenite_status_t;

/**
 * A size followed in memory by that many `int32_t`; read them with `arenite_int_array_data`.
 *
 * To declare one with room for its elements use `ARENITE_INT_ARRAY(n)` and pass its address with a cast.
 */
typedef struct AreniteIntArray {
    /** Number of elements that follow. */
    int32_t size;
} AreniteIntArray;

/** An engine's tensors and nodes as they lie in its memory. Nothing of it is changed. */
typedef struct arenite_lite_desc_t {
    /** `sizeof(arenite_lite_desc_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** `ARENITE_LAYOUT_FULL` or `ARENITE_LAYOUT_MICRO`: what `tensors` and `nodes` point to. */
    uint32_t layout;
    /** 0. */
    uint32_t reserved;
    /** `tensor_count` structs of the layout, one after the other. */
    const void *tensors;
    /** How many. */
    uint64_t tensor_count;
    /** `node_count` node structs of the layout. */
    const void *nodes;
    /** How many. */
    uint64_t node_count;
    /** Bytes from one node to the next, for engines that keep something between them; 0 when they lie side by side. */
    uint64_t node_stride;
    /** Indices into `nodes` in execution order; null for all nodes as they lie. */
    const int32_t *execution_plan;
    /** How many; 0 when `execution_plan` is null. */
    uint64_t execution_plan_count;
    /** The graph's inputs: indices into `tensors`, -1 for none. */
    const int32_t *inputs;
    /** How many. */
    uint64_t input_count;
    /** The graph's outputs. */
    const int32_t *outputs;
    /** How many. */
    uint64_t output_count;
    /** Tensors that keep their contents between runs, besides those with `is_variable`. */
    const int32_t *variables;
    /** How many. */
    uint64_t variable_count;
    /**
     * Per node of `nodes`: which inputs its first output may take over, as in TfLite's `inplace_operator`
     * (`ARENITE_INPLACE_`); null for none.
     */
    const uint64_t *inplace;
    /** Per node of `nodes`: the alignment its kernel asks of every tensor it touches, 0 for none; null for none. */
    const uint32_t *node_alignments;
} arenite_lite_desc_t;

/**
 * What went wrong in a call: which tensor, node or buffer, at which step, how much was needed and available.
 *
 * Set `struct_size` to `sizeof(arenite_failure_t)` and `flags` to 0 before passing it. The record is a plain copy:
 * it stays valid whatever happens to the object it came from.
 */
typedef struct arenite_failure_t {
    /** `sizeof(arenite_failure_t)` as the caller knows it. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** The status that the failed call returned; `ARENITE_OK` when no call has failed yet. */
    arenite_status_t status;
    /** What it is about, one of `ARENITE_SUBJECT_`. */
    uint32_t subject_kind;
    /** Its index, or `ARENITE_NO_INDEX`. */
    uint32_t subject_index;
    /** The second party, for instance the other of two buffers that collide; one of `ARENITE_SUBJECT_`. */
    uint32_t other_kind;
    /** The second party's index, or `ARENITE_NO_INDEX`. */
    uint32_t other_index;
    /** The step at which it happens, or `ARENITE_NO_INDEX`. */
    uint32_t step;
    /** The amount needed, in bytes unless the message says otherwise, or `ARENITE_NO_AMOUNT`. */
    uint64_t needed;
    /** The amount available, in the same unit, or `ARENITE_NO_AMOUNT`. */
    uint64_t available;
    /** The failure as one line of English, always terminated by a zero. */
    char message[ARENITE_MESSAGE_BYTES];
} arenite_failure_t;

/** A tensor to add. */
typedef struct arenite_tensor_desc_t {
    /** `sizeof(arenite_tensor_desc_t)`. */
    uint32_t struct_size;
    /** `ARENITE_TENSOR_` bits. */
    uint32_t flags;
    /** Size in bytes, unrounded. */
    uint64_t bytes;
    /** Where its memory comes from: a number from `kAreniteMemNone` to `kAreniteNonCpu`. */
    uint32_t allocation_type;
    /** Its own alignment on top of the plan's: a power of two up to 65536, or 0 for none. */
    uint32_t alignment;
} arenite_tensor_desc_t;

/** A node to add. Lists hold tensor indices, -1 for an absent tensor. */
typedef struct arenite_node_desc_t {
    /** `sizeof(arenite_node_desc_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Tensors it reads. */
    const int32_t *inputs;
    /** How many. */
    uint64_t input_count;
    /** Tensors it writes. */
    const int32_t *outputs;
    /** How many. */
    uint64_t output_count;
    /** Tensors alive only while it runs. */
    const int32_t *temporaries;
    /** How many. */
    uint64_t temporary_count;
    /** Which inputs its first output may take over: `ARENITE_INPLACE_` bits. */
    uint64_t inplace;
    /** The alignment its kernel asks of every tensor it touches: a power of two up to 65536, or 0 for none. */
    uint32_t alignment;
    /** How it runs `subgraphs`: `ARENITE_CALL_`. */
    uint32_t call;
    /** Subgraphs it runs, by the numbers `arenite_graph_attach` gave. */
    const uint32_t *subgraphs;
    /** How many. */
    uint64_t subgraph_count;
    /**
     * Which of its tensors its kernel allows to lie in one another: `ARENITE_VIEW_`. Followed where it makes the arena
     * smaller and the distance meets the tensor's alignment.
     */
    uint32_t view;
    /** With `ARENITE_VIEW_OUTPUTS` the position in `inputs` of the input. */
    uint32_t view_input;
    /** The first byte in the whole where the first part lies. */
    uint64_t view_offset;
} arenite_node_desc_t;

/** How lifetimes are found. */
typedef struct arenite_graph_options_t {
    /** `sizeof(arenite_graph_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_GRAPH_` bits. */
    uint32_t flags;
    /** `ARENITE_POLICY_`. */
    uint32_t policy;
    /** Alignment of every tensor: a power of two up to 65536, or 0 for 128. */
    uint32_t alignment;
} arenite_graph_options_t;

/** When a tensor is alive and where its bytes are. */
typedef struct arenite_lifetime_t {
    /** The first step alive. */
    uint32_t first;
    /** The last step alive, inclusive. */
    uint32_t last;
    /** `ARENITE_LIFETIME_` bits. */
    uint32_t flags;
    /** `ARENITE_ARENA_MAIN`, `ARENITE_ARENA_PERSISTENT` or `ARENITE_ARENA_NONE`; the steps mean nothing for the last. */
    uint32_t arena;
    /** The tensor of the same subgraph whose bytes it uses in place; its own index where none. */
    uint32_t root;
    /** How many separate spans of steps lie between `first` and `last`; more than 1 in a subgraph called repeatedly. */
    uint32_t span_count;
} arenite_lifetime_t;

/** Where planning stands. */
typedef struct arenite_progress_t {
    /** Search nodes visited so far. */
    uint64_t nodes;
    /** The arena of the best plan so far, in unrounded bytes. */
    uint64_t arena_bytes;
    /** The best bound proven so far. */
    uint64_t lower_bound;
} arenite_progress_t;

/**
 * Called every few hundred search nodes. Returns 0 to go on, anything else to stop: the best plan so far is returned.
 * A deadline belongs here, since the planner has no clock. Must not unwind, and must not use the planner that calls it.
 */
typedef uint32_t (*arenite_progress_fn)(void *user, const struct arenite_progress_t *progress);

/** How to plan. */
typedef struct arenite_planner_options_t {
    /** `sizeof(arenite_planner_options_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** `ARENITE_STRATEGY_`. */
    uint32_t strategy;
    /** 0. */
    uint32_t reserved;
    /**
     * Search nodes to spend at most; 0 for about a second's worth with AUTO and no limit with EXACT. The same effort gives
     * the same plan on every machine, and more effort never a worse one.
     */
    uint64_t effort;
    /**
     * Bytes the arena may have: the search ends at the first plan that fits, and at the first proof that none does. 0 is
     * no limit and asks for the smallest arena (`arenite plan --capacity 0` on the command line is a limit of no bytes).
     */
    uint64_t capacity;
    /** Called while searching; null for none. */
    arenite_progress_fn progress;
    /** Handed to `progress`. Kept. */
    void *user;
} arenite_planner_options_t;

/** A closed range of steps: a buffer written at `first` and last read at `last` is alive at both. */
typedef struct arenite_span_t {
    /** The first step. */
    uint32_t first;
    /** The last step, inclusive. */
    uint32_t last;
} arenite_span_t;

/** A buffer to place. */
typedef struct arenite_buffer_desc_t {
    /** `sizeof(arenite_buffer_desc_t)`. */
    uint32_t struct_size;
    /** `ARENITE_BUFFER_` bits. */
    uint32_t flags;
    /** Size in bytes, unrounded. A buffer of 0 bytes gets none and overlaps nobody. */
    uint64_t bytes;
    /** The first step at which it is alive; not read where `spans` is given. */
    uint32_t first;
    /** The last step, inclusive. */
    uint32_t last;
    /** Its offset will be a multiple of this: a power of two up to 65536, or 0 for 128. */
    uint32_t alignment;
    /** 0. */
    uint32_t reserved;
    /** The offset it must have, with `ARENITE_BUFFER_FIXED`. */
    uint64_t fixed_offset;
    /** For a lifetime with gaps: its spans, ascending and without a common step. */
    const struct arenite_span_t *spans;
    /** How many; 0 to use `first` and `last`. */
    uint64_t span_count;
} arenite_buffer_desc_t;

/** The numbers of a plan. Set `struct_size` to `sizeof(arenite_plan_info_t)` and `flags` to 0 before passing it. */
typedef struct arenite_plan_info_t {
    /** `sizeof(arenite_plan_info_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** The highest end of any buffer in the reusable arena, unrounded. */
    uint64_t arena_bytes;
    /** No plan of this problem needs less. */
    uint64_t lower_bound;
    /** The sum of all planned sizes: what one allocation per buffer would take. */
    uint64_t total_bytes;
    /** Bytes of the persistent arena. */
    uint64_t persistent_bytes;
    /** How many buffers have bytes in the reusable arena. */
    uint64_t buffer_count;
    /** The alignment the reusable arena's base must meet. */
    uint32_t alignment;
    /** The alignment the persistent arena's base must meet. */
    uint32_t persistent_alignment;
    /** The strategy that made these offsets: `ARENITE_STRATEGY_`; with AUTO and EXACT, what won. */
    uint32_t strategy;
    /** 1 where no smaller arena exists once both figures are rounded up to the alignment, else 0. */
    uint32_t optimal;
    /** Search nodes visited; 0 where a greedy rule was enough. */
    uint64_t nodes;
    /** Search nodes visited when these offsets were found. */
    uint64_t nodes_to_best;
    /** Search nodes visited when search proved that no plan is smaller; 0 where the bound proved it, or nothing did. */
    uint64_t nodes_to_proof;
} arenite_plan_info_t;

/** Where a tensor's bytes are. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_plan_tensor_t {
    /** `sizeof(arenite_plan_tensor_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Offset from the arena's base; `ARENITE_NO_AMOUNT` where the tensor has no bytes in either arena. */
    uint64_t offset;
    /** Size in bytes, unrounded; of a constant the size of its data. */
    uint64_t bytes;
    /** When it is alive, and in which arena. Zero for a bare problem, whose lifetimes the caller knows. */
    struct arenite_lifetime_t lifetime;
} arenite_plan_tensor_t;

/** The answer to a capacity question. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_fit_t {
    /** `sizeof(arenite_fit_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** `ARENITE_FIT_YES`, `_TOO_MUCH_ALIVE`, `_NO_PACKING` or `_UNKNOWN`. */
    uint32_t verdict;
    /** With `_TOO_MUCH_ALIVE` the step at which most is alive, else `ARENITE_NO_INDEX`. */
    uint32_t step;
    /** With `_TOO_MUCH_ALIVE` the bytes needed at that step, else `ARENITE_NO_AMOUNT`. */
    uint64_t needed;
    /** The arena of the best plan found; at most the capacity with `_YES`. */
    uint64_t arena_bytes;
    /** No plan of this problem needs less. */
    uint64_t lower_bound;
    /** How many buffers of the best plan end above the capacity. */
    uint64_t outside_count;
    /** The sum of their sizes. */
    uint64_t outside_bytes;
} arenite_fit_t;

/** What a buffer wants of the regions. */
typedef struct arenite_region_wish_t {
    /** What it is worth to have the buffer in a region before the next one, in any unit: for instance reads and writes. */
    uint64_t benefit;
    /** Bit r allows region r; `ARENITE_REGION_ANY` for all. */
    uint32_t allowed;
    /** 0. */
    uint32_t reserved;
} arenite_region_wish_t;

/** Where a buffer is, and why it is not where it would have been best. */
typedef struct arenite_region_place_t {
    /** Offset from the base of its region. */
    uint64_t offset;
    /** The region it got; of a buffer of 0 bytes the first it is allowed in. */
    uint32_t region;
    /** The first region it is allowed in. Where that is another one than `region`, the buffer was spilled. */
    uint32_t wanted;
    /** Of a spilled buffer a step of its life at which the wanted region is full, else `ARENITE_NO_INDEX`. */
    uint32_t step;
    /** 0. */
    uint32_t reserved;
} arenite_region_place_t;

/** The numbers of one region. */
typedef struct arenite_region_usage_t {
    /** The highest end of any buffer in the region, unrounded. */
    uint64_t arena_bytes;
    /** The buffers that are in the region cannot be placed in less. */
    uint64_t lower_bound;
    /** How many buffers of at least one byte are in it. */
    uint64_t buffer_count;
    /** How many wanted it and are in a later one. */
    uint64_t spilled_count;
    /** The sum of the sizes of those. */
    uint64_t spilled_bytes;
    /** The alignment its base must meet. */
    uint32_t alignment;
    /** 0. */
    uint32_t reserved;
} arenite_region_usage_t;

/**
 * Tells the name of a tensor, or of a buffer of a bare problem, which is then in subgraph 0. Returns text that ends with a
 * zero and stays valid until the next call, or null for no name. Must not unwind.
 */
typedef const char *(*arenite_name_fn)(void *user, uint32_t subgraph, uint32_t tensor);

/** Tells the operator of a node, as `arenite_name_fn` tells a name. */
typedef const char *(*arenite_op_fn)(void *user, uint32_t subgraph, uint32_t node);

/** What a report calls things. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_report_names_t {
    /** `sizeof(arenite_report_names_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Names of tensors; null where they go by their numbers. */
    arenite_name_fn tensor;
    /** Operators of nodes; null where steps go by their numbers. Not called for the plan of a bare problem. */
    arenite_op_fn op;
    /** Handed to both. Not kept. */
    void *user;
} arenite_report_names_t;

/**
 * Takes a piece of a report: `length` bytes at `data`, valid during the call and not ended by a zero. Returns 0 to go on,
 * anything else to stop. Must not unwind.
 */
typedef uint32_t (*arenite_write_fn)(void *user, const char *data, size_t length);

/** Returns `bytes` bytes at a multiple of `alignment`, or null. Must not unwind or longjmp. */
typedef void *(*arenite_allocate_fn)(void *user, size_t bytes, size_t alignment);

/** Takes back what the allocation function returned, with the same size and alignment. */
typedef void (*arenite_deallocate_fn)(void *user, void *data, size_t bytes, size_t alignment);

/** Where memory comes from. */
typedef struct arenite_source_t {
    /** `ARENITE_SOURCE_`. */
    uint32_t kind;
    /** 0. */
    uint32_t reserved;
    /** With BUFFER: its start, at any address. Kept: it must outlive the arena. */
    void *base;
    /** With BUFFER: its size. `arenite_plan_required_bytes` says exactly how much is enough. */
    size_t bytes;
    /** With CALLBACKS: takes memory. */
    arenite_allocate_fn allocate;
    /** With CALLBACKS: gives it back, at the latest when the arena is destroyed. */
    arenite_deallocate_fn deallocate;
    /** With CALLBACKS: handed to both functions. */
    void *user;
} arenite_source_t;

/** How an arena gets its memory. */
typedef struct arenite_arena_options_t {
    /** `sizeof(arenite_arena_options_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** For the reusable arena. */
    struct arenite_source_t main;
    /** For the persistent arena. */
    struct arenite_source_t persistent;
} arenite_arena_options_t;

/** How a pool works. */
typedef struct arenite_pool_options_t {
    /** `sizeof(arenite_pool_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_POOL_` bits. */
    uint32_t flags;
    /**
     * Where memory comes from. SYSTEM maps pages; a BUFFER (kept) is the first region, and where `growth` allows more they
     * are as with SYSTEM; CALLBACKS may be called from any thread that uses the pool, and must not call it. MAP is refused.
     */
    struct arenite_source_t source;
    /** Bytes of a region made at once; 0 for none. */
    size_t first_region;
    /** `ARENITE_GROWTH_`. */
    uint32_t growth;
    /** `ARENITE_FALLBACK_`. */
    uint32_t fallback;
    /** See `growth`. */
    size_t growth_bytes;
    /** The most bytes ever taken from the source at a time; 0 for no limit. */
    uint64_t cap;
    /** With FALLBACK_POOL; kept alive for as long as this pool. */
    const struct arenite_pool_t *fallback_pool;
    /** `ARENITE_TAIL_`. */
    uint32_t tail;
    /** See `tail`. */
    uint32_t tail_bytes;
    /** Live blocks per region at most, so that the pool's own records never grow; 0 lets them. */
    size_t max_blocks;
    /** Bytes of freed blocks that are kept back before they are given out again; with 0 POISON finds nothing. */
    size_t quarantine_bytes;
    /**
     * Locks the pool is divided among, at most 64; 0 for one. A thread allocates from its own shard, from another where that
     * is full, then from new memory; any thread may free. The first region and a buffer are divided evenly, and a block has
     * to fit into one part: that, and records for each shard, is what it costs.
     */
    uint32_t shards;
    /** 0. */
    uint32_t reserved;
} arenite_pool_options_t;

/**
 * What a pool holds and did. `live_bytes + free_bytes = total_bytes` at every moment. The areas of frames are live blocks,
 * whether or not a frame is using them.
 */
typedef struct arenite_pool_stats_t {
    /** `sizeof(arenite_pool_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Bytes of all regions. */
    uint64_t total_bytes;
    /** Bytes not handed out. */
    uint64_t free_bytes;
    /** Bytes of the largest free block. */
    uint64_t largest_free;
    /** Bytes handed out, rounded up to blocks. */
    uint64_t live_bytes;
    /** Bytes asked for by the live blocks. */
    uint64_t requested_bytes;
    /** The highest `live_bytes` so far (summed over regions). */
    uint64_t peak_live_bytes;
    /** The highest `requested_bytes` so far (summed over regions). */
    uint64_t peak_requested_bytes;
    /** Live blocks. */
    uint64_t blocks;
    /** Free blocks. */
    uint64_t free_blocks;
    /** Regions. */
    uint64_t regions;
    /** Bytes taken from the source now. */
    uint64_t reserved_bytes;
    /** Regions added because the others were full. */
    uint64_t grown;
    /** Live blocks served by the fallback. */
    uint64_t fallback_blocks;
    /** Bytes of those. */
    uint64_t fallback_bytes;
    /** Bytes copied because a block could not be resized where it was. */
    uint64_t moved_bytes;
    /** Bytes given back by trims. */
    uint64_t trimmed_bytes;
    /** Requests refused. */
    uint64_t refused;
    /** Pointers that named no live block. */
    uint64_t bad_pointers;
    /** The most records any one call looked at, exhaustive scans apart. */
    uint64_t max_steps;
    /** Requests that had to look at every candidate. */
    uint64_t exhaustive_scans;
} arenite_pool_stats_t;

/** One block, as `arenite_pool_walk` shows it. Must not unwind or longjmp, and must not call the pool. */
typedef void (*arenite_block_fn)(void *user, void *data, size_t bytes, size_t requested, uint32_t live);

/** One live block, as `arenite_pool_leaks` shows it. Must not unwind or longjmp. */
typedef void (*arenite_leak_fn)(void *user, void *data, size_t bytes, uint64_t tag, uint64_t sequence);

/**
 * A pool as the C library's allocator. Each function takes `context` first and does what its namesake does, `errno`
 * included; none of them ends the process. Threads: any.
 */
typedef struct arenite_allocator_t {
    /** `sizeof(arenite_allocator_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** The pool, which has to outlive every copy of the table. */
    void *context;
    /** Null and `ENOMEM` where the pool refuses. Aligned to 128. 0 bytes give a block of their own. */
    void *(*malloc)(void *context, size_t bytes);
    /** Null and `ENOMEM` also where the product does not fit. */
    void *(*calloc)(void *context, size_t count, size_t bytes);
    /**
     * Keeps the alignment. Null, and the block as it was, where the pool refuses (`ENOMEM`) or no live block starts there
     * (`EINVAL`). 0 bytes keep a block: free it by `free`.
     */
    void *(*realloc)(void *context, void *data, size_t bytes);
    /** Null does nothing. A pointer that is no live block changes nothing and is counted in the pool's statistics. */
    void (*free)(void *context, void *data);
    /** 0; `EINVAL` for an alignment that is no power of two or less than a pointer's; `ENOMEM`. `*out` is written on success. */
    int (*posix_memalign)(void *context, void **out, size_t alignment, size_t bytes);
    /** Any power of two, any size. Null and `EINVAL` or `ENOMEM`. */
    void *(*aligned_alloc)(void *context, size_t alignment, size_t bytes);
    /** Bytes that can be used at `data`; 0 for null and where no live block starts there. */
    size_t (*usable_size)(void *context, const void *data);
} arenite_allocator_t;

/**
 * Takes `bytes` bytes of a trace: whole lines, not terminated by 0, valid during the call. Called from whatever thread
 * uses the pool. Must not unwind or longjmp, and must not call the pool.
 */
typedef void (*arenite_trace_fn)(void *user, const uint8_t *text, size_t bytes);

/** What the frames of a pool did, up to the last that ended. */
typedef struct arenite_frame_stats_t {
    /** `sizeof(arenite_frame_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Frames begun. */
    uint64_t frames;
    /** Frames recorded and planned. */
    uint64_t recorded;
    /** Frames neither recorded nor replayed: too many in flight, nothing in the plan, or no memory for the frame's area. */
    uint64_t passed;
    /** Requests served from a plan. */
    uint64_t served;
    /** Requests that were not what the plan expected. */
    uint64_t mismatched;
    /** Requests whose place was still taken by an earlier block. */
    uint64_t waiting;
    /** Requests the plan has no place for. */
    uint64_t outside;
    /** Plans held. */
    uint64_t plans;
    /** Instances held. */
    uint64_t instances;
    /** Bytes of their areas. */
    uint64_t area_bytes;
} arenite_frame_stats_t;

/** One request of a frame, for `arenite_frame_plan`. An array element: it never grows. */
typedef struct arenite_frame_request_t {
    /** Bytes it will ask for. */
    uint64_t bytes;
    /** The alignment it will ask for: any power of two, 0 for 128. A block aligned to more than 65536 gets no place. */
    uint64_t alignment;
    /**
     * The position, in the array, of the last request that is made before this one's block is freed: its own where no other
     * is. `ARENITE_NO_INDEX` for a block that outlives the frame, which is served by the pool.
     */
    uint32_t last;
    /** 0. */
    uint32_t reserved;
} arenite_frame_request_t;

/** How a heap works. `bytes` must be given. */
typedef struct arenite_heap_options_t {
    /** `sizeof(arenite_heap_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_HEAP_` bits. */
    uint32_t flags;
    /** Bytes of the region, rounded down to 128; less than 512 GiB. */
    uint64_t bytes;
    /**
     * Where the region starts in its device's address space, a multiple of 128: alignments above 128 are met by
     * `base` + offset.
     */
    uint64_t base;
    /**
     * Live blocks for which there are always records, whatever gaps lie between them (where fewer do, there are some more);
     * the records then never grow. 0 lets them grow, where their memory is not the caller's.
     */
    uint64_t max_blocks;
    /** Blocks of so many bytes are taken from below, smaller ones from above; 0 for a 32nd of the region. */
    uint64_t large_bytes;
    /** Comes back in every handle. Heaps with different numbers refuse each other's handles. */
    uint32_t region;
    /** 0. */
    uint32_t reserved;
} arenite_heap_options_t;

/**
 * Names one block of a heap. It goes stale when the block is freed and never names a later one. Its offset is
 * `arenite_heap_offset(block)`. A struct of zeros names no block.
 */
typedef struct arenite_heap_block_t {
    /** The region, as given in the heap's options. */
    uint32_t region;
    /** The offset in units of 128 bytes. */
    uint32_t granule;
    /** At most twice `max_blocks` and unique among live blocks: an index for a table of your own. */
    uint32_t node;
    /** How often the record has been used; never 0. */
    uint32_t generation;
} arenite_heap_block_t;

/** What a heap holds and did. `live_bytes + free_bytes = total_bytes` at every moment. */
typedef struct arenite_heap_stats_t {
    /** `sizeof(arenite_heap_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Bytes of the region. */
    uint64_t total_bytes;
    /** Bytes not handed out. */
    uint64_t free_bytes;
    /** Bytes of the largest free block. */
    uint64_t largest_free;
    /** Bytes handed out, rounded up to blocks. */
    uint64_t live_bytes;
    /** Bytes asked for by the live blocks. */
    uint64_t requested_bytes;
    /** The highest `live_bytes` so far. */
    uint64_t peak_live_bytes;
    /** The highest `requested_bytes` so far. */
    uint64_t peak_requested_bytes;
    /** Live blocks. */
    uint64_t blocks;
    /** Free blocks; no two are adjacent. */
    uint64_t free_blocks;
    /** Blocks handed out so far. */
    uint64_t allocs;
    /** Blocks freed so far. */
    uint64_t frees;
    /** Requests refused. */
    uint64_t refused;
    /** Handles and offsets that named no live block. */
    uint64_t bad_handles;
    /** The most records any one call looked at, exhaustive scans apart. */
    uint64_t max_steps;
    /** Requests that had to look at every candidate. */
    uint64_t exhaustive_scans;
} arenite_heap_stats_t;

/**
 * One block, as `arenite_heap_walk` shows it: `block` is null for a free one. Must not unwind or longjmp, and must not
 * call the heap.
 */
typedef void (*arenite_heap_walk_fn)(void *user,
                                     uint64_t offset,
                                     uint64_t bytes,
                                     uint64_t requested,
                                     const struct arenite_heap_block_t *block);

/** A buffer with one lifetime, for `arenite_bare_place`. An array element: it never grows. */
typedef struct arenite_row_t {
    /** Size in bytes, unrounded. A row of 0 bytes gets none. */
    uint64_t bytes;
    /** The offset it must have, with `ARENITE_ROW_FIXED`. */
    uint64_t fixed_offset;
    /** The first step at which it is alive. */
    uint32_t first;
    /** The last step, inclusive. */
    uint32_t last;
    /** Its offset will be a multiple of this: a power of two up to 65536, or 0 for 128. */
    uint32_t alignment;
    /** `ARENITE_ROW_` bits. */
    uint32_t flags;
} arenite_row_t;

/** How tensors are placed and where memory comes from. Fields that are 0 have their defaults. */
typedef struct arenite_incremental_options_t {
    /** `sizeof(arenite_incremental_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_INCREMENTAL_` bits. */
    uint32_t flags;
    /** Alignment of every tensor: a power of two up to 65536, or 0 for 128. TFLite's is 64. */
    uint32_t alignment;
    /** 0. */
    uint32_t reserved;
    /** The most bytes the main arena may hold; 0 for no limit. */
    uint64_t limit;
    /** For the main arena. */
    struct arenite_source_t main;
    /** For the persistent arena. */
    struct arenite_source_t persistent;
} arenite_incremental_options_t;

/** The numbers of an incremental planner at one moment. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_incremental_stats_t {
    /** `sizeof(arenite_incremental_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Sum of all tensors placed in the main arena: what one allocation per tensor would take. */
    uint64_t sum_bytes;
    /** Bytes the main arena needs, unrounded. */
    uint64_t planned_bytes;
    /** Bytes the main arena holds. */
    uint64_t committed_bytes;
    /** Bytes the persistent arena holds. */
    uint64_t persistent_bytes;
    /** The most bytes the main arena ever held, old and new counted where both had to be held. */
    uint64_t high_water;
    /** How often a memory source was asked or given something back. */
    uint64_t heap_calls;
    /** The same since the last execution. */
    uint64_t heap_calls_since_execute;
} arenite_incremental_stats_t;

/** A row of a report about one node. */
typedef struct arenite_node_row_t {
    /** The subgraph. */
    uint32_t subgraph;
    /** The node in it. */
    uint32_t node;
    /** Live bytes: the step. Alignment costs: the alignment the node asks for. */
    uint64_t key;
    /** Live bytes: bytes of the reusable arena alive. Alignment costs: bytes of the arena. */
    uint64_t bytes;
    /** Live bytes: 0. Alignment costs: bytes of the arena if this node asked for nothing. */
    uint64_t without;
} arenite_node_row_t;

/** How many instances, and where their memory comes from. */
typedef struct arenite_instances_options_t {
    /** `sizeof(arenite_instances_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_INSTANCES_` bits. */
    uint32_t flags;
    /** Instances, at least 1. */
    uint64_t instances;
    /** The most that run at once, at least 1. */
    uint64_t arenas;
    /** For reusable arenas; a buffer holds one only. Callbacks may be called from any thread. */
    struct arenite_source_t main;
    /** For persistent memory; a buffer holds that of one instance only. */
    struct arenite_source_t persistent;
    /** Leases the reusable arenas from this pool, which it keeps alive; `main` is then all 0. Null for `main`. */
    const struct arenite_pool_t *pool;
} arenite_instances_options_t;

/** What instances hold. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_instances_stats_t {
    /** `sizeof(arenite_instances_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Bytes of all reusable arenas, lent or free. */
    uint64_t committed_bytes;
    /** Bytes of persistent memory over all instances. */
    uint64_t persistent_bytes;
    /** The most bytes of reusable arenas that ever existed. */
    uint64_t high_water;
    /** Arenas lent. */
    uint64_t running;
    /** How often a pool or source was asked or given something back. */
    uint64_t heap_calls;
    /** The most arenas lent at a time. */
    uint64_t peak;
    /** Runs begun so far. */
    uint64_t runs;
    /** Requests that had to wait for an arena, from the moment they do. */
    uint64_t waits;
    /** Those refused because all arenas were lent or there was no memory. */
    uint64_t refused;
} arenite_instances_stats_t;

/** What the leases of a set did. */
typedef struct arenite_lease_stats_t {
    /** `sizeof(arenite_lease_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Areas held, in use or idle. */
    uint32_t areas;
    /** Areas in use. */
    uint32_t in_use;
    /** The most areas in use at a time. */
    uint32_t peak;
    /** 0. */
    uint32_t reserved;
    /** Leases given so far. */
    uint64_t leases;
    /** Requests that had to wait, from the moment they do. */
    uint64_t waits;
    /** Requests refused. */
    uint64_t refused;
} arenite_lease_stats_t;

/** Rules for the memory of a reusable arena: all 0 grows exactly, never shrinks by itself and has no limit. */
typedef struct arenite_memory_policy_t {
    /** `sizeof(arenite_memory_policy_t)`. */
    uint32_t struct_size;
    /** `ARENITE_MEMORY_` bits. */
    uint32_t flags;
    /** 0 grows exactly; otherwise doubling never asks for more than this many bytes. */
    uint64_t growth_cap;
    /** The most bytes it may hold; 0 for no limit. */
    uint64_t limit;
    /** A block above this is given back by the first commit that needs no more; 0 for never. */
    uint64_t idle_cap;
    /**
     * After so many commits in a row that need little the memory is given back; 0 for never. For an incremental planner a
     * commit is a run from one reset to the next.
     */
    uint32_t shrink_commits;
    /** What "little" is, in per cent of what is held: 0 to 100. */
    uint32_t shrink_percent;
} arenite_memory_policy_t;

/** One node's use of state that no tensor shows: a resource variable, a random generator, a file. */
typedef struct arenite_touch_t {
    /** The subgraph; 0 is the graph itself. */
    uint32_t subgraph;
    /** The node, in the order in which nodes were added. */
    uint32_t node;
    /** The state by a number of the engine's choice, or `ARENITE_STATE_WORLD`. */
    uint32_t state;
    /** 1 where the node may change it, 0 where it only reads it. Readers of one state may change places. */
    uint32_t writes;
} arenite_touch_t;

/** Two nodes of a subgraph to be kept in order. */
typedef struct arenite_node_pair_t {
    /** The subgraph. */
    uint32_t subgraph;
    /** Runs first; added before the other. */
    uint32_t before;
    /** Runs later. */
    uint32_t after;
} arenite_node_pair_t;

/** What may change places. */
typedef struct arenite_order_options_t {
    /** `sizeof(arenite_order_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_ORDER_` bits. */
    uint32_t flags;
    /** Uses of state. A node without any is taken to do nothing but write its outputs. */
    const struct arenite_touch_t *touches;
    /** How many. */
    uint64_t touch_count;
    /** Pairs to be kept in order for other reasons. */
    const struct arenite_node_pair_t *pairs;
    /** How many. */
    uint64_t pair_count;
    /** Nodes to look at; 0 for about a second's worth. The same effort gives the same order on every machine. */
    uint64_t effort;
} arenite_order_options_t;

/** What an order is worth. */
typedef struct arenite_order_result_t {
    /** `sizeof(arenite_order_result_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** The arena of the order in which nodes were added, unrounded. */
    uint64_t arena_bytes_before;
    /** The arena of the order found: never more. */
    uint64_t arena_bytes_after;
    /** No allowed order takes less, as far as is proven, rounded up to the alignment; 0 where nothing is proven. */
    uint64_t lower_bound;
    /** 1 where the order found is proven to be the best. */
    uint32_t proven;
    /** 1 where it is another than the given one. */
    uint32_t changed;
} arenite_order_result_t;

/** How a session plans and where its memory comes from. Fields that are 0 have their defaults. */
typedef struct arenite_session_options_t {
    /** `sizeof(arenite_session_options_t)`. */
    uint32_t struct_size;
    /** `ARENITE_SESSION_` bits. */
    uint32_t flags;
    /** Lifetimes and alignment; null for the defaults. */
    const struct arenite_graph_options_t *graph;
    /** `ARENITE_STRATEGY_`. */
    uint32_t strategy;
    /** The most plans kept by shape; 0 for 16. */
    uint32_t cached_plans;
    /** Search nodes per plan; 0 for some milliseconds' worth. */
    uint64_t effort;
    /** 0 grows exactly; otherwise doubling never asks for more than this many bytes. */
    uint64_t growth_cap;
    /** The most bytes the reusable arena may hold; 0 for no limit. */
    uint64_t limit;
    /** A block above this is given back by the first commit that needs no more; 0 for never. */
    uint64_t idle_cap;
    /** After so many commits in a row that need little the memory is given back; 0 for never. */
    uint32_t shrink_commits;
    /** What "little" is, in per cent of what is held: 0 to 100. */
    uint32_t shrink_percent;
    /** Alignment of inputs and outputs of their own; 0 for 128. */
    uint32_t io_alignment;
    /**
     * The subgraph that is run, with everything it calls; 0 for the graph itself. Subgraphs that run in parallel have a session
     * each.
     */
    uint32_t entry;
    /** For the reusable arena. */
    struct arenite_source_t main;
    /** For the persistent arena. */
    struct arenite_source_t persistent;
    /** With SEPARATE_IO: for inputs and outputs. */
    struct arenite_source_t io;
} arenite_session_options_t;

/** A size in a set of shapes. */
typedef struct arenite_shape_t {
    /** The set: rows of one set follow one another, and sets count up from 0. */
    uint32_t set;
    /** The subgraph. */
    uint32_t subgraph;
    /** The tensor in it. */
    uint32_t tensor;
    /** 0. */
    uint32_t reserved;
    /** Its bytes in this set. */
    uint64_t bytes;
} arenite_shape_t;

/**
 * Says how many bytes of scratch a node needs, from the bytes of all `count` tensors of its subgraph (`ARENITE_NO_AMOUNT` for
 * an unknown size). Returns them, or `ARENITE_NO_AMOUNT` where it cannot say yet. Must not unwind or use the session.
 */
typedef uint64_t (*arenite_scratch_fn)(void *user, const uint64_t *tensor_bytes, uint64_t count);

/** The numbers of a session at one moment. Set `struct_size` and `flags` before passing it. */
typedef struct arenite_session_stats_t {
    /** `sizeof(arenite_session_stats_t)`. */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Sum of all planned tensors: what one allocation per tensor would take. */
    uint64_t sum_bytes;
    /** Bytes the plan needs, unrounded. */
    uint64_t planned_bytes;
    /** No plan of these shapes is smaller. */
    uint64_t lower_bound;
    /** Bytes held for the reusable arena. */
    uint64_t committed_bytes;
    /** Bytes held for persistent tensors. */
    uint64_t persistent_bytes;
    /** Bytes held for inputs and outputs of their own. */
    uint64_t io_bytes;
    /** The most bytes ever held for the reusable arena. */
    uint64_t high_water;
    /** Commits that did something. */
    uint64_t commits;
    /** Plans made. */
    uint64_t plans;
    /** Those that kept all offsets of the one before. */
    uint64_t plans_kept;
    /** Commits that found their plan in the cache. */
    uint64_t cache_hits;
    /** How often a memory source was asked or given something back. */
    uint64_t heap_calls;
    /** The same since the last commit. */
    uint64_t heap_calls_since_commit;
} arenite_session_stats_t;

/** A row of a report about one tensor. */
typedef struct arenite_tensor_row_t {
    /** The subgraph. */
    uint32_t subgraph;
    /** The tensor in it. */
    uint32_t tensor;
    /** Upper bounds: the bytes planned. Misaligned constants: the alignment asked for. */
    uint64_t wanted;
    /** Upper bounds: the most bytes used. Misaligned constants: how many bytes the address is past a multiple. */
    uint64_t found;
    /** Upper bounds: 0. Misaligned constants: the bytes of an aligned copy. */
    uint64_t cost;
} arenite_tensor_row_t;

/** Scale and zero point of a tensor quantised as a whole. */
typedef struct AreniteQuantizationParams {
    /** Scale. */
    float scale;
    /** Zero point. */
    int32_t zero_point;
} AreniteQuantizationParams;

/** Kind of quantisation with its parameters. */
typedef struct AreniteQuantization {
    /** Kind, as TfLite numbers it. */
    uint32_t kind;
    /** Parameters of that kind; not read. */
    void *params;
} AreniteQuantization;

/** A tensor of TfLite's full build (112 bytes on 64-bit targets, 64 on 32-bit). */
typedef struct AreniteTensor {
    /** Element type, as TfLite numbers it. */
    uint32_t kind;
    /** Data; a union of pointers in TfLite. */
    void *data;
    /** Shape; null where it is not known. */
    const struct AreniteIntArray *dims;
    /** Scale and zero point; not read. */
    struct AreniteQuantizationParams params;
    /** Where its memory comes from: one of the numbers from `kAreniteMemNone` to `kAreniteNonCpu`. */
    uint32_t allocation_type;
    /** Size of the data. */
    size_t bytes;
    /** The mapped file that holds the data; not read. */
    const void *allocation;
    /** Name; null allowed. */
    const char *name;
    /** Delegate; not read. */
    void *delegate;
    /** Delegate's handle; not read. */
    int32_t buffer_handle;
    /** Boolean; not read. */
    uint8_t data_is_stale;
    /** Boolean: a variable keeps its contents from one run to the next. */
    uint8_t is_variable;
    /** Quantisation; not read. */
    struct AreniteQuantization quantization;
    /** Sparsity; not read. */
    void *sparsity;
    /** Shape with -1 for what is not known; null allowed. */
    const struct AreniteIntArray *dims_signature;
} AreniteTensor;

/** A tensor of TfLite's microcontroller build (64 bytes on 64-bit targets, 40 on 32-bit). */
typedef struct AreniteMicroTensor {
    /** Quantisation; not read. */
    struct AreniteQuantization quantization;
    /** Scale and zero point; not read. */
    struct AreniteQuantizationParams params;
    /** Data; a union of pointers in TfLite. */
    void *data;
    /** Shape; null where it is not known. */
    const struct AreniteIntArray *dims;
    /** Size of the data. */
    size_t bytes;
    /** Element type, as TfLite numbers it. */
    uint32_t kind;
    /** Where its memory comes from: one of the numbers from `kAreniteMemNone` to `kAreniteNonCpu`. */
    uint32_t allocation_type;
    /** Boolean: a variable keeps its contents from one run to the next. */
    uint8_t is_variable;
} AreniteMicroTensor;

/** A node of TfLite's full build (80 bytes on 64-bit targets, 40 on 32-bit). */
typedef struct AreniteNode {
    /** Tensors it reads; -1 for an optional one that is absent. */
    const struct AreniteIntArray *inputs;
    /** Tensors it writes. */
    const struct AreniteIntArray *outputs;
    /** Tensors it uses inside; null allowed. */
    const struct AreniteIntArray *intermediates;
    /** Tensors alive only while it runs; null allowed. */
    const struct AreniteIntArray *temporaries;
    /** Operator's data; not read. */
    void *user_data;
    /** Operator's options; not read. */
    void *builtin_data;
    /** Custom operator's options; not read. */
    const void *custom_initial_data;
    /** Their size; not read. */
    int32_t custom_initial_data_size;
    /** Delegate; not read. */
    void *delegate;
    /** Boolean; not read. */
    uint8_t might_have_side_effect;
} AreniteNode;

/** A node of TfLite's microcontroller build (56 bytes on 64-bit targets, 28 on 32-bit). */
typedef struct AreniteMicroNode {
    /** Tensors it reads; -1 for an optional one that is absent. */
    const struct AreniteIntArray *inputs;
    /** Tensors it writes. */
    const struct AreniteIntArray *outputs;
    /** Tensors it uses inside; null allowed. */
    const struct AreniteIntArray *intermediates;
    /** Operator's data; not read. */
    void *user_data;
    /** Operator's options; not read. */
    void *builtin_data;
    /** Custom operator's options; not read. */
    const void *custom_initial_data;
    /** Their size; not read. */
    int32_t custom_initial_data_size;
} AreniteMicroNode;

/** Memory that the application provides for a tensor. */
typedef struct AreniteCustomAllocation {
    /** Start. */
    void *data;
    /** Size. */
    size_t bytes;
} AreniteCustomAllocation;

/** The call succeeded and its outputs are written. */
#define ARENITE_OK 0

/** A required pointer was null. */
#define ARENITE_ERR_NULL 1

/** An argument, a table or a file contradicts itself or the contract. */
#define ARENITE_ERR_ARGUMENT 2

/** A sum or product of sizes does not fit. */
#define ARENITE_ERR_OVERFLOW 3

/** The memory or capacity given is too small; the failure record says by how much. */
#define ARENITE_ERR_CAPACITY 4

/** An address or alignment does not meet the requirement. */
#define ARENITE_ERR_ALIGNMENT 5

/** The object is in use by another call. */
#define ARENITE_ERR_BUSY 6

/** The memory source returned nothing. */
#define ARENITE_ERR_NO_MEMORY 7

/** The plan is older than the shapes: commit first. */
#define ARENITE_ERR_STALE 8

/** A tensor's size is not known yet. */
#define ARENITE_ERR_UNKNOWN_SIZE 9

/** The request is valid but this build or version does not do it. */
#define ARENITE_ERR_UNSUPPORTED 10

/** A bug in arenite: please report it. The object that was passed refuses further work but can still be destroyed. */
#define ARENITE_ERR_INTERNAL 11

#ifdef __cplusplus
extern "C" {
#endif  /* __cplusplus */

/* ---- version ----------------------------------------------------------------------------------- */

/**
 * Version of the binary interface of the library that is running; compare it with `ARENITE_ABI_VERSION` at start-up.
 *
 * Threads: any.
 */
ARENITE_NODISCARD uint32_t arenite_abi_version(void);

/**
 * Version of the library that is running, for instance "0.1.0"; compare it with `ARENITE_VERSION_STRING`.
 *
 * Returns: static text, never null. Threads: any.
 */
ARENITE_NODISCARD const char *arenite_version_string(void);

/* ---- status ------------------------------------------------------------------------------------ */

/**
 * Name of a status code, for instance "ARENITE_ERR_CAPACITY"; "ARENITE_ERR_?" for a number that is none.
 *
 * Returns: static text, never null. Threads: any.
 */
ARENITE_NODISCARD const char *arenite_status_name(arenite_status_t status);

/* ---- layout ------------------------------------------------------------------------------------ */

/**
 * The elements of an int array: `array->size` of them; null when `array` is null.
 *
 * Ownership: they are part of `array` and valid as long as it. Threads: any.
 */
ARENITE_NODISCARD const int32_t *arenite_int_array_data(const struct AreniteIntArray *array);

/**
 * Checks at start-up that the engine's structs have the layout it is going to name.
 *
 * Call it once as `arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(TfLiteTensor), sizeof(TfLiteNode))`: an engine that
 * was compiled with the macros of the other build is caught here and not by corrupted memory later.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` when `layout` is none of `ARENITE_LAYOUT_` or a size is not that
 * layout's. Threads: any.
 */
ARENITE_NODISCARD arenite_status_t arenite_layout_check(uint32_t layout, size_t sizeof_tensor, size_t sizeof_node);

/* ---- graph ------------------------------------------------------------------------------------- */

/**
 * Creates an empty graph.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_graph_destroy`.
 */
ARENITE_NODISCARD arenite_status_t arenite_graph_create(struct arenite_graph_t **out);

/**
 * Creates a graph from an engine's own TfLite arrays. They are copied: the engine may change or free them afterwards.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown layout, allocation type or index (the record names the
 * tensor or node); `ARENITE_ERR_NULL`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`, `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_graph_destroy`. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_create_lite(const struct arenite_lite_desc_t *desc,
                                           struct arenite_graph_t **out,
                                           struct arenite_failure_t *failure);

/**
 * Adds a tensor to the graph and writes its index, which counts up from 0.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_add_tensor(struct arenite_graph_t *graph,
                                          const struct arenite_tensor_desc_t *desc,
                                          uint32_t *out_index);

/**
 * Adds a node at the end of the execution order and writes its index, which counts up from 0.
 *
 * Tensors may be added after the nodes that use them: indices are checked when the graph is planned.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NULL`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_add_node(struct arenite_graph_t *graph,
                                        const struct arenite_node_desc_t *desc,
                                        uint32_t *out_index);

/** Replaces the graph's inputs. */
ARENITE_NODISCARD
arenite_status_t arenite_graph_set_inputs(struct arenite_graph_t *graph,
                                          const int32_t *tensors,
                                          uint64_t count);

/** Replaces the graph's outputs. */
ARENITE_NODISCARD
arenite_status_t arenite_graph_set_outputs(struct arenite_graph_t *graph,
                                           const int32_t *tensors,
                                           uint64_t count);

/** Replaces the list of tensors that keep their contents between runs, besides those added as variables. */
ARENITE_NODISCARD
arenite_status_t arenite_graph_set_variables(struct arenite_graph_t *graph,
                                             const int32_t *tensors,
                                             uint64_t count);

/**
 * Changes a tensor's size. Plans made before keep the old size.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_set_bytes(struct arenite_graph_t *graph,
                                         uint32_t tensor,
                                         uint64_t bytes);

/**
 * Keeps a tensor alive at least until step `until`, for instance to read it after the run (the last step).
 *
 * Returns: `ARENITE_OK`. Tensor and step are checked when the graph is planned.
 */
ARENITE_NODISCARD arenite_status_t arenite_graph_pin(struct arenite_graph_t *graph, uint32_t tensor, uint32_t until);

/**
 * Copies `callee` (its own subgraph 0) into `graph` as a subgraph that nodes may run, and writes its number, from 1.
 *
 * `callee` may run subgraphs that were attached to `graph` before, by `graph`'s numbers. Its pins are not taken over.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` where both are the same graph.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_attach(struct arenite_graph_t *graph,
                                      const struct arenite_graph_t *callee,
                                      uint32_t *out_subgraph);

/**
 * Writes when each tensor of a subgraph is alive. `options` may be null for the defaults.
 *
 * `lifetimes` has room for `count` records; the first `count` tensors are written.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an index out of range, a pin that fits nothing or more records asked
 * for than the subgraph has tensors; `ARENITE_ERR_UNSUPPORTED` where calls nest too deeply.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_lifetimes(const struct arenite_graph_t *graph,
                                         const struct arenite_graph_options_t *options,
                                         uint32_t subgraph,
                                         struct arenite_lifetime_t *lifetimes,
                                         uint64_t count);

/** Copies the record of the last failing call on this graph. */
ARENITE_NODISCARD
arenite_status_t arenite_graph_last_failure(const struct arenite_graph_t *graph,
                                            struct arenite_failure_t *out);

/**
 * Destroys a graph; null is allowed. Plans made from it stay valid.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_graph_destroy(struct arenite_graph_t *graph);

/* ---- planner ----------------------------------------------------------------------------------- */

/**
 * Creates a planner without buffers. `options` may be null for the defaults.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown strategy; `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_planner_destroy`. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_create(const struct arenite_planner_options_t *options,
                                        struct arenite_planner_t **out,
                                        struct arenite_failure_t *failure);

/**
 * Adds a buffer and writes its index, which counts up from 0.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for spans that are reversed, unordered or overlap, `ARENITE_ERR_ALIGNMENT`,
 * `ARENITE_ERR_OVERFLOW`; the planner then is as before.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_add(struct arenite_planner_t *planner,
                                     const struct arenite_buffer_desc_t *desc,
                                     uint32_t *out_index);

/**
 * Makes buffer `member` live at `delta` bytes into buffer `root`: a view, or a result written in place.
 *
 * The two may share bytes while both are alive; the class is placed as one block that is alive whenever a member is.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming both where they cannot be one class.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_alias(struct arenite_planner_t *planner,
                                       uint32_t member,
                                       uint32_t root,
                                       uint64_t delta);

/** Removes all buffers and keeps the options. */
ARENITE_NODISCARD arenite_status_t arenite_planner_clear(struct arenite_planner_t *planner);

/**
 * Places every added buffer.
 *
 * The planner keeps its buffers: more can be added and the whole planned again.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming two fixed offsets that collide; `ARENITE_ERR_CAPACITY` where the
 * options give a capacity and no plan that fits was found (`needed` is the best arena found, and the message says whether
 * it is proven that none fits); `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_plan_destroy`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_plan(struct arenite_planner_t *planner,
                                      struct arenite_plan_t **out);

/**
 * Verifies offsets from anywhere against the added buffers: one offset per buffer, in the order they were added.
 *
 * Writes the arena those offsets need. Returns: `ARENITE_OK`; else the record names the two buffers that are alive
 * together on the same bytes and the step (`needed` is the first byte both hold), or the buffer that misses its
 * alignment or fixed offset.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_check(const struct arenite_planner_t *planner,
                                       const uint64_t *offsets,
                                       uint64_t count,
                                       uint64_t *out_arena_bytes);

/** Copies the record of the last failing call on this planner. */
ARENITE_NODISCARD
arenite_status_t arenite_planner_last_failure(const struct arenite_planner_t *planner,
                                              struct arenite_failure_t *out);

/**
 * Destroys a planner; null is allowed. Plans made by it stay valid.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_planner_destroy(struct arenite_planner_t *planner);

/**
 * Adds the tensors of a graph as buffers, with their lifetimes, alignments and shared bytes, so that
 * `arenite_planner_fit`, `_replan`, `_regions` and `_check` can be asked about it.
 *
 * Tensors of the subgraphs it calls are added too. `buffers` gets the index of each tensor of subgraph 0 among the
 * planner's buffers, or `ARENITE_NO_INDEX` where it gets no bytes of the reusable arena; it is null with `count` 0, or
 * `count` is the number of those tensors. `options` may be null for the defaults. The graph may be changed or destroyed
 * afterwards. Steps are those of the graph's flattened execution, from 0: graphs added to one planner run side by side.
 * Where a node declares sharing beyond TFLite's (views, any input in place), no bytes are shared in place here.
 * Returns and errors as `arenite_planner_plan_graph`; also `ARENITE_ERR_ARGUMENT` for another `count`. Nothing is added
 * where it fails.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_add_graph(struct arenite_planner_t *planner,
                                           const struct arenite_graph_t *graph,
                                           const struct arenite_graph_options_t *options,
                                           uint32_t *buffers,
                                           uint64_t count);

/**
 * Finds the lifetimes of a graph and places its tensors. Buffers added to the planner play no part in it.
 *
 * `options` may be null for the defaults; with `ARENITE_GRAPH_REORDER` in them the plan may expect another execution order.
 * The graph may be changed or destroyed afterwards.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an index out of range or a pin that fits nothing, with the node or
 * tensor in the record; `ARENITE_ERR_UNKNOWN_SIZE` for a planned tensor whose size is unknown; `ARENITE_ERR_UNSUPPORTED`
 * where subgraph calls nest too deeply; `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_BUSY`.
 * Ownership: `*out` is the caller's until `arenite_plan_destroy`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_plan_graph(struct arenite_planner_t *planner,
                                            const struct arenite_graph_t *graph,
                                            const struct arenite_graph_options_t *options,
                                            struct arenite_plan_t **out);

/* ---- plan -------------------------------------------------------------------------------------- */

/** Writes the numbers of a plan. */
ARENITE_NODISCARD
arenite_status_t arenite_plan_info(const struct arenite_plan_t *plan,
                                   struct arenite_plan_info_t *out);

/**
 * Writes the offset of buffer `buffer`, by the index `arenite_planner_add` gave; 0 for a buffer of 0 bytes.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such buffer. For the plan of a graph use
 * `arenite_plan_tensor`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_plan_offset(const struct arenite_plan_t *plan,
                                     uint32_t buffer,
                                     uint64_t *out_offset);

/**
 * Writes where the bytes of a tensor are. A bare problem is subgraph 0, and its buffers are the tensors.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
 */
ARENITE_NODISCARD
arenite_status_t arenite_plan_tensor(const struct arenite_plan_t *plan,
                                     uint32_t subgraph,
                                     uint32_t tensor,
                                     struct arenite_plan_tensor_t *out);

/**
 * Writes exactly how many bytes a buffer at `base` must have for one of the plan's arenas: a buffer of that size works,
 * one byte less does not.
 *
 * `arena` is `ARENITE_ARENA_MAIN` or `ARENITE_ARENA_PERSISTENT`. `base` may be any address, also a misaligned one (then
 * the answer includes the bytes skipped), and null for an aligned one.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for another arena; `ARENITE_ERR_OVERFLOW` where the arena does not fit
 * this process.
 */
ARENITE_NODISCARD
arenite_status_t arenite_plan_required_bytes(const struct arenite_plan_t *plan,
                                             uint32_t arena,
                                             const void *base,
                                             size_t *out_bytes);

/**
 * Verifies a plan again: no two buffers that are alive together share a byte, and every alignment and fixed offset is met.
 *
 * The verifier shares no code with the strategies. Returns: `ARENITE_OK`; else the record names the two buffers.
 */
ARENITE_NODISCARD
arenite_status_t arenite_plan_check(const struct arenite_plan_t *plan);

/** Copies the record of the last failing call on this plan. */
ARENITE_NODISCARD
arenite_status_t arenite_plan_last_failure(const struct arenite_plan_t *plan,
                                           struct arenite_failure_t *out);

/**
 * Destroys a plan; null is allowed. Arenas made from it stay valid.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_plan_destroy(struct arenite_plan_t *plan);

/* ---- planner ----------------------------------------------------------------------------------- */

/**
 * Asks whether the added buffers can be placed in `capacity` bytes, and explains the answer.
 *
 * This takes the place of the capacity in the planner's options. That the buffers do not fit is an answer and not an
 * error. `marks` gets the `ARENITE_FIT_OUTSIDE` and `ARENITE_FIT_ALIVE` bits of every buffer, in the order they were
 * added; it is null with `mark_count` 0, or `mark_count` is the number of buffers. `out_plan` gets the best plan found,
 * whatever the verdict, and may be null.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` naming two fixed offsets that collide, or for another `mark_count`;
 * `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out_plan` is the caller's until `arenite_plan_destroy`. Threads: exclusive use of `planner`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_fit(struct arenite_planner_t *planner,
                                     uint64_t capacity,
                                     uint32_t *marks,
                                     uint64_t mark_count,
                                     struct arenite_fit_t *out,
                                     struct arenite_plan_t **out_plan);

/**
 * Places every added buffer anew, with the plan that was made before sizes or lifetimes changed.
 *
 * Buffers are matched by index, so the buffers of `old` come first, in the same order; further ones are new. Where the
 * old offsets still are a valid plan they are kept as they are: buffers that only shrank never need a larger arena.
 * Otherwise `keep` decides. `out_moved` gets the number of buffers of at least one byte whose offset is another than in
 * `old`, new ones included; 0 means that every pointer into the arena stays right.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for an unknown `keep`, for an `old` that is the plan of a graph, or naming
 * two fixed offsets that collide; `ARENITE_ERR_CAPACITY` as for `arenite_planner_plan`; `ARENITE_ERR_OVERFLOW`;
 * `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_plan_destroy`; `old` stays the caller's and is only read.
 * Threads: exclusive use of `planner`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_replan(struct arenite_planner_t *planner,
                                        const struct arenite_plan_t *old,
                                        uint32_t keep,
                                        struct arenite_plan_t **out,
                                        uint64_t *out_moved);

/**
 * Assigns every added buffer to one of several memories and places it there.
 *
 * `capacities` are the sizes of 1 to 32 regions in bytes, in order of preference (the fastest first);
 * `ARENITE_NO_AMOUNT` is a region without a limit. `wishes` has one entry per buffer, or is null with `wish_count` 0:
 * then every buffer may be anywhere with a benefit of 1. Where a region is full, the buffers with the least benefit per
 * byte and step go to the next one they are allowed in. Members of an alias class stay together: they are allowed where
 * all of them are, and their benefits add up.
 *
 * `places` gets one entry per buffer, in the order they were added, and `usage` one per region; `usage` may be null.
 * The capacity in the planner's options plays no part.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` naming a buffer that no region it is allowed in has room for, with the
 * step and the bytes; `ARENITE_ERR_ARGUMENT` for counts that do not match, or a buffer that is allowed nowhere;
 * `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_NO_MEMORY`. Threads: exclusive use of `planner`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_planner_regions(struct arenite_planner_t *planner,
                                         const uint64_t *capacities,
                                         uint64_t region_count,
                                         const struct arenite_region_wish_t *wishes,
                                         uint64_t wish_count,
                                         struct arenite_region_place_t *places,
                                         uint64_t place_count,
                                         struct arenite_region_usage_t *usage);

/* ---- report ------------------------------------------------------------------------------------ */

/**
 * Makes the report of a plan.
 *
 * `names` may be null: tensors and steps then go by their numbers. Its functions are called during this call only, for
 * every tensor and every step.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` for a `struct_size` that cannot be;
 * `ARENITE_ERR_BUSY`; `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_report_destroy`. The plan may be destroyed before the report.
 */
ARENITE_NODISCARD
arenite_status_t arenite_report_create(const struct arenite_plan_t *plan,
                                       const struct arenite_report_names_t *names,
                                       struct arenite_report_t **out,
                                       struct arenite_failure_t *failure);

/**
 * Writes a report in one of the `ARENITE_REPORT_` formats, in pieces of up to a few kilobytes.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` for a number that is no format;
 * `ARENITE_ERR_CAPACITY` where the callback stopped, whatever it had taken before.
 */
ARENITE_NODISCARD
arenite_status_t arenite_report_write(const struct arenite_report_t *report,
                                      uint32_t format,
                                      arenite_write_fn write,
                                      void *user);

/** Copies the record of the last failing call on this report. */
ARENITE_NODISCARD
arenite_status_t arenite_report_last_failure(const struct arenite_report_t *report,
                                             struct arenite_failure_t *out);

/** Destroys a report; null is allowed. */
arenite_status_t arenite_report_destroy(struct arenite_report_t *report);

/* ---- arena ------------------------------------------------------------------------------------- */

/**
 * Creates an arena for a plan, without memory yet. `options` may be null: both arenas come from the system.
 *
 * The plan may be destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`,
 * `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_arena_destroy`; a caller's buffer is kept
 * until then. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_arena_create(const struct arenite_plan_t *plan,
                                      const struct arenite_arena_options_t *options,
                                      struct arenite_arena_t **out,
                                      struct arenite_failure_t *failure);

/**
 * Takes memory: one block for the reusable arena and one for the persistent one. Does nothing where it is held.
 *
 * The persistent arena is zeroed when it is first taken; the reusable one is not initialised.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` with the exact amount where a caller's buffer is too small;
 * `ARENITE_ERR_NO_MEMORY`; `ARENITE_ERR_ALIGNMENT` where a callback missed the alignment. The arena then is as before.
 */
ARENITE_NODISCARD arenite_status_t arenite_arena_commit(struct arenite_arena_t *arena);

/** Gives the reusable arena's memory back. Pointers into it end; the persistent arena and its contents stay. */
ARENITE_NODISCARD arenite_status_t arenite_arena_release(struct arenite_arena_t *arena);

/**
 * Writes the address and size of a tensor's bytes; `out_bytes` may be null. Both are null and 0 for a tensor without bytes
 * here.
 *
 * A pointer is valid until `arenite_arena_generation` changes. A bare problem is subgraph 0, its buffers the tensors.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where the arena has no memory: commit first; `ARENITE_ERR_ARGUMENT` where
 * there is no such tensor.
 */
ARENITE_NODISCARD
arenite_status_t arenite_arena_resolve(const struct arenite_arena_t *arena,
                                       uint32_t subgraph,
                                       uint32_t tensor,
                                       void **out_data,
                                       size_t *out_bytes);

/**
 * Writes the `data` pointer of every planned tensor of a subgraph into the engine's own tensor array.
 *
 * Tensors in either arena get their address; tensors of the arenas without bytes get null; bound constants get their
 * data; all others are left alone. Nothing is written on an error.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_STALE`: commit first; `ARENITE_ERR_ARGUMENT` for an unknown layout or a count that
 * is not the subgraph's.
 */
ARENITE_NODISCARD
arenite_status_t arenite_arena_assign(const struct arenite_arena_t *arena,
                                      uint32_t subgraph,
                                      uint32_t layout,
                                      void *tensors,
                                      uint64_t count);

/**
 * Says where a constant's data is, for instance in the mapped model file. It is referenced, not copied, and must outlive
 * the arena; the arena never writes to it.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY` where `bytes` is
 * less than the tensor's size.
 */
ARENITE_NODISCARD
arenite_status_t arenite_arena_bind_constant(struct arenite_arena_t *arena,
                                             uint32_t subgraph,
                                             uint32_t tensor,
                                             const void *data,
                                             size_t bytes);

/**
 * Writes a number that changes exactly when a tensor's address may have changed: by a commit that takes memory, and by a
 * release.
 */
ARENITE_NODISCARD
arenite_status_t arenite_arena_generation(const struct arenite_arena_t *arena,
                                          uint64_t *out_generation);

/** Writes how many bytes an arena holds at the moment: `ARENITE_ARENA_MAIN` or `ARENITE_ARENA_PERSISTENT`. */
ARENITE_NODISCARD
arenite_status_t arenite_arena_committed_bytes(const struct arenite_arena_t *arena,
                                               uint32_t which,
                                               size_t *out_bytes);

/** Copies the record of the last failing call on this arena. */
ARENITE_NODISCARD
arenite_status_t arenite_arena_last_failure(const struct arenite_arena_t *arena,
                                            struct arenite_failure_t *out);

/**
 * Destroys an arena and gives its memory back; null is allowed. All pointers into it end.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_arena_destroy(struct arenite_arena_t *arena);

/* ---- pool -------------------------------------------------------------------------------------- */

/**
 * Creates a pool. `options` may be null: memory comes from the system as it is needed, without limit.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_NO_MEMORY`; `ARENITE_ERR_CAPACITY`
 * where the buffer is too small for one block, or `first_region` above `cap`, with the exact amount.
 * Ownership: `*out` is the caller's until `arenite_pool_destroy`; a buffer is kept until then. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_create(const struct arenite_pool_options_t *options,
                                     struct arenite_pool_t **out,
                                     struct arenite_failure_t *failure);

/**
 * Destroys a pool and gives its memory back. Null is allowed.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while blocks are live (their number is `needed` in the failure record) or a
 * frame has not ended: nothing is destroyed then. A pool that another one falls back on lives on until that one is gone.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_destroy(struct arenite_pool_t *pool,
                                      struct arenite_failure_t *failure);

/**
 * Adds a buffer (kept) as a region. At most 64 regions.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where it is too small for one block or there are 64 regions.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_lend(const struct arenite_pool_t *pool,
                                   void *base,
                                   size_t bytes,
                                   struct arenite_failure_t *failure);

/**
 * Writes how many bytes can be used at `data`, at least those asked for.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where no live block starts there.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_usable_size(const struct arenite_pool_t *pool,
                                          const void *data,
                                          size_t *out_bytes);

/** Writes 1 where the address lies in the pool's memory or is a block its fallback served, else 0. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_owns(const struct arenite_pool_t *pool,
                                   const void *data,
                                   uint32_t *out_owns);

/**
 * Writes `bytes` rounded up to what a block holds: asking for so many costs no more memory.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_good_size(const struct arenite_pool_t *pool,
                                        size_t bytes,
                                        size_t *out_bytes);

/**
 * Gives back what is free beyond `keep` bytes: idle regions to their source, free pages to the system.
 *
 * Other threads may go on using the pool. `out_bytes` may be null; else the bytes given back are written.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_trim(const struct arenite_pool_t *pool,
                                   uint64_t keep,
                                   uint64_t *out_bytes);

/**
 * Allocates `bytes` bytes at a multiple of `alignment`: any power of two, 0 for 128.
 *
 * Contents are unspecified. 0 bytes give a block with an address of its own.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` or `ARENITE_ERR_NO_MEMORY` with what was asked for and the largest free
 * block in the failure record; `ARENITE_ERR_ALIGNMENT`. Ownership: `*out` is the caller's until `arenite_pool_free`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_alloc(const struct arenite_pool_t *pool,
                                    size_t bytes,
                                    size_t alignment,
                                    void **out,
                                    struct arenite_failure_t *failure);

/** The same, filled with zeros. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_alloc_zeroed(const struct arenite_pool_t *pool,
                                           size_t bytes,
                                           size_t alignment,
                                           void **out,
                                           struct arenite_failure_t *failure);

/**
 * The same as `arenite_pool_alloc`, with what is known of the block's future: `headroom` bytes more that
 * `arenite_pool_realloc` will use (they count as live), and `hint`, one of `ARENITE_POOL_HINT_`. A wrong hint costs memory
 * and nothing else. Returns: as `arenite_pool_alloc`; `ARENITE_ERR_ARGUMENT` for another hint.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_alloc_hint(const struct arenite_pool_t *pool,
                                         size_t bytes,
                                         size_t alignment,
                                         size_t headroom,
                                         uint32_t hint,
                                         void **out,
                                         struct arenite_failure_t *failure);

/**
 * Resizes a block: contents up to the smaller size and the alignment are kept. `data` may be null: allocates at 128.
 *
 * `headroom` bytes more are reserved if it has to grow, so that the next growths need no copy. On failure the old block
 * is as it was. Returns: as `arenite_pool_alloc`; `ARENITE_ERR_ARGUMENT` where no live block starts at `data`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_realloc(const struct arenite_pool_t *pool,
                                      void *data,
                                      size_t bytes,
                                      size_t headroom,
                                      void **out,
                                      struct arenite_failure_t *failure);

/** The same for a block from `arenite_pool_alloc_zeroed`: every byte past the old size is 0. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_realloc_zeroed(const struct arenite_pool_t *pool,
                                             void *data,
                                             size_t bytes,
                                             void **out,
                                             struct arenite_failure_t *failure);

/**
 * Frees a block, whichever thread allocated it. Null does nothing.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where no live block of this pool starts at `data` (freed before, inside a
 * block, of another pool, never allocated), or with guards on where the block was written past its end. Nothing has
 * changed then.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_free(const struct arenite_pool_t *pool,
                                   void *data,
                                   struct arenite_failure_t *failure);

/** Frees a block of which the caller knows the size it asked for last: `ARENITE_ERR_ARGUMENT` for another one, too. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_free_sized(const struct arenite_pool_t *pool,
                                         void *data,
                                         size_t bytes,
                                         struct arenite_failure_t *failure);

/** Fills in the statistics. Set `struct_size` and `flags` of `out` first. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_stats(const struct arenite_pool_t *pool,
                                    struct arenite_pool_stats_t *out);

/**
 * Checks the whole pool: its records, and with guards and poison on every block. Other threads wait meanwhile.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the host wrote past a block (its address is `needed`, its size
 * `available` in the failure record) or to a freed one (`needed` is its address, or how many such blocks have left the
 * quarantine); `ARENITE_ERR_INTERNAL` where the records are wrong.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_check(const struct arenite_pool_t *pool,
                                    struct arenite_failure_t *failure);

/** Shows every block of every region in order of address, free ones too (`live` 0). Other threads wait meanwhile. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_walk(const struct arenite_pool_t *pool,
                                   arenite_block_fn visit,
                                   void *user);

/** Shows every live block, oldest first, of a pool with a debug flag set; without one it shows none. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_leaks(const struct arenite_pool_t *pool,
                                    arenite_leak_fn visit,
                                    void *user);

/** Names a live block for `arenite_pool_leaks`. Does nothing in a pool without a debug flag. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_set_tag(const struct arenite_pool_t *pool,
                                      const void *data,
                                      uint64_t tag);

/**
 * Fills in a table of functions over a pool. Set `struct_size` and `flags` of `out` first.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`. Ownership: none changes hands; the pool has to outlive
 * the table.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_allocator(const struct arenite_pool_t *pool,
                                        struct arenite_allocator_t *out);

/**
 * Writes every request from now on to a new file (an existing one is overwritten), until `arenite_pool_trace_stop` or the
 * pool's end. One event a line: `a ID BYTES ALIGNMENT`, `f ID`, `r ID NEWBYTES`; `# frame SIGNATURE` where a frame begins.
 *
 * Meanwhile frames that begin are not served from their plans, so that nothing is missing. Blocks live already are left
 * out. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`; `ARENITE_ERR_ARGUMENT` where the file cannot be created.
 */
ARENITE_NODISCARD
arenite_status_t arenite_pool_trace_to_file(const struct arenite_pool_t *pool,
                                            const char *path,
                                            struct arenite_failure_t *failure);

/** The same to a function, with `user` as its first argument. `ARENITE_ERR_NULL` without a function. */
ARENITE_NODISCARD
arenite_status_t arenite_pool_trace_to(const struct arenite_pool_t *pool,
                                       arenite_trace_fn write,
                                       void *user);

/**
 * Ends a recording; blocks still live are written as freed, so that the trace can be replayed in a loop.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where nothing is being recorded; `ARENITE_ERR_NO_MEMORY` where the file
 * could not be written whole.
 */
ARENITE_NODISCARD arenite_status_t arenite_pool_trace_stop(const struct arenite_pool_t *pool);

/* ---- frame ------------------------------------------------------------------------------------- */

/**
 * Begins a frame. Frames of one signature are expected to make the same requests in the same order: the first one is
 * recorded, the next ones are served from a plan, and a sequence that has changed is recorded anew.
 *
 * The signature is any number the host derives from what decides the sequence: the model and its input shapes. Several
 * frames may be in flight, of one signature too. 16 plans are kept, and the least recently used makes room. A plan's area
 * stays for the next frame, and is given back before the pool refuses a request. More than 16 frames of a signature at once,
 * a sequence of more than 262144 requests, and a pool that is traced or has a debug flag are served without a plan.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_frame_end`; the pool cannot
 * be destroyed before that. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_frame_begin(const struct arenite_pool_t *pool,
                                     uint64_t signature,
                                     struct arenite_frame_t **out,
                                     struct arenite_failure_t *failure);

/**
 * Ends a frame and destroys it. Blocks still live stay so and are freed through the pool. Null is allowed.
 *
 * The first frame of a signature is planned here, which takes some milliseconds.
 */
ARENITE_NODISCARD arenite_status_t arenite_frame_end(struct arenite_frame_t *frame);

/** Allocates as `arenite_pool_alloc` does, from the frame's plan where it allows. */
ARENITE_NODISCARD
arenite_status_t arenite_frame_alloc(const struct arenite_frame_t *frame,
                                     size_t bytes,
                                     size_t alignment,
                                     void **out,
                                     struct arenite_failure_t *failure);

/**
 * Resizes a block of the frame as `arenite_pool_realloc` does, except that `data` must not be null and a smaller size changes
 * nothing; `alignment` is the one it was allocated with.
 */
ARENITE_NODISCARD
arenite_status_t arenite_frame_realloc(const struct arenite_frame_t *frame,
                                       void *data,
                                       size_t bytes,
                                       size_t alignment,
                                       void **out,
                                       struct arenite_failure_t *failure);

/** Frees a block as `arenite_pool_free` does, and faster for the frame's own. Null does nothing. */
ARENITE_NODISCARD
arenite_status_t arenite_frame_free(const struct arenite_frame_t *frame,
                                    void *data,
                                    struct arenite_failure_t *failure);

/**
 * Saves the plan of a signature: writes as many bytes as `capacity` allows to `buffer`, and always how many there are.
 *
 * Call with a capacity of 0 first. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no plan.
 */
ARENITE_NODISCARD
arenite_status_t arenite_frame_save(const struct arenite_pool_t *pool,
                                    uint64_t signature,
                                    void *buffer,
                                    size_t capacity,
                                    size_t *out_bytes);

/**
 * Loads a saved plan for a signature. Nothing in it is trusted: `ARENITE_ERR_ARGUMENT` for anything that is not a valid
 * plan.
 */
ARENITE_NODISCARD
arenite_status_t arenite_frame_load(const struct arenite_pool_t *pool,
                                    uint64_t signature,
                                    const void *saved,
                                    size_t bytes,
                                    struct arenite_failure_t *failure);

/** Fills in the statistics of a pool's frames. Set `struct_size` and `flags` of `out` first. */
ARENITE_NODISCARD
arenite_status_t arenite_frame_stats(const struct arenite_pool_t *pool,
                                     struct arenite_frame_stats_t *out);

/**
 * Plans the frames of a signature before the first one runs, so that already that one is served from the plan.
 *
 * `requests` are all that a frame will make, in order. A resize that grows is a new request, and the free of the old block
 * comes right after it. `effort` is the number of search nodes to spend at most, 0 for those that the end of a recorded
 * frame spends. A plan that turns out wrong costs memory and time, never correctness: what does not match is served as
 * ever, and a frame that misses twice in a row is recorded anew.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for no requests, a block freed before it is allocated or after the last
 * request, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_OVERFLOW`, with the request as the failure's buffer where it is the fault of
 * one; `ARENITE_ERR_NO_MEMORY`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_frame_plan(const struct arenite_pool_t *pool,
                                    uint64_t signature,
                                    const struct arenite_frame_request_t *requests,
                                    uint64_t count,
                                    uint64_t effort,
                                    struct arenite_failure_t *failure);

/* ---- heap -------------------------------------------------------------------------------------- */

/**
 * Creates a heap with everything free. Its records are in this process, 32 bytes for each block and each gap.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for less than 128 bytes; `ARENITE_ERR_CAPACITY` for 512 GiB or more;
 * `ARENITE_ERR_ALIGNMENT` for a base that is not a multiple of 128; `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the
 * caller's until `arenite_heap_destroy`. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_create(const struct arenite_heap_options_t *options,
                                     struct arenite_heap_t **out,
                                     struct arenite_failure_t *failure);

/**
 * Destroys a heap. Null is allowed. `ARENITE_ERR_BUSY` while blocks are live (their number is `needed` in the failure
 * record): nothing is destroyed then.
 */
ARENITE_NODISCARD arenite_status_t arenite_heap_destroy(struct arenite_heap_t *heap, struct arenite_failure_t *failure);

/**
 * Allocates `bytes` bytes at a multiple of `alignment`: any power of two, 0 for 128. 0 bytes give a block of its own.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` with what was asked for and the largest free block;
 * `ARENITE_ERR_ALIGNMENT`; `ARENITE_ERR_NO_MEMORY` where there is no record left for the block.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_alloc(const struct arenite_heap_t *heap,
                                    uint64_t bytes,
                                    uint64_t alignment,
                                    struct arenite_heap_block_t *out,
                                    struct arenite_failure_t *failure);

/**
 * The same with what is known of the block's future, as for `arenite_pool_alloc_hint`: `headroom` bytes more that
 * `arenite_heap_resize` can use, and `hint`, one of `ARENITE_POOL_HINT_`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_alloc_hint(const struct arenite_heap_t *heap,
                                         uint64_t bytes,
                                         uint64_t alignment,
                                         uint64_t headroom,
                                         uint32_t hint,
                                         struct arenite_heap_block_t *out,
                                         struct arenite_failure_t *failure);

/**
 * Frees a block. The handle is stale from then on: no later block is ever named by it.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it names no live block of this heap (freed before, made up, of
 * a heap with another `region` number): nothing has changed then.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_free(const struct arenite_heap_t *heap,
                                   struct arenite_heap_block_t block,
                                   struct arenite_failure_t *failure);

/**
 * Resizes a block where it is: offset and handle stay. `headroom` bytes more are kept for the next growth.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the free space behind it does not suffice, with the bytes it could
 * have there: nothing has changed then, and the caller allocates anew and copies; `ARENITE_ERR_ARGUMENT` for a handle that
 * names no live block.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_resize(const struct arenite_heap_t *heap,
                                     struct arenite_heap_block_t block,
                                     uint64_t bytes,
                                     uint64_t headroom,
                                     struct arenite_failure_t *failure);

/**
 * Writes the handle of the live block that starts at `offset`.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where none starts there; `ARENITE_ERR_UNSUPPORTED` without
 * `ARENITE_HEAP_FIND`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_find(const struct arenite_heap_t *heap,
                                   uint64_t offset,
                                   struct arenite_heap_block_t *out);

/**
 * Writes how many bytes a live block holds and how many were asked for; either pointer may be null.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a handle that names no live block.
 */
ARENITE_NODISCARD
arenite_status_t arenite_heap_size(const struct arenite_heap_t *heap,
                                   struct arenite_heap_block_t block,
                                   uint64_t *out_bytes,
                                   uint64_t *out_requested);

/** Fills in the statistics. Set `struct_size` and `flags` of `out` first. */
ARENITE_NODISCARD
arenite_status_t arenite_heap_stats(const struct arenite_heap_t *heap,
                                    struct arenite_heap_stats_t *out);

/** Checks the whole structure; other threads wait meanwhile. `ARENITE_ERR_INTERNAL` where it is wrong. */
ARENITE_NODISCARD
arenite_status_t arenite_heap_check(const struct arenite_heap_t *heap,
                                    struct arenite_failure_t *failure);

/** Shows every block in order of offset, free ones too. Other threads wait meanwhile. */
ARENITE_NODISCARD
arenite_status_t arenite_heap_walk(const struct arenite_heap_t *heap,
                                   arenite_heap_walk_fn visit,
                                   void *user);

/* ---- bare -------------------------------------------------------------------------------------- */

/**
 * Writes how many bytes of workspace `arenite_bare_plan` needs for `count` tensors, at any address.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`. Threads: any.
 */
ARENITE_NODISCARD arenite_status_t arenite_bare_workspace_bytes(uint64_t count, size_t *out_bytes);

/**
 * Writes how many bytes of workspace `arenite_bare_place` needs for `count` rows, at any address: less than
 * `arenite_bare_workspace_bytes` says.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_OVERFLOW`. Threads: any.
 */
ARENITE_NODISCARD arenite_status_t arenite_bare_place_bytes(uint64_t count, size_t *out_bytes);

/**
 * Plans an engine's graph without a heap: lifetimes, in-place sharing and one of the greedy rules.
 *
 * `strategy` is `ARENITE_STRATEGY_FIRST_FIT`, `_GREEDY_BY_SIZE` or `_TFLM_GREEDY`; `options` may be null for the defaults.
 * `offsets` receives one offset per tensor, `ARENITE_NO_AMOUNT` for a tensor without bytes in the reusable arena. The
 * workspace is scratch, of any address; its contents mean nothing afterwards.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the workspace or `offsets` is too small;
 * `ARENITE_ERR_ARGUMENT` for an index out of range, named with its node; `ARENITE_ERR_OVERFLOW`. `offsets` and
 * `out_arena_bytes` are written only on `ARENITE_OK`. `failure` may be null. Threads: any.
 */
ARENITE_NODISCARD
arenite_status_t arenite_bare_plan(const struct arenite_lite_desc_t *desc,
                                   const struct arenite_graph_options_t *options,
                                   uint32_t strategy,
                                   void *workspace,
                                   size_t bytes,
                                   uint64_t *offsets,
                                   uint64_t count,
                                   uint64_t *out_arena_bytes,
                                   struct arenite_failure_t *failure);

/**
 * Places rows without a heap by one of the greedy rules.
 *
 * The workspace has at least `arenite_bare_place_bytes`. `offsets` receives one offset per row, 0 for a row of 0 bytes;
 * it must not overlap the workspace or the rows. Returns and the rest as `arenite_bare_plan`;
 * `ARENITE_ERR_ARGUMENT` also for a row that ends before it begins and for two fixed rows that collide without
 * `ARENITE_ROW_SHARED` (both named).
 */
ARENITE_NODISCARD
arenite_status_t arenite_bare_place(uint32_t strategy,
                                    const struct arenite_row_t *rows,
                                    uint64_t count,
                                    void *workspace,
                                    size_t bytes,
                                    uint64_t *offsets,
                                    uint64_t *out_arena_bytes,
                                    struct arenite_failure_t *failure);

/**
 * Writes how many bytes of memory, at any address, `arenite_bare_heap_init` needs for these options: about 2.3 KiB, 64 bytes
 * for every block of `max_blocks`, and 4 for every 4 KiB of the region with `ARENITE_HEAP_FIND`.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for less than 128 bytes or no `max_blocks`; `ARENITE_ERR_CAPACITY` for
 * 128 MiB or more. Threads: any.
 */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_bytes(const struct arenite_heap_options_t *options,
                                         size_t *out_bytes);

/**
 * Makes a heap with everything free in `memory` (kept), which must not move. There is nothing to destroy.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the memory is too small, with the exact amount; and as
 * `arenite_bare_heap_bytes` and, for `base`, `ARENITE_ERR_ALIGNMENT`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_init(void *memory,
                                        size_t bytes,
                                        const struct arenite_heap_options_t *options,
                                        struct arenite_bare_heap_t **out,
                                        struct arenite_failure_t *failure);

/** Allocates as `arenite_heap_alloc_hint` does; `ARENITE_ERR_NO_MEMORY` where the records are used up. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_alloc(struct arenite_bare_heap_t *heap,
                                         uint64_t bytes,
                                         uint64_t alignment,
                                         uint64_t headroom,
                                         uint32_t hint,
                                         struct arenite_heap_block_t *out,
                                         struct arenite_failure_t *failure);

/** Frees a block as `arenite_heap_free` does. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_free(struct arenite_bare_heap_t *heap,
                                        struct arenite_heap_block_t block,
                                        struct arenite_failure_t *failure);

/** Resizes a block where it is, as `arenite_heap_resize` does. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_resize(struct arenite_bare_heap_t *heap,
                                          struct arenite_heap_block_t block,
                                          uint64_t bytes,
                                          uint64_t headroom,
                                          struct arenite_failure_t *failure);

/** Writes the handle of the live block that starts at `offset`, as `arenite_heap_find` does. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_find(struct arenite_bare_heap_t *heap,
                                        uint64_t offset,
                                        struct arenite_heap_block_t *out,
                                        struct arenite_failure_t *failure);

/** Fills in the statistics. Set `struct_size` and `flags` of `out` first. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_stats(struct arenite_bare_heap_t *heap,
                                         struct arenite_heap_stats_t *out);

/** Checks the whole structure. Linear in the number of blocks. `ARENITE_ERR_INTERNAL` where it is wrong. */
ARENITE_NODISCARD
arenite_status_t arenite_bare_heap_check(struct arenite_bare_heap_t *heap,
                                         struct arenite_failure_t *failure);

/* ---- heap -------------------------------------------------------------------------------------- */

/** The offset of a block from the region's base, in bytes. Threads: any. */
ARENITE_NODISCARD uint64_t arenite_heap_offset(struct arenite_heap_block_t block);

/* ---- incremental ------------------------------------------------------------------------------- */

/**
 * Creates an incremental planner for a copy of the graph (subgraph 0 of it), without a plan yet. `options` may be null.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_incremental_destroy`; caller's buffers and callbacks are kept until then.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_create(const struct arenite_graph_t *graph,
                                            const struct arenite_incremental_options_t *options,
                                            struct arenite_incremental_t **out,
                                            struct arenite_failure_t *failure);

/**
 * Replaces the copy of the graph, for instance when temporaries were added. Places stay; plan again where more changed than
 * sizes, kinds and added tensors.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it has fewer tensors or nodes than before.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_set_graph(struct arenite_incremental_t *incremental,
                                               const struct arenite_graph_t *graph);

/**
 * Gives a tensor another size in bytes and another kind (`kAreniteArenaRw` and so on). Nothing is placed before the next
 * execution of its node.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_set_tensor(struct arenite_incremental_t *incremental,
                                                uint32_t tensor,
                                                uint64_t bytes,
                                                uint32_t allocation_type);

/**
 * Finds lifetimes and in-place sharing, and forgets all places. TFLite's PlanAllocations.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a bad index and for a tensor that is written after its last use; there is
 * no plan then.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_plan(struct arenite_incremental_t *incremental);

/**
 * Places the tensors of nodes `first` to `last`, both inclusive, that have no place or outgrew theirs, and takes the memory.
 * TFLite's ExecuteAllocations; `last` is -1 for a graph without nodes.
 *
 * Nothing placed before moves or loses its contents, with or without a reset. Returns: `ARENITE_OK`;
 * `ARENITE_ERR_UNKNOWN_SIZE`, `ARENITE_ERR_OVERFLOW`, `ARENITE_ERR_CAPACITY`, `ARENITE_ERR_NO_MEMORY`: all places are as
 * before, and so is memory whose contents must survive.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_execute(struct arenite_incremental_t *incremental,
                                             int32_t first,
                                             int32_t last);

/** Forgets all places and keeps lifetimes and memory. TFLite's ResetAllocations. Persistent contents follow their tensors. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_reset(struct arenite_incremental_t *incremental);

/**
 * Forgets the places of main-arena tensors that begin after `node`; the rest stays, contents too. TFLite's
 * ResetAllocationsAfter.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_reset_after(struct arenite_incremental_t *incremental,
                                                 int32_t node);

/** Gives the main arena's memory back and keeps the places. TFLite's ReleaseNonPersistentMemory. */
ARENITE_NODISCARD arenite_status_t arenite_incremental_release(struct arenite_incremental_t *incremental);

/**
 * Takes the main arena's memory again, every tensor at its old offset; does nothing where it is held. TFLite's
 * AcquireNonPersistentMemory.
 */
ARENITE_NODISCARD arenite_status_t arenite_incremental_acquire(struct arenite_incremental_t *incremental);

/** Gives back what the main arena holds beyond what is placed; contents survive. */
ARENITE_NODISCARD arenite_status_t arenite_incremental_shrink_to_fit(struct arenite_incremental_t *incremental);

/** Writes 1 where the main arena is committed, which it also is at 0 bytes, else 0. TFLite's HasNonPersistentMemory. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_has_memory(const struct arenite_incremental_t *incremental,
                                                uint32_t *out);

/**
 * Writes the address and size of a tensor's bytes; null and 0 for a tensor without any.
 *
 * Valid until `arenite_incremental_generation` changes. Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where the tensor has
 * outgrown its place: execute its node first; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_resolve(const struct arenite_incremental_t *incremental,
                                             uint32_t tensor,
                                             void **out_data,
                                             size_t *out_bytes);

/** Writes a number that changes exactly when the address of a tensor does. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_generation(const struct arenite_incremental_t *incremental,
                                                uint64_t *out_generation);

/** Writes how many bytes the main and the persistent arena hold. TFLite's GetAllocInfo. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_allocation_info(const struct arenite_incremental_t *incremental,
                                                     size_t *out_main_bytes,
                                                     size_t *out_persistent_bytes);

/**
 * Writes where the arena of tensors of a kind begins: the main arena for `kAreniteArenaRw`, the persistent one for
 * `kAreniteArenaRwPersistent`; null for all other kinds and while the arena holds no bytes. TFLite's BasePointer.
 *
 * Valid until `arenite_incremental_generation` changes.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_base(const struct arenite_incremental_t *incremental,
                                          uint32_t allocation_type,
                                          void **out_base);

/** Copies the record of the last failing call. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_last_failure(const struct arenite_incremental_t *incremental,
                                                  struct arenite_failure_t *out);

/** Destroys an incremental planner and gives its memory back; null is allowed. All its addresses end. */
arenite_status_t arenite_incremental_destroy(struct arenite_incremental_t *incremental);

/** Writes the numbers of an incremental planner. */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_stats(const struct arenite_incremental_t *incremental,
                                           struct arenite_incremental_stats_t *out);

/**
 * Writes a row per node executed so far with the bytes of the main arena alive meanwhile: as many as `capacity` allows, and how
 * many there are.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_node_bytes(const struct arenite_incremental_t *incremental,
                                                struct arenite_node_row_t *rows,
                                                uint64_t capacity,
                                                uint64_t *out_count);

/**
 * With `ARENITE_INCREMENTAL_GUARD`: call before each node runs, in order.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` without guard mode; `ARENITE_ERR_STALE` without memory;
 * `ARENITE_ERR_ARGUMENT` where there is no such node.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_guard_before(struct arenite_incremental_t *incremental,
                                                  int32_t node);

/**
 * With `ARENITE_INCREMENTAL_GUARD`: call after each node.
 *
 * Returns as `arenite_incremental_guard_before`, and `ARENITE_ERR_ARGUMENT` where the node wrote past the end of a tensor: the
 * record names the node, the tensor, and in `needed` how many bytes past the end the last damage lies. The next node is not
 * blamed for it.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_guard_after(struct arenite_incremental_t *incremental,
                                                 int32_t node);

/**
 * Writes what is placed as text that ends in a zero: the arenas, each tensor's life span and bytes, the five fullest nodes.
 * TFLite's DumpDebugInfo.
 *
 * At most `capacity` bytes are written, the text cut to fit; `*out_length` is the length of the whole text without its zero.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_dump(const struct arenite_incremental_t *incremental,
                                          char *text,
                                          uint64_t capacity,
                                          uint64_t *out_length);

/* ---- instances --------------------------------------------------------------------------------- */

/**
 * Creates instances of a plan. Persistent memory is taken and zeroed now, reusable arenas when they are first needed.
 *
 * The plan may be destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_NULL`, `ARENITE_ERR_ARGUMENT`,
 * `ARENITE_ERR_CAPACITY`, `ARENITE_ERR_NO_MEMORY`. Ownership: `*out` is the caller's until `arenite_instances_destroy`;
 * buffers and callbacks are kept until that and the last run are destroyed.
 */
ARENITE_NODISCARD
arenite_status_t arenite_instances_create(const struct arenite_plan_t *plan,
                                          const struct arenite_instances_options_t *options,
                                          struct arenite_instances_t **out,
                                          struct arenite_failure_t *failure);

/**
 * Says where a constant is for all instances. Kept: referenced, not copied; it outlives them and every run.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY`. Any thread;
 * `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_instances_bind_constant(const struct arenite_instances_t *instances,
                                                 uint32_t subgraph,
                                                 uint32_t tensor,
                                                 const void *data,
                                                 size_t bytes,
                                                 struct arenite_failure_t *failure);

/**
 * Lends an arena to an instance. With `wait` 1 the call waits until one is free, with 0 it does not.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` where the instance runs already, or with `wait` 0 where all arenas are lent;
 * `ARENITE_ERR_ARGUMENT` where there is no such instance; `ARENITE_ERR_NO_MEMORY`. Any thread; `failure` may be null.
 * Ownership: `*out` is the caller's until `arenite_run_destroy`, and stays valid when the instances are destroyed before.
 */
ARENITE_NODISCARD
arenite_status_t arenite_instances_acquire(const struct arenite_instances_t *instances,
                                           uint64_t instance,
                                           uint32_t wait,
                                           struct arenite_run_t **out,
                                           struct arenite_failure_t *failure);

/** Writes what the instances hold at this moment. Any thread; `failure` may be null. */
ARENITE_NODISCARD
arenite_status_t arenite_instances_stats(const struct arenite_instances_t *instances,
                                         struct arenite_instances_stats_t *out,
                                         struct arenite_failure_t *failure);

/** Gives arenas that are not lent back to their pool or source. Any thread; `failure` may be null. */
ARENITE_NODISCARD
arenite_status_t arenite_instances_trim(const struct arenite_instances_t *instances,
                                        struct arenite_failure_t *failure);

/** Destroys instances; null is allowed. No call may be using them. Runs that are out keep their memory until they end. */
arenite_status_t arenite_instances_destroy(struct arenite_instances_t *instances);

/* ---- run --------------------------------------------------------------------------------------- */

/**
 * Writes the address and size of a tensor's bytes for this run; null and 0 for a tensor without any.
 *
 * Valid until the run is destroyed. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such tensor;
 * `ARENITE_ERR_BUSY` where threads are checked and this one is not the owner.
 */
ARENITE_NODISCARD
arenite_status_t arenite_run_resolve(const struct arenite_run_t *run,
                                     uint32_t subgraph,
                                     uint32_t tensor,
                                     void **out_data,
                                     size_t *out_bytes);

/** Makes the calling thread the owner of a run that was handed over to it. */
ARENITE_NODISCARD arenite_status_t arenite_run_adopt(struct arenite_run_t *run);

/** Copies the record of the last failing call on this run. */
ARENITE_NODISCARD
arenite_status_t arenite_run_last_failure(const struct arenite_run_t *run,
                                          struct arenite_failure_t *out);

/**
 * Ends a run and gives its arena back to the instances; null is allowed.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_run_destroy(struct arenite_run_t *run);

/* ---- lease ------------------------------------------------------------------------------------- */

/**
 * Creates a set of at most `limit` areas of `bytes` bytes at a multiple of `alignment` (0 for 128). Takes no memory yet.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a limit of 0; `ARENITE_ERR_ALIGNMENT`; `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_lease_destroy`; it keeps the pool alive. `failure` may be null.
 */
ARENITE_NODISCARD
arenite_status_t arenite_lease_create(const struct arenite_pool_t *pool,
                                      size_t bytes,
                                      size_t alignment,
                                      uint32_t limit,
                                      struct arenite_lease_t **out,
                                      struct arenite_failure_t *failure);

/** Destroys a set and gives its areas back to the pool. Null is allowed. `ARENITE_ERR_BUSY` while an area is in use. */
ARENITE_NODISCARD arenite_status_t arenite_lease_destroy(struct arenite_lease_t *lease);

/**
 * Leases an area: writes its address, which is the caller's until `arenite_lease_return`. Contents are unspecified.
 *
 * With `wait` not 0 the call waits for an area where all are in use, else it returns `ARENITE_ERR_BUSY`.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY`; `ARENITE_ERR_CAPACITY` or `ARENITE_ERR_NO_MEMORY` where the pool has none.
 */
ARENITE_NODISCARD
arenite_status_t arenite_lease_acquire(const struct arenite_lease_t *lease,
                                       uint32_t wait,
                                       void **out_data,
                                       struct arenite_failure_t *failure);

/** Returns an area to its set. `ARENITE_ERR_ARGUMENT` for a pointer that is no area in use. */
ARENITE_NODISCARD arenite_status_t arenite_lease_return(const struct arenite_lease_t *lease, void *data);

/** Gives idle areas beyond `keep` back to the pool. */
ARENITE_NODISCARD arenite_status_t arenite_lease_trim(const struct arenite_lease_t *lease, uint32_t keep);

/** Fills in the statistics. Set `struct_size` and `flags` of `out` first. */
ARENITE_NODISCARD
arenite_status_t arenite_lease_stats(const struct arenite_lease_t *lease,
                                     struct arenite_lease_stats_t *out);

/* ---- mapping ----------------------------------------------------------------------------------- */

/**
 * Maps the file at `path`. It must not be shortened while it is mapped: touching what is gone ends the process.
 *
 * Where the system cannot map files it is read into memory. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the file
 * cannot be opened or mapped, with the reason in the record; `ARENITE_ERR_NULL`, `ARENITE_ERR_NO_MEMORY`. `failure` may be null.
 * Ownership: `*out` is the caller's until `arenite_mapping_destroy`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_mapping_open(const char *path,
                                      struct arenite_mapping_t **out,
                                      struct arenite_failure_t *failure);

/** Writes where the file's bytes are and how many. Valid until the mapping is destroyed and nothing is bound to it any more. */
ARENITE_NODISCARD
arenite_status_t arenite_mapping_data(const struct arenite_mapping_t *mapping,
                                      const void **out_data,
                                      size_t *out_bytes);

/* ---- session ----------------------------------------------------------------------------------- */

/**
 * Says that a constant's data begins at byte `offset` of a mapped file, which the session keeps alive.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where the tensor reaches past the end of the file; and as
 * `arenite_session_bind_constant`. `arenite_session_misaligned_constants` says which of them the kernels cannot use in place.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_bind_mapped(struct arenite_session_t *session,
                                             uint32_t subgraph,
                                             uint32_t tensor,
                                             const struct arenite_mapping_t *mapping,
                                             uint64_t offset);

/* ---- instances --------------------------------------------------------------------------------- */

/** The same for all instances at once. Any thread; `failure` may be null. */
ARENITE_NODISCARD
arenite_status_t arenite_instances_bind_mapped(const struct arenite_instances_t *instances,
                                               uint32_t subgraph,
                                               uint32_t tensor,
                                               const struct arenite_mapping_t *mapping,
                                               uint64_t offset,
                                               struct arenite_failure_t *failure);

/* ---- mapping ----------------------------------------------------------------------------------- */

/**
 * Destroys a mapping; null is allowed. The file stays mapped until everything that is bound to it is destroyed.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_mapping_destroy(struct arenite_mapping_t *mapping);

/* ---- session ----------------------------------------------------------------------------------- */

/**
 * Changes the rules for the reusable arena's memory; null for the defaults. They hold from the next commit that has something
 * to do, which then also meets a limit below what is held, or says that the plan needs more.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a percentage above 100.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_set_memory_policy(struct arenite_session_t *session,
                                                   const struct arenite_memory_policy_t *policy);

/* ---- incremental ------------------------------------------------------------------------------- */

/**
 * Changes the rules for the main arena's memory; null for the defaults. They hold from the next execution on, and less memory
 * is held from the first one after a reset.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a percentage above 100.
 */
ARENITE_NODISCARD
arenite_status_t arenite_incremental_set_memory_policy(struct arenite_incremental_t *incremental,
                                                       const struct arenite_memory_policy_t *policy);

/* ---- graph ------------------------------------------------------------------------------------- */

/**
 * Looks for the execution order with the smallest arena and writes the nodes of `subgraph` in that order.
 *
 * Data, variables, bytes written in place and what `order_options` names keep their order; the graph itself is not changed:
 * give the order to `arenite_graph_set_order` and to the engine. Pins are not counted, since they name steps of one order.
 * Subgraphs a node runs get orders of their own, found by the same search whichever is asked for. `options` and
 * `order_options` may be null for the defaults, `result` may be null.
 *
 * `nodes` has room for `count` numbers, which must be the number of the subgraph's nodes.
 * Returns: `ARENITE_OK`, also where the given order is the best found; `ARENITE_ERR_ARGUMENT` for an index out of range,
 * another count, or a pair that is not in the given order; `ARENITE_ERR_OVERFLOW`; `ARENITE_ERR_UNSUPPORTED`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_order(const struct arenite_graph_t *graph,
                                     const struct arenite_graph_options_t *options,
                                     const struct arenite_order_options_t *order_options,
                                     uint32_t subgraph,
                                     uint32_t *nodes,
                                     uint64_t count,
                                     struct arenite_order_result_t *result);

/**
 * Puts the nodes of `subgraph` into another order, for instance one found by `arenite_graph_order`.
 *
 * `nodes` holds each node once, by its place before the call; afterwards nodes are numbered by their new places. Whether
 * the order respects the data is the caller's affair. Plans made before keep the old order.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where `nodes` is not a permutation of the subgraph's nodes.
 */
ARENITE_NODISCARD
arenite_status_t arenite_graph_set_order(struct arenite_graph_t *graph,
                                         uint32_t subgraph,
                                         const uint32_t *nodes,
                                         uint64_t count);

/* ---- plan -------------------------------------------------------------------------------------- */

/**
 * Writes the order in which a plan expects the nodes of `subgraph` to run, so that an engine can execute by it.
 *
 * `nodes` has room for `count` numbers, which must be the number of the subgraph's nodes. Nodes go by the numbers they
 * were added with, whatever `arenite_graph_set_order` or the flag `ARENITE_GRAPH_REORDER` made of their places; steps in the
 * plan count along this order. Without either the order is 0, 1, 2, ...
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such subgraph or for another count, with the right one in
 * the record; `ARENITE_ERR_UNSUPPORTED` for the plan of a bare problem, which has no nodes.
 */
ARENITE_NODISCARD
arenite_status_t arenite_plan_order(const struct arenite_plan_t *plan,
                                    uint32_t subgraph,
                                    uint32_t *nodes,
                                    uint64_t count);

/* ---- session ----------------------------------------------------------------------------------- */

/**
 * Creates a session for a graph and everything attached to it, without memory yet. `options` may be null.
 *
 * The graph may be changed or destroyed afterwards. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a bad index, with the
 * node or tensor in the record; `ARENITE_ERR_NULL`, `ARENITE_ERR_ALIGNMENT`, `ARENITE_ERR_NO_MEMORY`.
 * Ownership: `*out` is the caller's until `arenite_session_destroy`; caller's buffers and callbacks are kept until then.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_create(const struct arenite_graph_t *graph,
                                        const struct arenite_session_options_t *options,
                                        struct arenite_session_t **out,
                                        struct arenite_failure_t *failure);

/**
 * Hands an output of one subgraph to a later one in the same bytes: `to` is that subgraph's input. For models that run one
 * after another, each called by a node of the graph.
 *
 * What does not fit together is refused by the commit. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that does
 * not exist.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_link(struct arenite_session_t *session,
                                      uint32_t from_subgraph,
                                      uint32_t from_tensor,
                                      uint32_t to_subgraph,
                                      uint32_t to_tensor);

/**
 * Gives a tensor another size in bytes. Nothing else happens before the commit; until then addresses are refused.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a constant and a tensor that does not exist.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_resize(struct arenite_session_t *session,
                                        uint32_t subgraph,
                                        uint32_t tensor,
                                        uint64_t bytes);

/**
 * Plans what changed (known shapes cost a look-up), makes the memory fit and updates all addresses. Does nothing where nothing
 * changed.
 *
 * The reusable arena's contents are undefined after a commit that changed the generation; persistent tensors keep theirs.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_UNKNOWN_SIZE`, `ARENITE_ERR_CAPACITY` (the memory limit, or a bound buffer that became
 * too small), `ARENITE_ERR_OVERFLOW`, all with the tensor in the record and nothing changed; `ARENITE_ERR_NO_MEMORY`: the plan
 * before has its memory back, at possibly another address, unless not even that much is left
 * (`ARENITE_SESSION_KEEP_ON_FAILURE` avoids that). After a failure `arenite_session_revert` returns to the plan before.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_commit(struct arenite_session_t *session);

/**
 * Takes back the sizes given since the last commit, so that its addresses are valid again.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where more than sizes changed or there is no memory.
 */
ARENITE_NODISCARD arenite_status_t arenite_session_revert(struct arenite_session_t *session);

/**
 * Writes the address and size of a tensor's bytes; null and 0 for a tensor without any.
 *
 * Valid until `arenite_session_generation` changes. Returns: `ARENITE_OK`; `ARENITE_ERR_STALE` where something changed or the
 * memory was released: commit first; `ARENITE_ERR_ARGUMENT` where there is no such tensor.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_resolve(const struct arenite_session_t *session,
                                         uint32_t subgraph,
                                         uint32_t tensor,
                                         void **out_data,
                                         size_t *out_bytes);

/** Commits if necessary and then does what `arenite_session_resolve` does. */
ARENITE_NODISCARD
arenite_status_t arenite_session_ensure_allocated(struct arenite_session_t *session,
                                                  uint32_t subgraph,
                                                  uint32_t tensor,
                                                  void **out_data,
                                                  size_t *out_bytes);

/** Writes a number that changes exactly when the address of a tensor does. */
ARENITE_NODISCARD
arenite_status_t arenite_session_generation(const struct arenite_session_t *session,
                                            uint64_t *out_generation);

/**
 * Gives the reusable arena's memory back; persistent and bound memory stays. The next commit takes it again without
 * planning.
 */
ARENITE_NODISCARD arenite_status_t arenite_session_release(struct arenite_session_t *session);

/** Plans anew for the smallest arena, forgets reservations and holds no more than that needs. Errors as the commit. */
ARENITE_NODISCARD arenite_status_t arenite_session_shrink_to_fit(struct arenite_session_t *session);

/**
 * Plans several sets of shapes in advance and makes every later commit hold at least what the largest needs. Tensors that a
 * set does not name keep their size. The memory is taken by the next commit.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` for more sets than the cache keeps; `ARENITE_ERR_ARGUMENT` for a tensor that
 * does not exist and for sets out of order. Nothing is reserved on an error.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_reserve(struct arenite_session_t *session,
                                         const struct arenite_shape_t *shapes,
                                         uint64_t count,
                                         uint64_t *out_bytes);

/** Copies the record of the last failing call on this session. */
ARENITE_NODISCARD
arenite_status_t arenite_session_last_failure(const struct arenite_session_t *session,
                                              struct arenite_failure_t *out);

/**
 * Destroys a session and gives its memory back; null is allowed. All its addresses end.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_BUSY` while another call uses it.
 */
arenite_status_t arenite_session_destroy(struct arenite_session_t *session);

/**
 * Uses the caller's buffer for a tensor: an input, an output, a cache, any tensor that is not constant. The buffer is not in
 * the plan and is kept: it outlives the binding.
 *
 * `accept_alignment` is 0 to require what the kernels ask for, or the lower alignment that the caller vouches for. The first
 * binding of a tensor needs a commit; another buffer for a bound tensor only changes the generation.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ALIGNMENT` with the tensor, the alignment `needed` and the remainder `available`;
 * `ARENITE_ERR_CAPACITY` where `bytes` is less than the tensor's; `ARENITE_ERR_ARGUMENT` for a constant.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_bind(struct arenite_session_t *session,
                                      uint32_t subgraph,
                                      uint32_t tensor,
                                      void *data,
                                      size_t bytes,
                                      uint32_t accept_alignment);

/** Gives a bound tensor back to the plan. Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where it is not bound. */
ARENITE_NODISCARD
arenite_status_t arenite_session_unbind(struct arenite_session_t *session,
                                        uint32_t subgraph,
                                        uint32_t tensor);

/**
 * Says where a constant's data is, for instance in the mapped model file. Kept: it is referenced, never written, may be shared
 * by any number of sessions and must outlive them.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` for a tensor that is no constant; `ARENITE_ERR_CAPACITY` where `bytes` is less
 * than its size. A misaligned address is no error; see `arenite_session_misaligned_constants`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_bind_constant(struct arenite_session_t *session,
                                               uint32_t subgraph,
                                               uint32_t tensor,
                                               const void *data,
                                               size_t bytes);

/**
 * Asks for scratch memory while a node runs and writes the request's number. `slot` tells several requests of one node apart.
 *
 * Asking again for the same node and slot changes the request and gives the same number, so that a graph may be prepared any
 * number of times. `alignment` is a power of two up to 65536, or 0 for 128.
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where there is no such node; `ARENITE_ERR_ALIGNMENT`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_request_scratch(struct arenite_session_t *session,
                                                 uint32_t subgraph,
                                                 uint32_t node,
                                                 uint32_t slot,
                                                 uint64_t bytes,
                                                 uint32_t alignment,
                                                 uint32_t *out_scratch);

/**
 * As `arenite_session_request_scratch`, with a size that depends on shapes: every commit that has something to do asks
 * `formula`, which is kept with `user`.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_request_scratch_by_shape(struct arenite_session_t *session,
                                                          uint32_t subgraph,
                                                          uint32_t node,
                                                          uint32_t slot,
                                                          uint32_t alignment,
                                                          arenite_scratch_fn formula,
                                                          void *user,
                                                          uint32_t *out_scratch);

/** Changes the bytes of a scratch request before the next commit; a formula it had is forgotten. */
ARENITE_NODISCARD
arenite_status_t arenite_session_resize_scratch(struct arenite_session_t *session,
                                                uint32_t scratch,
                                                uint64_t bytes);

/** Writes the address and size of a scratch request, to be used while its node runs; as `arenite_session_resolve`. */
ARENITE_NODISCARD
arenite_status_t arenite_session_resolve_scratch(const struct arenite_session_t *session,
                                                 uint32_t scratch,
                                                 void **out_data,
                                                 size_t *out_bytes);

/**
 * With `ARENITE_SESSION_GUARD`: call before each node runs, in order.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` without guard mode; `ARENITE_ERR_STALE`: commit first.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_guard_before(struct arenite_session_t *session,
                                              uint32_t subgraph,
                                              uint32_t node);

/**
 * With `ARENITE_SESSION_GUARD`: call after each node.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_ARGUMENT` where the node wrote past the end of a tensor: the record names the node, the
 * tensor, and in `needed` how many bytes past the end the last damage lies. The next node is not blamed for it.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_guard_after(struct arenite_session_t *session,
                                             uint32_t subgraph,
                                             uint32_t node);

/** Writes the numbers of a session. */
ARENITE_NODISCARD
arenite_status_t arenite_session_stats(const struct arenite_session_t *session,
                                       struct arenite_session_stats_t *out);

/* ---- process ----------------------------------------------------------------------------------- */

/**
 * Writes how many bytes of the process are in RAM (the resident set).
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_UNSUPPORTED` where the system does not say (anything but Linux).
 */
ARENITE_NODISCARD arenite_status_t arenite_process_resident_bytes(uint64_t *out_bytes);

/* ---- session ----------------------------------------------------------------------------------- */

/** Plans a tensor by the most bytes it can have; `arenite_session_report_use` then says how much of that was used. */
ARENITE_NODISCARD
arenite_status_t arenite_session_set_upper_bound(struct arenite_session_t *session,
                                                 uint32_t subgraph,
                                                 uint32_t tensor,
                                                 uint64_t bytes);

/**
 * Says how many bytes a tensor that is planned by its bound has in this run. Nothing is re-planned.
 *
 * Returns: `ARENITE_OK`; `ARENITE_ERR_CAPACITY` where that is more than the bound; `ARENITE_ERR_ARGUMENT` where it has none.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_report_use(struct arenite_session_t *session,
                                            uint32_t subgraph,
                                            uint32_t tensor,
                                            uint64_t bytes);

/** Writes a row for each tensor planned by an upper bound: as many as `capacity` allows, and how many there are. */
ARENITE_NODISCARD
arenite_status_t arenite_session_upper_bounds(const struct arenite_session_t *session,
                                              struct arenite_tensor_row_t *rows,
                                              uint64_t capacity,
                                              uint64_t *out_count);

/** Writes a row for each bound constant whose address misses what the kernels ask for, and what an aligned copy would cost. */
ARENITE_NODISCARD
arenite_status_t arenite_session_misaligned_constants(const struct arenite_session_t *session,
                                                      struct arenite_tensor_row_t *rows,
                                                      uint64_t capacity,
                                                      uint64_t *out_count);

/** Writes a row per step of the committed plan: the node that runs and the bytes alive meanwhile. */
ARENITE_NODISCARD
arenite_status_t arenite_session_node_bytes(const struct arenite_session_t *session,
                                            struct arenite_node_row_t *rows,
                                            uint64_t capacity,
                                            uint64_t *out_count);

/**
 * Writes a row for each node that asks for more alignment than the plan, and what it costs: the arena is planned once more
 * without it.
 */
ARENITE_NODISCARD
arenite_status_t arenite_session_alignment_costs(const struct arenite_session_t *session,
                                                 struct arenite_node_row_t *rows,
                                                 uint64_t capacity,
                                                 uint64_t *out_count);

#ifdef __cplusplus
}  /* extern "C" */
#endif  /* __cplusplus */

#endif  /* ARENITE_H */
