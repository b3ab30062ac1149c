/* arenite/tflite.hpp in the place of ArenaPlanner: which tensors get bytes, where, and what resets do to that. The offsets are
 * those that TFLite's planner gives these graphs. */
#include "planner_model.hpp"

/* 0,1>2 | 2,0>4,5 | 4,5>3 */
static std::vector<Op> s_ops() { return {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}; }
/* The same with a temporary. */
static std::vector<Op> t_ops() { return {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4}, {3})}; }

static void empty_graph() {
    Model m(0, {}, {}, {});
    Run run(&m);
    CHECK(!run.planner.HasNonPersistentMemory());
    run.execute(0, -1);
    CHECK(run.planner.HasNonPersistentMemory()); /* of no bytes */
    CHECK_EQ(run.planner.BasePointer(kAreniteArenaRw), 0);
}

static void outputs_without_a_producer() {
    Model m(12, {0, 10}, {op({0}, {}), op({10}, {})}, {5, 11});
    Run run(&m);
    run.all().expect({{0, 0}, {10, 4}, {5, -1}, {11, -1}});
    CHECK(run.arena() >= 37);
}

static void one_operator() {
    Model m(3, {1}, {op({1}, {2})}, {2});
    Run run(&m);
    run.all().expect({{1, 0}, {2, 8}});
    CHECK_EQ(run.behind(2), 20);
}

static void a_tensor_without_bytes() {
    Model m(3, {1}, {op({1}, {2})}, {2});
    m.bytes({1}, 0);
    Run run(&m);
    run.all().expect({{1, -1}, {2, 0}});
}

static void a_tensor_whose_bytes_a_delegate_holds() {
    Model m(3, {1}, {op({1}, {2})}, {2});
    m.tensors[1].buffer_handle = 1;
    Run run(&m);
    run.all().expect({{1, -1}, {2, 8}});
}

static void three_operators() {
    Model m(6, {0, 1}, s_ops(), {3});
    Run run(&m);
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
    CHECK(run.arena() >= 60);
}

static void growth_into_the_padding_after_a_reset() {
    Model m(6, {0, 1}, s_ops(), {3});
    Run run(&m);
    run.all();
    CHECK(run.planner.ResetAllocations() == Lite::kOk);
    for (mock::Tensor &t : m.tensors) t.bytes++;
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
    CHECK(run.arena() >= 61);
}

static void a_temporary() {
    Model m(6, {0, 1}, t_ops(), {3});
    Run run(&m);
    run.all().expect({{0, 0}, {1, 4}, {5, 12}, {3, 12}, {4, 32}, {2, 48}});
}

static void a_reset_after_a_node() {
    Model m(6, {0, 1}, t_ops(), {3});
    Run run(&m);
    run.all();
    CHECK(run.planner.ResetAllocationsAfter(0) == Lite::kOk);
    run.expect({{0, 0}, {1, 4}, {2, 48}, {3, -1}, {4, -1}, {5, -1}});
    m.tensors[4].bytes += 64;
    run.execute(1, 2).expect({{0, 0}, {1, 4}, {3, 12}, {5, 12}, {2, 48}, {4, 60}});
    CHECK(run.arena() >= 139);
}

static void a_reset_after_a_node_keeps_what_is_persistent() {
    Model m(6, {0, 1}, t_ops(), {3});
    m.kind({5}, kAreniteArenaRwPersistent);
    Run run(&m);
    run.all().expect({{0, 0}, {1, 4}, {4, 12}, {2, 28}, {3, 28}, {5, 0}});
    char *state = m.at(5);
    std::memset(state, 0x5A, m.tensors[5].bytes);
    CHECK(run.planner.ResetAllocationsAfter(0) == Lite::kOk);
    CHECK(m.at(5) == state);
    run.expect({{3, -1}, {4, -1}, {2, 28}});
    run.all();
    CHECK(m.at(5) == state && state[17] == 0x5A);
}

static void optional_inputs_and_outputs() {
    Model inputs(6, {0, -1, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, -1, 5}, {3})}, {3});
    Run first(&inputs);
    first.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
    Model outputs(6, {0, -1, 1}, s_ops(), {-1, 3});
    Run second(&outputs);
    second.all().expect({{0, 0}, {1, 4}, {5, 12}, {4, 32}, {3, 48}, {2, 48}});
}

static void the_gap_of_a_large_tensor_is_used() {
    Model m(6, {0, -1}, {op({0}, {1}), op({1}, {2}), op({2, 0}, {4}, {5}), op({4, -1}, {3})}, {3});
    m.bytes({1}, 40);
    Run run(&m);
    run.all().expect({{1, 4}, {2, 44}, {3, 4}, {5, 4}, {4, 24}});
    CHECK(run.arena() >= 53);
}

