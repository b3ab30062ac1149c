/*
 * The TfLite mirror: layout check at start-up and int arrays. Also built with NDEBUG and with the macros that change
 * TfLite's own structs (BR-50): nothing in arenite.h may depend on any of them.
 */
#include <arenite.h>

#include "check.h"

static void br_50_the_two_builds_are_told_apart(void) {
    const size_t tensor = sizeof(AreniteTensor), micro = sizeof(AreniteMicroTensor);
    const size_t node = sizeof(AreniteNode), micro_node = sizeof(AreniteMicroNode);
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_FULL, tensor, node));
    CHECK_OK(arenite_layout_check(ARENITE_LAYOUT_MICRO, micro, micro_node));
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, micro, micro_node), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_MICRO, tensor, node), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, tensor, 0), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, 0, node), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(ARENITE_LAYOUT_FULL, SIZE_MAX, SIZE_MAX), ARENITE_ERR_ARGUMENT);
}

/* BR-58: zero and all ones are no layout. */
static void unknown_layouts_are_refused(void) {
    CHECK_STATUS(arenite_layout_check(0, sizeof(AreniteTensor), sizeof(AreniteNode)), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(3, sizeof(AreniteTensor), sizeof(AreniteNode)), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_layout_check(0xFFFFFFFFu, sizeof(AreniteTensor), sizeof(AreniteNode)), ARENITE_ERR_ARGUMENT);
}

static void sizes_are_tflites(void) {
    if (sizeof(void *) == 8) {
        CHECK_EQ(sizeof(AreniteTensor), 112);
        CHECK_EQ(sizeof(AreniteMicroTensor), 64);
        CHECK_EQ(sizeof(AreniteNode), 80);
        CHECK_EQ(sizeof(AreniteMicroNode), 56);
    }
    CHECK_EQ(sizeof(arenite_failure_t), 240);
}

static void int_arrays_are_read_behind_their_size(void) {
    ARENITE_INT_ARRAY(3) shape = {3, {4, 5, -1}};
    const AreniteIntArray *array = (const AreniteIntArray *)&shape;
    const int32_t *data = arenite_int_array_data(array);
    CHECK_EQ(array->size, 3);
    CHECK(data == shape.data);
    CHECK(data[0] == 4 && data[1] == 5 && data[2] == -1);
    CHECK(arenite_int_array_data(NULL) == NULL);
}

int main(void) {
    RUN(br_50_the_two_builds_are_told_apart);
    RUN(unknown_layouts_are_refused);
    RUN(sizes_are_tflites);
    RUN(int_arrays_are_read_behind_their_size);
    return DONE();
}
