/* Calls the unknown host; see library.cpp. */
#include <cstdio>

extern "C" int unknown_host_answer(void);

int main() {
    const int answer = unknown_host_answer();
    std::printf("its own planner said %d\n", answer);
    return answer == 7 * 64 - 3 ? 0 : 1;
}
