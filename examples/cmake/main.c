/* The smallest program: is the library the one I was compiled for, and are my structs the ones it expects? */
#include <arenite.h>
#include <stdio.h>

int main(void) {
    arenite_status_t status;
    if (arenite_abi_version() != ARENITE_ABI_VERSION) {
        fprintf(stderr, "compiled for another arenite\n");
        return 1;
    }
    status = arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode));
    printf("arenite %s: %s\n", arenite_version_string(), arenite_status_name(status));
    return status == ARENITE_OK ? 0 : 1;
}
