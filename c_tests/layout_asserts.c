/*
 * The C side of the table in src/ffi/lite.rs: sizes and offsets of the mirror structs as a C compiler lays out the
 * committed header, against those of TfLite's two builds. Compiled by build.rs (also with -m32) and by ctest; linked
 * into nothing. C11 and C++17.
 */
#include <arenite.h>

#ifdef __cplusplus
#define CHECK(condition, text) static_assert(condition, text)
#else
#define CHECK(condition, text) _Static_assert(condition, text)
#endif

#if UINTPTR_MAX > 0xFFFFFFFFu
#define EITHER(wide, narrow) (wide)
#else
#define EITHER(wide, narrow) (narrow)
#endif

#define SIZE(type, wide, narrow) CHECK(sizeof(type) == EITHER(wide, narrow), "size of " #type)
#define AT(type, field, wide, narrow) CHECK(offsetof(type, field) == EITHER(wide, narrow), #type "." #field)

SIZE(AreniteIntArray, 4, 4);
AT(AreniteIntArray, size, 0, 0);

SIZE(AreniteQuantizationParams, 8, 8);
AT(AreniteQuantizationParams, scale, 0, 0);
AT(AreniteQuantizationParams, zero_point, 4, 4);

SIZE(AreniteQuantization, 16, 8);
AT(AreniteQuantization, kind, 0, 0);
AT(AreniteQuantization, params, 8, 4);

SIZE(AreniteCustomAllocation, 16, 8);
AT(AreniteCustomAllocation, data, 0, 0);
AT(AreniteCustomAllocation, bytes, 8, 4);

SIZE(AreniteTensor, 112, 64);
AT(AreniteTensor, kind, 0, 0);
AT(AreniteTensor, data, 8, 4);
AT(AreniteTensor, dims, 16, 8);
AT(AreniteTensor, params, 24, 12);
AT(AreniteTensor, allocation_type, 32, 20);
AT(AreniteTensor, bytes, 40, 24);
AT(AreniteTensor, allocation, 48, 28);
AT(AreniteTensor, name, 56, 32);
AT(AreniteTensor, delegate, 64, 36);
AT(AreniteTensor, buffer_handle, 72, 40);
AT(AreniteTensor, data_is_stale, 76, 44);
AT(AreniteTensor, is_variable, 77, 45);
AT(AreniteTensor, quantization, 80, 48);
AT(AreniteTensor, sparsity, 96, 56);
AT(AreniteTensor, dims_signature, 104, 60);

SIZE(AreniteMicroTensor, 64, 40);
AT(AreniteMicroTensor, quantization, 0, 0);
AT(AreniteMicroTensor, params, 16, 8);
AT(AreniteMicroTensor, data, 24, 16);
AT(AreniteMicroTensor, dims, 32, 20);
AT(AreniteMicroTensor, bytes, 40, 24);
AT(AreniteMicroTensor, kind, 48, 28);
AT(AreniteMicroTensor, allocation_type, 52, 32);
AT(AreniteMicroTensor, is_variable, 56, 36);

SIZE(AreniteNode, 80, 40);
AT(AreniteNode, inputs, 0, 0);
AT(AreniteNode, outputs, 8, 4);
AT(AreniteNode, intermediates, 16, 8);
AT(AreniteNode, temporaries, 24, 12);
AT(AreniteNode, user_data, 32, 16);
AT(AreniteNode, builtin_data, 40, 20);
AT(AreniteNode, custom_initial_data, 48, 24);
AT(AreniteNode, custom_initial_data_size, 56, 28);
AT(AreniteNode, delegate, 64, 32);
AT(AreniteNode, might_have_side_effect, 72, 36);

SIZE(AreniteMicroNode, 56, 28);
AT(AreniteMicroNode, inputs, 0, 0);
AT(AreniteMicroNode, outputs, 8, 4);
AT(AreniteMicroNode, intermediates, 16, 8);
AT(AreniteMicroNode, user_data, 24, 12);
AT(AreniteMicroNode, builtin_data, 32, 16);
AT(AreniteMicroNode, custom_initial_data, 40, 20);
AT(AreniteMicroNode, custom_initial_data_size, 48, 24);

SIZE(arenite_failure_t, 240, 240);
AT(arenite_failure_t, step, 28, 28);
AT(arenite_failure_t, needed, 32, 32);
AT(arenite_failure_t, available, 40, 40);
AT(arenite_failure_t, message, 48, 48);

CHECK(kAreniteMemNone == 0 && kAreniteMmapRo == 1 && kAreniteArenaRw == 2, "allocation numbers");
CHECK(kAreniteArenaRwPersistent == 3 && kAreniteDynamic == 4 && kArenitePersistentRo == 5, "allocation numbers");
CHECK(kAreniteCustom == 6 && kAreniteVariantObject == 7 && kAreniteNonCpu == 8, "allocation numbers");
