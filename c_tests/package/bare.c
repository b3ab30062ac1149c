/* What a microcontroller program does at start-up, linked with the no_std archive. */
#include <arenite.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    static unsigned char workspace[4096];
    arenite_row_t rows[3] = {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
    uint64_t offsets[3];
    uint64_t arena = 0;
    size_t needed = 0;
    arenite_heap_options_t options;
    arenite_heap_block_t block;
    arenite_bare_heap_t *heap = NULL;
    if (arenite_abi_version() != ARENITE_ABI_VERSION) {
        return 1;
    }
    if (arenite_layout_check(ARENITE_LAYOUT_MICRO, sizeof(AreniteMicroTensor), sizeof(AreniteMicroNode)) != ARENITE_OK) {
        return 2;
    }
    if (arenite_layout_check(ARENITE_LAYOUT_FULL, 1, 1) != ARENITE_ERR_ARGUMENT) {
        return 3;
    }
    /* Three rows without a heap: the third takes the place of the first. */
    rows[0].bytes = 1000;
    rows[0].last = 1;
    rows[1].bytes = 500;
    rows[1].first = 1;
    rows[1].last = 2;
    rows[2].bytes = 900;
    rows[2].first = 2;
    rows[2].last = 3;
    if (arenite_bare_workspace_bytes(3, &needed) != ARENITE_OK || needed > sizeof workspace) {
        return 4;
    }
    if (arenite_bare_place(ARENITE_STRATEGY_GREEDY_BY_SIZE, rows, 3, workspace, needed, offsets, &arena, NULL) != ARENITE_OK) {
        return 5;
    }
    if (offsets[0] != 0 || offsets[1] != 1024 || offsets[2] != 0 || arena != 1524) {
        return 6;
    }
    if (arenite_bare_place(ARENITE_STRATEGY_GREEDY_BY_SIZE, rows, 3, workspace, 1, offsets, &arena, NULL) != ARENITE_ERR_CAPACITY) {
        return 7;
    }
    /* A heap over memory that only a device sees, its records in a static array. */
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.bytes = 1 << 20;
    options.max_blocks = 4;
    if (arenite_bare_heap_init(workspace, sizeof workspace, &options, &heap, NULL) != ARENITE_OK) {
        return 8;
    }
    if (arenite_bare_heap_alloc(heap, 1000, 4096, 0, ARENITE_POOL_HINT_UNKNOWN, &block, NULL) != ARENITE_OK ||
        arenite_heap_offset(block) % 4096 != 0) {
        return 9;
    }
    if (arenite_bare_heap_free(heap, block, NULL) != ARENITE_OK ||
        arenite_bare_heap_free(heap, block, NULL) != ARENITE_ERR_ARGUMENT) {
        return 10;
    }
    printf("bare arenite %s: %s\n", arenite_version_string(), arenite_status_name(ARENITE_OK));
    return 0;
}
