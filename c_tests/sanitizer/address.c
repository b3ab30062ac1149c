/* Reads past the end of a block: AddressSanitizer must stop it. */
#include <stdlib.h>

int main(int argc, char **argv) {
    char *volatile block = (char *)malloc(8);
    (void)argv;
    return block[7 + argc];
}
