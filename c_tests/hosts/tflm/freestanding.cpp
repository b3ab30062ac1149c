/* The planner as a microcontroller's build has it: see freestanding.cmake. */
#include "planner_types.h"

constexpr Micro::Status Micro::kOk, Micro::kError;

static arenite::tflm::Planner<Micro> planner;

extern "C" mock::MicroMemoryPlanner *the_planner(void);
extern "C" mock::MicroMemoryPlanner *the_planner(void) { return &planner; }
