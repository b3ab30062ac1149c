/* The report: every format through a callback, names, a callback that stops, and who outlives whom. */
#include "helpers.h"

typedef struct {
    char text[1 << 15];
    size_t used;
    size_t limit; /* refuses what goes beyond */
    unsigned calls;
} sink_t;

static uint32_t take(void *user, const char *data, size_t length) {
    sink_t *sink = (sink_t *)user;
    sink->calls++;
    if (sink->used + length > sink->limit) {
        return 1;
    }
    memcpy(sink->text + sink->used, data, length);
    sink->used += length;
    sink->text[sink->used] = 0;
    return 0;
}

static const char *name(void *user, uint32_t subgraph, uint32_t tensor) {
    static const char *const names[] = {"first", "sec<ond>", NULL};
    CHECK(user == NULL);
    CHECK_EQ(subgraph, 0);
    CHECK(tensor < COUNT(names));
    return names[tensor];
}

static const char *tensor_name(void *user, uint32_t subgraph, uint32_t tensor) {
    CHECK(*(const int *)user == 7);
    CHECK_EQ(subgraph, 0);
    return tensor == 0 ? "weights" : tensor == 1 ? "hidden" : NULL;
}

static const char *op_name(void *user, uint32_t subgraph, uint32_t node) {
    CHECK(*(const int *)user == 7);
    CHECK_EQ(subgraph, 0);
    return node == 0 ? "CONV\033_2D" : "MEAN";
}

static arenite_report_t *three(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_GREEDY_BY_SIZE);
    arenite_report_t *report = NULL;
    arenite_report_names_t names;
    arenite_plan_t *plan;
    INIT(names);
    names.tensor = name;
    add(planner, 100, 0, 1);
    add(planner, 200, 1, 2);
    add(planner, 100, 2, 2);
    plan = plan_of(planner);
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_report_create(plan, &names, &report, NULL));
    CHECK_OK(arenite_plan_destroy(plan)); /* the report stays */
    return report;
}

static void every_format(void) {
    static const char *const parts[][4] = {
        {"arena", "\"first\"", "shares with 0 \"first\" because 0 ends at 1, before 2", "Map ("},
        {"{\"arena_bytes\": 356", "\"name\":\"sec\\u003cond>\"", "\"report_version\": 1", "\"operators\": ["},
        {"id,lower,upper,size,alignment,offset,gaps,name,root\n", "\n0,0,2,100,128,256,,first,\n",
         "\n1,1,3,200,128,0,,sec<ond>,\n", "\n2,2,3,100,128,256,,,\n"},
        {"<svg ", "sec&lt;ond&gt;", "lower bound", "</svg>"},
    };
    arenite_report_t *report = three();
    uint32_t format;
    size_t i;
    for (format = ARENITE_REPORT_TEXT; format <= ARENITE_REPORT_SVG; format++) {
        sink_t sink;
        memset(&sink, 0, sizeof sink);
        sink.limit = sizeof sink.text - 1;
        CHECK_OK(arenite_report_write(report, format, take, &sink));
        for (i = 0; i < COUNT(parts[format]); i++) {
            if (strstr(sink.text, parts[format][i]) == NULL) {
                fprintf(stderr, "no \"%s\" in:\n%s\n", parts[format][i], sink.text);
                CHECK(0);
            }
        }
    }
    CHECK_OK(arenite_report_destroy(report));
}

static void a_callback_that_stops(void) {
    arenite_report_t *report = three();
    arenite_failure_t failure;
    sink_t sink;
    memset(&sink, 0, sizeof sink);
    CHECK_STATUS(arenite_report_write(report, ARENITE_REPORT_SVG, take, &sink), ARENITE_ERR_CAPACITY);
    CHECK_EQ(sink.calls, 1); /* it is not asked again */
    INIT(failure);
    CHECK_OK(arenite_report_last_failure(report, &failure));
    CHECK_EQ(failure.status, ARENITE_ERR_CAPACITY);
    CHECK_STATUS(arenite_report_write(report, 4, take, &sink), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_report_write(report, ARENITE_REPORT_TEXT, NULL, &sink), ARENITE_ERR_NULL);
    CHECK_STATUS(arenite_report_write(NULL, ARENITE_REPORT_TEXT, take, &sink), ARENITE_ERR_NULL);
    CHECK_EQ(sink.calls, 1);
    CHECK_OK(arenite_report_destroy(report));
}

