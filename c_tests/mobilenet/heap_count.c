#include "heap_count.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static unsigned long calls;

unsigned long heap_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

#if defined(SANITIZED) || defined(__GLIBC__)
static void count(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }
#endif

#if defined(SANITIZED)

int heap_is_counted(void) { return 1; }

/* The sanitizer run-time calls these, which it leaves weak and empty. */
void __sanitizer_malloc_hook(const volatile void *pointer, size_t bytes);
void __sanitizer_free_hook(const volatile void *pointer);

void __sanitizer_malloc_hook(const volatile void *pointer, size_t bytes) {
    (void)pointer;
    (void)bytes;
    count();
}

void __sanitizer_free_hook(const volatile void *pointer) {
    if (pointer != NULL) {
        count();
    }
}

#elif defined(__GLIBC__)

int heap_is_counted(void) { return 1; }

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);
void *memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    count();
    return __libc_calloc(n, bytes);
}

void *realloc(void *pointer, size_t bytes) {
    count();
    return __libc_realloc(pointer, bytes);
}

void free(void *pointer) {
    if (pointer != NULL) {
        count();
    }
    __libc_free(pointer);
}

void *memalign(size_t alignment, size_t bytes) {
    count();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    count();
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *pointer;
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    count();
    pointer = __libc_memalign(alignment, bytes);
    if (pointer == NULL) {
        return ENOMEM;
    }
    *out = pointer;
    return 0;
}

#else

int heap_is_counted(void) { return 0; }

#endif
