/* Several memories: capacities, wishes, spills. */
#include "helpers.h"

static const uint64_t fast_and_slow[2] = {2048, ARENITE_NO_AMOUNT};

static void the_least_useful_is_spilled(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_region_wish_t wishes[4];
    arenite_region_place_t places[4];
    arenite_region_usage_t usage[2];
    uint32_t i;
    memset(wishes, 0, sizeof wishes);
    for (i = 0; i < 4; i++) {
        wishes[i].allowed = ARENITE_REGION_ANY;
        wishes[i].benefit = 100;
    }
    add(planner, 1024, 0, 3);
    add(planner, 1024, 0, 3);
    add(planner, 1024, 0, 3);
    add(planner, 0, 0, 3);
    wishes[1].benefit = 1; /* least useful */
    CHECK_OK(arenite_planner_regions(planner, fast_and_slow, 2, wishes, 4, places, 4, usage));
    for (i = 0; i < 4; i++) {
        CHECK_EQ(places[i].region, i == 1 ? 1 : 0);
        CHECK_EQ(places[i].wanted, 0);
        CHECK_EQ(places[i].reserved, 0);
        CHECK_EQ(places[i].step == ARENITE_NO_INDEX, i != 1);
    }
    CHECK(places[1].step <= 3);
    CHECK(disjoint(places[0].offset, 1024, places[2].offset, 1024));
    CHECK_EQ(places[1].offset, 0);
    CHECK_EQ(usage[0].arena_bytes, 2048);
    CHECK_EQ(usage[0].buffer_count, 2);
    CHECK_EQ(usage[0].spilled_count, 1);
    CHECK_EQ(usage[0].spilled_bytes, 1024);
    CHECK_EQ(usage[1].arena_bytes, 1024);
    CHECK_EQ(usage[1].buffer_count, 1);
    CHECK_EQ(usage[1].spilled_count, 0);
    CHECK_EQ(usage[0].alignment, 128);

    /* Allowed in the slow one only: at home there, nothing is spilled. */
    wishes[1].allowed = 2;
    CHECK_OK(arenite_planner_regions(planner, fast_and_slow, 2, wishes, 4, places, 4, NULL));
    CHECK_EQ(places[1].region, 1);
    CHECK_EQ(places[1].wanted, 1);
    CHECK_EQ(places[1].step, ARENITE_NO_INDEX);

    /* Without wishes everybody is equal, and two fit the fast one all the same. */
    CHECK_OK(arenite_planner_regions(planner, fast_and_slow, 2, NULL, 0, places, 4, usage));
    CHECK_EQ(usage[0].buffer_count, 2);
    CHECK_EQ(usage[0].spilled_count, 1);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void nothing_has_room(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    static const uint64_t small[2] = {1024, 512};
    arenite_region_place_t places[2];
    arenite_failure_t f;
    memset(places, 0x5A, sizeof places);
    add(planner, 1024, 0, 1);
    add(planner, 1024, 0, 1);
    CHECK_STATUS(arenite_planner_regions(planner, small, 2, NULL, 0, places, 2, NULL), ARENITE_ERR_CAPACITY);
    f = planner_failure(planner);
    CHECK_EQ(f.subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(f.other_kind, ARENITE_SUBJECT_REGION);
    CHECK_EQ(f.other_index, 1);
    CHECK_EQ(f.needed, 1024);
    CHECK_EQ(f.available, 512);
    CHECK_EQ(places[0].region, 0x5A5A5A5Au);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void classes_stay_together(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    arenite_region_wish_t wishes[3];
    arenite_region_place_t places[3];
    arenite_region_usage_t usage[2];
    memset(wishes, 0, sizeof wishes);
    add(planner, 1024, 0, 1);
    add(planner, 512, 1, 2);
    add(planner, 2048, 0, 2);
    CHECK_OK(arenite_planner_alias(planner, 1, 0, 128));
    wishes[0].allowed = 3;
    wishes[1].allowed = 2; /* and so the class is in the slow one */
    wishes[2].allowed = 3;
    CHECK_OK(arenite_planner_regions(planner, fast_and_slow, 2, wishes, 3, places, 3, usage));
    CHECK_EQ(places[0].region, 1);
    CHECK_EQ(places[1].region, 1);
    CHECK_EQ(places[1].offset, places[0].offset + 128);
    CHECK_EQ(places[2].region, 0);
    CHECK_EQ(usage[1].buffer_count, 2);
    CHECK_EQ(usage[1].arena_bytes, 1024);
    wishes[0].allowed = 1; /* no region allows both */
    CHECK_STATUS(arenite_planner_regions(planner, fast_and_slow, 2, wishes, 3, places, 3, usage), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).subject_kind, ARENITE_SUBJECT_BUFFER);
    CHECK_EQ(planner_failure(planner).subject_index, 0);
    CHECK_OK(arenite_planner_destroy(planner));
}

static void refusals(void) {
    arenite_planner_t *planner = new_planner(ARENITE_STRATEGY_AUTO);
    uint64_t many[33];
    arenite_region_wish_t wish;
    arenite_region_place_t place;
    memset(many, 0, sizeof many);
    memset(&wish, 0, sizeof wish);
    wish.allowed = 4; /* there are two */
    add(planner, 64, 0, 0);
    CHECK_STATUS(arenite_planner_regions(planner, many, 0, NULL, 0, &place, 1, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_regions(planner, many, 33, NULL, 0, &place, 1, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_regions(planner, many, 2, &wish, 1, &place, 1, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_EQ(planner_failure(planner).subject_index, 0);
    wish.reserved = 1;
    CHECK_STATUS(arenite_planner_regions(planner, many, 2, &wish, 1, &place, 1, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_regions(planner, many, 2, NULL, 0, NULL, 0, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_STATUS(arenite_planner_regions(planner, many, 2, &wish, 2, &place, 2, NULL), ARENITE_ERR_ARGUMENT);
    CHECK_OK(arenite_planner_clear(planner));
    CHECK_OK(arenite_planner_regions(planner, fast_and_slow, 2, NULL, 0, NULL, 0, NULL));
    CHECK_OK(arenite_planner_destroy(planner));
}

int main(void) {
    RUN(the_least_useful_is_spilled);
    RUN(nothing_has_room);
    RUN(classes_stay_together);
    RUN(refusals);
    return DONE();
}
