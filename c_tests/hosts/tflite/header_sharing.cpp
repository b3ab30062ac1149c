/* arenite/tflite.hpp in the place of ArenaPlanner: which tensors share bytes in place, and which must not. */
#include "planner_model.hpp"

static void a_view_in_the_middle() {
    Model m(6, {0, 1}, {op({0}, {2}), op({1}, {3}), op({2, 3}, {4}, {}, kR), op({4}, {5})}, {5});
    m.bytes({2, 4}, 24);
    Run run(&m);
    run.all().expect({{2, 12}, {4, 12}, {3, 36}, {5, 36}});
    CHECK(run.arena() >= 54);
}

static void a_chain_of_views() {
    Model m(9, {0, 1},
            {op({0}, {2}), op({2, 3}, {4}, {}, kR), op({4, 3}, {5}, {}, kR), op({5, 3}, {6}, {}, kR),
             op({6, 3}, {7}, {}, kR), op({7}, {8})},
            {8});
    m.bytes({0, 1, 2, 4, 5, 6, 7, 8}, 24);
    Run run(&m);
    run.all();
    for (int t : {4, 5, 6, 7}) CHECK(m.at(t) == m.at(2));
    CHECK(m.at(3) == nullptr && m.at(8) != m.at(2));
}

static void a_view_between_others() {
    Model m(5, {0, 1}, {op({0}, {2}), op({2, 1}, {3}, {}, kR), op({3}, {4})}, {4});
    m.bytes({2, 3}, 24);
    Run(&m).all();
    CHECK(m.at(2) == m.at(3));
}

static void an_input_of_the_graph() {
    Model m(5, {0, 1}, {op({0, 1}, {2}, {}, kR), op({4}, {3})}, {3});
    m.bytes({0, 2}, 24);
    Run run(&m);
    m.kind({0}, kAreniteDynamic); /* after the plan */
    run.all();
    CHECK(m.at(0) == nullptr && m.at(2) != nullptr);
}

static void an_output_of_the_graph() {
    Model m(4, {0, 1}, {op({0}, {2}), op({2, 1}, {3}, {}, kR)}, {3});
    m.bytes({2, 3}, 24);
    Run(&m).all();
    CHECK(m.at(2) != m.at(3));
}

static void no_input_is_named() {
    Model m(4, {0}, {op({0}, {1}), op({1}, {2}, {}, ARENITE_INPLACE_DATA_UNMODIFIED), op({2}, {3})}, {3});
    m.bytes({1, 2}, 24);
    Run(&m).all();
    CHECK(m.at(1) != m.at(2));
}

/* An operand that is broadcast is smaller than the result; the other one is not. */
static void a_broadcast() {
    Model m(6, {0}, {op({0}, {1}), op({0}, {2}), op({1, 2}, {3}, {}, kAny), op({3}, {4})}, {4});
    m.bytes({1}, 8).bytes({2, 3}, 16);
    Run(&m).all();
    CHECK(m.at(3) != m.at(1) && m.at(3) == m.at(2));
    m.bytes({2}, 8).bytes({3}, 64);
    Run(&m).all();
    CHECK(m.at(3) != m.at(1) && m.at(3) != m.at(2));
}

/* A size that was not known when the plan was made: a scalar may become anything. */
static void scalars() {
    Model m(4, {0}, {op({0}, {1}), op({1}, {2}), op({2}, {3})}, {3});
    m.bytes({1, 2}, 4);
    Run(&m).all();
    CHECK(m.at(1) != m.at(2));
}

static void an_arithmetic_chain() {
    Model m(5, {0, 1}, {op({0, 1}, {2}, {}, kAny), op({2}, {3}, {}, kR), op({3, 1}, {4}, {}, kAny)}, {4});
    m.bytes({0, 1, 2, 3, 4}, 24);
    Run(&m).all();
    CHECK(m.at(2) == m.at(3) && m.at(4) != m.at(3) && m.at(2) != m.at(0) && m.at(2) != m.at(1));
}

static void one_tensor_as_both_operands() {
    Model m(6, {0}, {op({0}, {1}), op({1, 1}, {2}, {}, kAny), op({3, 2}, {4}, {}, kAny), op({4}, {5})}, {5});
    m.bytes({0, 1, 2, 3, 4, 5}, 24).kind({3}, kAreniteMmapRo);
    Run(&m).all();
    CHECK(m.at(1) != m.at(2));
    CHECK(m.at(2) == m.at(4)); /* a constant's partner may be written over */
}

