/* Overflows a signed integer: UndefinedBehaviorSanitizer must stop it. */
#include <limits.h>

int main(int argc, char **argv) {
    int volatile number = INT_MAX;
    (void)argv;
    return number + argc == 0;
}