static void nulls_and_graphs(void) {
    arenite_report_t *report = UNTOUCHED(arenite_report_t);
    arenite_graph_t *graph = new_graph();
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    /* Operators and kinds come from the graph, names from the callbacks. */
    static const struct {
        uint32_t format;
        const char *text;
    } parts[] = {
        {ARENITE_REPORT_TEXT, "0..1 CONV?_2D..MEAN"},
        {ARENITE_REPORT_TEXT, "weights, read from the file"},
        {ARENITE_REPORT_TEXT, "intermediate  1 \"hidden\""},
        {ARENITE_REPORT_JSON, "\"node\":0,\"op\":\"CONV\\u001b_2D\""},
        {ARENITE_REPORT_JSON, "\"name\":\"weights\",\"offset\":null,\"size\":64,\"first\":null,\"last\":null,\"kind\":\"constant\""},
        {ARENITE_REPORT_JSON, "\"step\":1,\"subgraph\":0,\"node\":1,\"op\":\"MEAN\""},
        {ARENITE_REPORT_CSV, "\n1,0,2,1000,128,"},
        {ARENITE_REPORT_SVG, "hidden"},
    };
    int seven = 7;
    arenite_report_names_t names;
    arenite_failure_t failure;
    arenite_plan_t *plan = NULL;
    sink_t sink;
    size_t i;
    INIT(names);
    INIT(failure);
    CHECK_STATUS(arenite_report_create(NULL, NULL, &report, &failure), ARENITE_ERR_NULL);
    CHECK_EQ(failure.status, ARENITE_ERR_NULL);
    CHECK(report == UNTOUCHED(arenite_report_t));
    add_typed(graph, 64, kAreniteMmapRo); /* no bytes of the arena: tensor 1 is buffer 0 */
    add_tensor(graph, 1000);
    add_tensor(graph, 24);
    add_node(graph, 0, -1, 1, -1);
    add_node(graph, 1, 0, 2, -1);
    CHECK_OK(arenite_planner_plan_graph(planner, graph, NULL, &plan));
    names.struct_size = 3;
    CHECK_STATUS(arenite_report_create(plan, &names, &report, &failure), ARENITE_ERR_ARGUMENT);
    CHECK(report == UNTOUCHED(arenite_report_t));
    INIT(names);
    names.tensor = tensor_name;
    names.op = op_name;
    names.user = &seven;
    CHECK_OK(arenite_report_create(plan, &names, &report, NULL));
    for (i = 0; i < COUNT(parts); i++) {
        memset(&sink, 0, sizeof sink);
        sink.limit = sizeof sink.text - 1;
        CHECK_OK(arenite_report_write(report, parts[i].format, take, &sink));
        if (strstr(sink.text, parts[i].text) == NULL) {
            fprintf(stderr, "no \"%s\" in:\n%s\n", parts[i].text, sink.text);
            CHECK(0);
        }
        CHECK(strchr(sink.text, 033) == NULL); /* nothing that steers a terminal */
    }
    CHECK_OK(arenite_report_destroy(report));
    CHECK_OK(arenite_report_create(plan, NULL, &report, NULL));
    memset(&sink, 0, sizeof sink);
    sink.limit = sizeof sink.text - 1;
    CHECK_OK(arenite_report_write(report, ARENITE_REPORT_CSV, take, &sink));
    CHECK(strstr(sink.text, "\n1,0,2,1000,") != NULL);
    CHECK(strstr(sink.text, "\n2,1,2,24,") != NULL);
    CHECK_OK(arenite_report_destroy(report));
    CHECK_OK(arenite_report_destroy(NULL));
    CHECK_OK(arenite_plan_destroy(plan));
    CHECK_OK(arenite_planner_destroy(planner));
    CHECK_OK(arenite_graph_destroy(graph));
}

int main(void) {
    RUN(every_format);
    RUN(a_callback_that_stops);
    RUN(nulls_and_graphs);
    return DONE();
}
