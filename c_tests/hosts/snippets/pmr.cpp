/* The document's lines for std::pmr. */
#include <vector>

#include "pmr_scope.inc"

void pmr_snippet();
void pmr_snippet() {
#include "pmr_body.inc"
}