static void only_the_second_operand() {
    Model m(5, {0}, {op({0}, {1}), op({0}, {2}), op({1, 2}, {3}, {}, kSecond), op({3}, {4})}, {4});
    m.bytes({0, 1, 2, 3, 4}, 24);
    Run(&m).all();
    CHECK(m.at(3) == m.at(2) && m.at(3) != m.at(1));
}

static void one_that_is_read_again() {
    Model m(5, {0}, {op({0}, {1}), op({1}, {2}), op({2, 1}, {3}), op({3}, {4})}, {4});
    m.bytes({1, 2, 3}, 24);
    Run(&m).all();
    CHECK(m.at(1) != m.at(2) && m.at(2) == m.at(3));
}

/* Sizes that no longer match when the node is executed: the alias gets bytes of its own. */
static void a_share_that_a_resize_ends() {
    Model m(4, {0}, {op({0}, {1}), op({1}, {2}), op({2}, {3})}, {3});
    m.bytes({1, 2}, 24);
    Run run(&m);
    m.bytes({2}, 48);
    run.all();
    CHECK(m.at(1) != m.at(2));
    Model other(4, {0}, {op({0}, {1}), op({1}, {2}), op({2}, {3})}, {3});
    other.bytes({1, 2}, 24);
    Run second(&other);
    other.kind({1}, kAreniteCustom);
    second.all();
    CHECK(other.at(1) == nullptr && other.at(2) != nullptr);
}

static void temporaries_of_different_nodes() {
    std::vector<Op> ops = {op({0, 1}, {2}, {5}), op({2, 0}, {4}, {6}), op({4}, {3}, {7})};
    Model m(8, {0, 1}, ops, {3});
    Run run(&m);
    run.all();
    CHECK_EQ(run.offset(5), run.offset(6));
    CHECK_EQ(run.offset(6), run.offset(7));
    Run every(&m, true);
    every.all();
    for (int i = 0; i < 8; i++) {
        CHECK(m.at(i) != nullptr);
        for (int j = 0; j < i; j++) CHECK(m.at(i) != m.at(j));
    }
}

static void every_tensor_kept() {
    Model m(7, {0, 1}, {op({0, 1}, {2, 3}), op({2, 3}, {4}), op({4, 2}, {5}), op({5}, {6})}, {6});
    m.bytes({4, 5}, 200);
    Run shared(&m);
    shared.all();
    CHECK(m.at(4) == m.at(5));
    Run kept(&m, true);
    kept.all();
    CHECK(m.at(4) != m.at(5));
}

static void tensors_of_another_device() {
    Model m(6, {0, 1}, {op({0, 1}, {2}), op({2, 0}, {4, 5}), op({4, 5}, {3})}, {3});
    m.kind({0, 3}, kAreniteNonCpu);
    Run(&m).all();
    CHECK(m.at(0) == nullptr && m.at(3) == nullptr);
    CHECK(m.at(1) != nullptr && m.at(2) != nullptr && m.at(4) != nullptr && m.at(5) != nullptr);
}

/* TFLite lets two views of one tensor share although one of them is then written over. Ours does only where it is asked to. */
static void two_views_of_which_one_is_modified() {
    std::vector<Op> ops = {op({0}, {1}), op({1}, {2}, {}, kR), op({1}, {3}, {}, kR), op({2}, {4}), op({4, 3}, {5})};
    Model m(6, {0}, ops, {5});
    m.bytes({1, 2, 3, 4}, 24);
    Run(&m).all();
    CHECK(m.at(4) != m.at(3)); /* 3 is still to be read */
}

int main() {
    RUN(a_view_in_the_middle);
    RUN(a_chain_of_views);
    RUN(a_view_between_others);
    RUN(an_input_of_the_graph);
    RUN(an_output_of_the_graph);
    RUN(no_input_is_named);
    RUN(a_broadcast);
    RUN(scalars);
    RUN(an_arithmetic_chain);
    RUN(one_tensor_as_both_operands);
    RUN(only_the_second_operand);
    RUN(one_that_is_read_again);
    RUN(a_share_that_a_resize_ends);
    RUN(temporaries_of_different_nodes);
    RUN(every_tensor_kept);
    RUN(tensors_of_another_device);
    RUN(two_views_of_which_one_is_modified);
    return check_done();
}