static void a_persistent_variable() {
    Model m(6, {0, -1, 1}, {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4, -1}, {3})}, {3});
    m.kind({1}, kAreniteArenaRwPersistent);
    m.variables = {1};
    Run run(&m);
    run.all().expect({{0, 0}, {1, 0}, {5, 4}, {3, 4}, {4, 24}, {2, 40}});
    CHECK(m.at(0) != m.at(1));
}

static void a_dynamic_tensor() {
    Model m(6, {0, -1, 1}, {op({0, 1}, {2}), op({2, 0}, {4}, {5}), op({4, -1}, {3})}, {3});
    m.kind({1}, kAreniteDynamic);
    Run run(&m);
    run.all().expect({{1, -1}, {5, 4}, {3, 4}, {4, 24}, {2, 40}});
    CHECK_EQ(run.planner.BasePointer(kAreniteDynamic), 0);
}

/* Nothing placed moves while later nodes are executed, and what is not reached has no bytes. */
static void step_by_step() {
    Model m(9, {0, 1}, {op({0, 1}, {2, 3}), op({2}, {4}, {5}), op({1, -1}, {6}), op({6, 4, 3}, {7}, {8})}, {7});
    Run run(&m);
    run.execute(0, 0).expect({{0, 0}, {1, 4}, {3, 12}, {2, 24}, {4, -1}, {5, -1}, {6, -1}, {7, -1}, {8, -1}});
    run.execute(1, 1).expect({{3, 12}, {2, 24}, {5, 36}, {4, 56}, {6, -1}, {7, -1}, {8, -1}});
    /* The bytes of 2 and of the temporary are free again: the smaller hole is enough for nobody, the joined one for 6. */
    run.execute(2, 2).expect({{3, 12}, {2, 24}, {5, 36}, {4, 56}, {6, 24}, {7, -1}, {8, -1}});
    run.execute(3, 3).expect({{3, 12}, {2, 24}, {5, 36}, {4, 56}, {6, 24}, {8, 72}, {7, 100}});
    /* All at once, the largest go first. */
    CHECK(run.planner.ResetAllocations() == Lite::kOk);
    run.all().expect({{0, 0}, {1, 4}, {8, 12}, {7, 40}, {6, 64}, {5, 12}, {4, 88}, {3, 104}, {2, 32}});
}

/* The smallest gap that fits is taken, not the first. */
static void the_smallest_gap() {
    Model m(6, {}, {op({}, {2}, {0}), op({}, {3}, {1}), op({2, 3}, {}, {4, 5})}, {});
    m.bytes({0}, 100).bytes({1}, 60).bytes({2, 3}, 20).bytes({4}, 24).bytes({5}, 16);
    Run run(&m);
    /* For 5 there are 36 bytes behind 4 and 20 between 3 and 2. */
    run.all().expect({{0, 0}, {1, 0}, {4, 0}, {2, 100}, {3, 60}, {5, 80}});
}

static void another_graph() {
    Model m(6, {0, 1}, s_ops(), {3});
    Run run(&m);
    run.all();
    /* The host changed its graph under the planner, as delegates do, and plans anew. */
    m.set({op({0, 1}, {3})});
    CHECK(run.planner.PlanAllocations() == Lite::kOk);
    run.all().expect({{0, 0}, {1, 4}, {3, 12}});
    /* And grows it: temporaries come when operators are prepared. */
    m.grow(7);
    m.set({op({0, 1}, {3}, {6})});
    run.all().expect({{0, 0}, {1, 4}, {3, 12}, {6, 24}});
}

static void nothing_placed_where_nodes_have_no_outputs() {
    Model m(2, {0, 1}, {op({0, 1}, {})}, {});
    Run(&m).all().expect({{0, 0}, {1, 4}});
}

int main() {
    RUN(empty_graph);
    RUN(outputs_without_a_producer);
    RUN(one_operator);
    RUN(a_tensor_without_bytes);
    RUN(a_tensor_whose_bytes_a_delegate_holds);
    RUN(three_operators);
    RUN(growth_into_the_padding_after_a_reset);
    RUN(a_temporary);
    RUN(a_reset_after_a_node);
    RUN(a_reset_after_a_node_keeps_what_is_persistent);
    RUN(optional_inputs_and_outputs);
    RUN(the_gap_of_a_large_tensor_is_used);
    RUN(a_persistent_variable);
    RUN(a_dynamic_tensor);
    RUN(step_by_step);
    RUN(the_smallest_gap);
    RUN(another_graph);
    RUN(nothing_placed_where_nodes_have_no_outputs);
    return check_done();
}
