/* Under AddressSanitizer a use after free and an overrun inside a pool are reported. Skipped in other builds. */
#include "check.h"
#include <arenite.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) && !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>

enum error { NONE, AFTER_FREE, OVERRUN };

/* Makes the error in a child and returns whether the child was ended for it. */
static int reported(enum error error) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        arenite_pool_t *pool = NULL;
        void *p = NULL, *q = NULL;
        volatile char *c;
        arenite_pool_options_t o;
        int ok;
        memset(&o, 0, sizeof o);
        o.struct_size = sizeof o;
        o.flags = ARENITE_POOL_SANITIZER;
        ok = arenite_pool_create(&o, &pool, NULL) == ARENITE_OK;
        ok &= arenite_pool_alloc(pool, 1000, 0, &p, NULL) == ARENITE_OK;
        ok &= arenite_pool_alloc(pool, 1000, 0, &q, NULL) == ARENITE_OK;
        ok &= arenite_pool_realloc(pool, q, 5000, 0, &q, NULL) == ARENITE_OK;
        memset(p, 1, 1000);
        memset(q, 1, 5000);
        c = (volatile char *)p;
        /* The sanitizer's report is expected: not into the test's log. */
        (void)!freopen("/dev/null", "w", stderr);
        close(2);
        if (error == OVERRUN) {
            c[1000] = 1;
        }
        ok &= arenite_pool_free(pool, p, NULL) == ARENITE_OK;
        if (error == AFTER_FREE) {
            c[10] = 1;
        }
        ok &= arenite_pool_free(pool, q, NULL) == ARENITE_OK;
        ok &= arenite_pool_destroy(pool, NULL) == ARENITE_OK;
        _exit(ok ? 0 : 3);
    }
    waitpid(child, &status, 0);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0) && !(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void errors_in_a_pool_are_reported(void) {
    CHECK(!reported(NONE));
    CHECK(reported(AFTER_FREE));
    CHECK(reported(OVERRUN));
}

/* A lent buffer is the host's again once its pool is gone. */
static void a_lent_buffer_comes_back_clean(void) {
    static char buffer[8192];
    arenite_pool_options_t o;
    arenite_pool_t *pool = NULL;
    void *p = NULL;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.flags = ARENITE_POOL_SANITIZER;
    o.source.kind = ARENITE_SOURCE_BUFFER;
    o.source.base = buffer;
    o.source.bytes = sizeof buffer;
    CHECK_OK(arenite_pool_create(&o, &pool, NULL));
    CHECK_OK(arenite_pool_alloc(pool, 100, 0, &p, NULL));
    CHECK_OK(arenite_pool_free(pool, p, NULL));
    CHECK_OK(arenite_pool_destroy(pool, NULL));
    memset(buffer, 1, sizeof buffer);
}

int main(void) {
    RUN(errors_in_a_pool_are_reported);
    RUN(a_lent_buffer_comes_back_clean);
    return DONE();
}
#else
int main(void) {
    SKIP("not built with AddressSanitizer");
    return DONE();
}
#endif
