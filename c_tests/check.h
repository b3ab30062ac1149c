/*
 * The test frame: CHECK and friends count and report, RUN names a case, TEST_MAIN ends the program. C11 and C++17.
 *
 *     static void adds(void) { CHECK_EQ(1 + 1, 2); }
 *     int main(void) { RUN(adds); return DONE(); }
 *
 * Exit status: 0 all passed, 1 something failed, 77 skipped (SKIP).
 */
#ifndef ARENITE_CHECK_H
#define ARENITE_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_cases, check_count, check_failed;

static void check_true(int ok, const char *text, const char *file, int line) {
    check_count++;
    if (!ok) {
        check_failed++;
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    }
}

static void check_eq(unsigned long long a, unsigned long long b, const char *text, const char *file, int line) {
    check_count++;
    if (a != b) {
        check_failed++;
        fprintf(stderr, "%s:%d: failed: %s: %llu (0x%llx) is not %llu (0x%llx)\n", file, line, text, a, a, b, b);
    }
}

static void check_text(const char *a, const char *b, const char *text, const char *file, int line) {
    check_count++;
    if (a == NULL || b == NULL || strcmp(a, b) != 0) {
        check_failed++;
        fprintf(stderr, "%s:%d: failed: %s: \"%s\" is not \"%s\"\n", file, line, text, a ? a : "(null)", b ? b : "(null)");
    }
}

/* The condition holds. */
#define CHECK(condition) check_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
/* Two integers are equal; both are printed when they are not. */
#define CHECK_EQ(a, b) check_eq((unsigned long long)(a), (unsigned long long)(b), #a " == " #b, __FILE__, __LINE__)
/* Two strings are equal. */
#define CHECK_TEXT(a, b) check_text((a), (b), #a " == " #b, __FILE__, __LINE__)
/* A call succeeds; the status is printed by name when it does not. */
#define CHECK_OK(call) check_text(arenite_status_name(call), "ARENITE_OK", #call, __FILE__, __LINE__)
/* A call fails with this status. */
#define CHECK_STATUS(call, status) \
    check_text(arenite_status_name(call), arenite_status_name(status), #call, __FILE__, __LINE__)

/* Runs one case: a function without arguments. */
#define RUN(name)                             \
    do {                                      \
        check_cases++;                        \
        printf("case %s\n", #name);           \
        fflush(stdout);                       \
        name();                               \
    } while (0)

/*
 * Runs a case whose threads hand memory to each other through the library. ThreadSanitizer does not see the locks inside the
 * library and would call every block that changes hands a race, so the case is left out there.
 */
#ifdef __has_feature
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define RUN_THREADS(name) ((void)&name, (void)printf("left out under ThreadSanitizer: %s\n", #name))
#else
#define RUN_THREADS(name) RUN(name)
#endif

/* Ends the program as skipped. */
#define SKIP(why)                             \
    do {                                      \
        printf("skipped: %s\n", why);         \
        exit(77);                             \
    } while (0)

static int check_done(void) {
    /* Every helper is used at least here, so that no test gets a warning for those it does not need. */
    check_true(1, "", "", 0);
    check_eq(0, 0, "", "", 0);
    check_text("", "", "", "", 0);
    printf("%d cases, %d checks, %d failed\n", check_cases, check_count - 3, check_failed);
    return check_failed == 0 ? 0 : 1;
}

#define DONE() check_done()

#endif
