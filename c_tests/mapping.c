/* Weights mapped from a file: one copy for sessions and instances, checked against the file's end and the kernels' alignment. */
#include <arenite.h>

#include "helpers.h"

static char path[4096];

static void write_file(void) {
    unsigned char bytes[1000];
    FILE *f = fopen(path, "wb");
    unsigned i;
    for (i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)i;
    }
    CHECK(f != NULL);
    CHECK_EQ(fwrite(bytes, 1, sizeof bytes, f), sizeof bytes);
    CHECK_EQ(fclose(f), 0);
}

/* 0 -> 1 with a constant of 100 bytes. */
static arenite_graph_t *model(uint32_t *constant) {
    arenite_graph_t *graph = new_graph();
    add_tensor(graph, 64);
    add_tensor(graph, 64);
    *constant = add_typed(graph, 100, kAreniteMmapRo);
    add_node(graph, 0, (int32_t)*constant, 1, -1);
    set_ends(graph, 0, 1);
    return graph;
}

static void sessions_and_instances_share_one_copy(void) {
    arenite_mapping_t *file = NULL;
    arenite_graph_t *graph;
    arenite_session_t *a = NULL, *b = NULL;
    arenite_plan_t *plan;
    arenite_instances_t *set = NULL;
    arenite_instances_options_t o;
    arenite_run_t *run = NULL;
    arenite_failure_t f = no_failure();
    arenite_tensor_row_t row;
    const void *data = NULL;
    void *x = NULL, *y = NULL, *z = NULL;
    size_t bytes = 0;
    uint64_t count = 0;
    uint32_t constant = 0;
    write_file();
    CHECK_OK(arenite_mapping_open(path, &file, NULL));
    CHECK_OK(arenite_mapping_data(file, &data, &bytes));
    CHECK_EQ(bytes, 1000);
    graph = model(&constant);
    CHECK_OK(arenite_session_create(graph, NULL, &a, NULL));
    CHECK_OK(arenite_session_create(graph, NULL, &b, NULL));
    CHECK_OK(arenite_session_bind_mapped(a, 0, constant, file, 128));
    CHECK_OK(arenite_session_bind_mapped(b, 0, constant, file, 136));
    CHECK_STATUS(arenite_session_bind_mapped(b, 0, constant, file, 901), ARENITE_ERR_CAPACITY);
    CHECK_OK(arenite_session_last_failure(b, &f));
    CHECK_EQ(f.needed, 1001);
    CHECK_EQ(f.available, 1000);
    CHECK_EQ(f.subject_index, constant);
    CHECK_STATUS(arenite_session_bind_mapped(b, 0, constant, file, UINT64_MAX), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_session_bind_mapped(b, 0, 0, file, 0), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_session_bind_mapped(b, 0, 77, file, 0), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_session_bind_mapped(b, 0, constant, NULL, 0), ARENITE_ERR_NULL);
    CHECK_OK(arenite_session_misaligned_constants(a, &row, 1, &count));
    CHECK_EQ(count, 0);
    CHECK_OK(arenite_session_misaligned_constants(b, &row, 1, &count));
    CHECK_EQ(count, 1);
    CHECK_EQ(row.found, 8);
    CHECK_EQ(row.cost, 128);
    plan = plan_graph(graph, NULL);
    INIT(o);
    o.instances = o.arenas = 2;
    CHECK_OK(arenite_instances_create(plan, &o, &set, NULL));
    CHECK_OK(arenite_instances_bind_mapped(set, 0, constant, file, 128, NULL));
    CHECK_STATUS(arenite_instances_bind_mapped(set, 0, constant, file, 901, &f), ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_instances_bind_mapped(set, 0, 99, file, 0, &f), ARENITE_ERR_ARGUMENT);
    arenite_plan_destroy(plan);
    arenite_graph_destroy(graph);
    /* Everything that is bound keeps the file. */
    CHECK_EQ(arenite_mapping_destroy(file), ARENITE_OK);
    CHECK_OK(arenite_session_ensure_allocated(a, 0, constant, &x, &bytes));
    CHECK_OK(arenite_session_ensure_allocated(b, 0, constant, &y, &bytes));
    CHECK_OK(arenite_instances_acquire(set, 0, 0, &run, NULL));
    CHECK_OK(arenite_run_resolve(run, 0, constant, &z, &bytes));
    CHECK_EQ(bytes, 100);
    CHECK(x == z && (const unsigned char *)x == (const unsigned char *)data + 128);
    CHECK_EQ(((unsigned char *)x)[99], 227);
    CHECK_EQ(((unsigned char *)y)[0], 136);
    CHECK_EQ(arenite_run_destroy(run), ARENITE_OK);
    CHECK_EQ(arenite_instances_destroy(set), ARENITE_OK);
    CHECK_EQ(arenite_session_destroy(a), ARENITE_OK);
    CHECK_EQ(((unsigned char *)y)[99], 235);
    CHECK_EQ(arenite_session_destroy(b), ARENITE_OK);
    CHECK_EQ(remove(path), 0);
}

static void a_file_that_cannot_be_mapped_says_why(void) {
    arenite_mapping_t *file = UNTOUCHED(arenite_mapping_t);
    arenite_failure_t f = no_failure();
    CHECK_STATUS(arenite_mapping_open(path, &file, &f), ARENITE_ERR_ARGUMENT);
    CHECK_TEXT(f.message, "there is no such file");
    CHECK_STATUS(arenite_mapping_open(NULL, &file, &f), ARENITE_ERR_NULL);
    CHECK(file == UNTOUCHED(arenite_mapping_t));
    CHECK_STATUS(arenite_mapping_open(path, NULL, &f), ARENITE_ERR_NULL);
    CHECK_EQ(arenite_mapping_destroy(NULL), ARENITE_OK);
}

int main(int argc, char **argv) {
    snprintf(path, sizeof path, "%s.weights", argc > 0 ? argv[0] : "mapping");
    RUN(sessions_and_instances_share_one_copy);
    RUN(a_file_that_cannot_be_mapped_says_why);
    return DONE();
}
