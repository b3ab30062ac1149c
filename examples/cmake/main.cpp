// The same from C++.
#include <arenite.h>

#include <iostream>

int main() {
    if (arenite_abi_version() != ARENITE_ABI_VERSION) {
        return 1;
    }
    const arenite_status_t status =
        arenite_layout_check(ARENITE_LAYOUT_FULL, sizeof(AreniteTensor), sizeof(AreniteNode));
    std::cout << "arenite " << arenite_version_string() << ": " << arenite_status_name(status) << "\n";
    return status == ARENITE_OK ? 0 : 1;
}
