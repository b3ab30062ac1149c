# BR-53: our archive beside another Rust archive in one C program, in both orders.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/second.rs" [[
#[no_mangle]
pub extern "C" fn second_sum(n: u32) -> u64 {
    // Uses the heap, formatting and a panic that is caught, so that much of std comes along.
    let text: Vec<String> = (0..n).map(|i| format!("{i}")).collect();
    std::panic::catch_unwind(|| text.iter().map(|t| t.parse::<u64>().unwrap()).sum()).unwrap_or(0)
}
]])
file(WRITE "${WORK}/main.c" [[
#include <arenite.h>
#include <stdio.h>

unsigned long long second_sum(unsigned n);

int main(void) {
    printf("%s %llu\n", arenite_version_string(), second_sum(10));
    return arenite_layout_check(0, 0, 0) == ARENITE_ERR_ARGUMENT && second_sum(10) == 45 ? 0 : 1;
}
]])
run("${RUSTC}" -O --crate-type staticlib -o "${WORK}/libsecond.a" "${WORK}/second.rs")
separate_arguments(native NATIVE_COMMAND "${NATIVE}")
foreach(order IN ITEMS "${ARCHIVE};${WORK}/libsecond.a" "${WORK}/libsecond.a;${ARCHIVE}")
  run("${CC}" "-I${SOURCE}/include" "${WORK}/main.c" ${order} ${native} -o "${WORK}/app")
  run("${WORK}/app")
endforeach()
