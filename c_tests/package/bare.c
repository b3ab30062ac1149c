/* What a microcontroller program does at start-up, linked with the no_std archive. */
#include <arenite.h>
#include <stdio.h>

int main(void) {
    if (arenite_abi_version() != ARENITE_ABI_VERSION) {
        return 1;
    }
    if (arenite_layout_check(ARENITE_LAYOUT_MICRO, sizeof(AreniteMicroTensor), sizeof(AreniteMicroNode)) != ARENITE_OK) {
        return 2;
    }
    if (arenite_layout_check(ARENITE_LAYOUT_FULL, 1, 1) != ARENITE_ERR_ARGUMENT) {
        return 3;
    }
    printf("bare arenite %s: %s\n", arenite_version_string(), arenite_status_name(ARENITE_OK));
    return 0;
}
