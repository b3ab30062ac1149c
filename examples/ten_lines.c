/*
 * Buffers with lifetimes in, offsets out.
 *   cc examples/ten_lines.c $(pkg-config --cflags --libs arenite)
 */
#include <arenite.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    /* Bytes, and the first and last step at which each buffer is alive. */
    static const uint32_t buffers[3][3] = {{12800, 0, 1}, {10240, 1, 2}, {7680, 2, 3}};
    arenite_planner_t *planner = NULL;
    arenite_plan_t *plan = NULL;
    size_t bytes = 0;
    uint32_t i, index;

    if (arenite_planner_create(NULL, &planner, NULL) != ARENITE_OK) return 1;
    for (i = 0; i < 3; i++) {
        arenite_buffer_desc_t b;
        memset(&b, 0, sizeof b);
        b.struct_size = sizeof b;
        b.bytes = buffers[i][0];
        b.first = buffers[i][1];
        b.last = buffers[i][2];
        if (arenite_planner_add(planner, &b, &index) != ARENITE_OK) return 1;
    }
    if (arenite_planner_plan(planner, &plan) != ARENITE_OK) return 1;
    if (arenite_plan_required_bytes(plan, ARENITE_ARENA_MAIN, NULL, &bytes) != ARENITE_OK) return 1;
    printf("one allocation of %lu bytes, aligned to 128\n", (unsigned long)bytes);
    for (i = 0; i < 3; i++) {
        uint64_t offset = 0;
        if (arenite_plan_offset(plan, i, &offset) != ARENITE_OK) return 1;
        printf("buffer %u: %u bytes at offset %lu\n", i, buffers[i][0], (unsigned long)offset);
    }
    arenite_plan_destroy(plan);
    arenite_planner_destroy(planner);
    return bytes == 23040 ? 0 : 1; /* 30720 without sharing */
}
