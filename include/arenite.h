/*
 * arenite: memory planner, arena and allocator for on-device inference engines.
 *
 * Generated from the documentation in src/ffi; change it there, then run
 *   ARENITE_UPDATE_HEADER=1 cargo build --features header
 *
 * Link with CMake (the same line for add_subdirectory, FetchContent and an installed package):
 *   find_package(arenite 0.1 REQUIRED)
 *   target_link_libraries(app PRIVATE arenite::arenite)
 * or with pkg-config:
 *   cc app.c $(pkg-config --cflags --libs arenite)             shared
 *   cc app.c $(pkg-config --cflags --libs --static arenite)    static: libraries come after the sources
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
#endif // __cplusplus

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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ARENITE_H */
