/* The malloc family as programs see it, on both sides of the boundary and across it. Ends with the first thing that is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(c) do { if (!(c)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); exit(1); } } while (0)
enum { SMALL = 1000, LARGE = 300000 };

static void *volatile sink; /* keeps calls from being folded away */

static int all(const unsigned char *p, size_t n, int value) {
    size_t i;
    for (i = 0; i < n; i++) if (p[i] != value) return 0;
    return 1;
}

static void sizes_and_alignments(void) {
    size_t sizes[] = {0, 1, SMALL, 65535, 65536, 65537, LARGE, 40 << 20};
    size_t i, a;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i];
        unsigned char *p = malloc(n), *z = calloc(n, 1);
        CHECK(p != NULL && z != NULL && malloc_usable_size(p) >= n && (uintptr_t)p % 16 == 0);
        CHECK(all(z, n, 0));
        memset(p, 7, n);
        memset(z, 8, n);
        free(z);
        z = calloc(1, n); /* memory used before */
        CHECK(z != NULL && all(z, n, 0) && all(p, n, 7));
        free(p);
        free(z);
        for (a = 8; a <= 1 << 21; a *= 2) {
            void *q = NULL;
            CHECK(posix_memalign(&q, a, n) == 0 && (uintptr_t)q % a == 0);
            if (n > 0) memset(q, 1, n < 70000 ? n : 70000);
            free(q);
            q = memalign(a, n);
            CHECK(q != NULL && (uintptr_t)q % a == 0);
            free(q);
            q = aligned_alloc(a, n);
            CHECK(q != NULL && (uintptr_t)q % a == 0);
            free(q);
        }
        p = valloc(n);
        z = pvalloc(n + 1);
        CHECK((uintptr_t)p % 4096 == 0 && (uintptr_t)z % 4096 == 0);
        CHECK(malloc_usable_size(z) >= (n + 4096) / 4096 * 4096);
        free(p);
        free(z);
    }
}

static void resizes_across_the_boundary(void) {
    size_t steps[] = {10, SMALL, LARGE, 2 * LARGE, LARGE + 1, SMALL, 5, LARGE, 50 << 20, 100};
    size_t i, held = 0;
    unsigned char *p = NULL;
    for (i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t kept = held < steps[i] ? held : steps[i];
        p = realloc(p, steps[i]);
        CHECK(p != NULL && all(p, kept, 3));
        held = steps[i];
        memset(p, 3, held);
    }
    CHECK(realloc(p, 0) == NULL);
    p = realloc(NULL, LARGE);
    CHECK(p != NULL && realloc(p, 0) == NULL);
    p = reallocarray(NULL, 300, 1000);
    CHECK(p != NULL);
    memset(p, 9, 300000);
    errno = 0;
    sink = reallocarray(p, SIZE_MAX / 2, 4);
    CHECK(sink == NULL && errno == ENOMEM && all(p, 300000, 9));
    free(p);
}

static void errors(void) {
    void *p = &p, *before = p;
    unsigned char *q = malloc(LARGE);
    volatile size_t huge = SIZE_MAX - 4096;
    memset(q, 4, LARGE);
    errno = 0;
    sink = malloc(huge);
    CHECK(sink == NULL && errno == ENOMEM);
    errno = 0;
    sink = calloc(huge, 16);
    CHECK(sink == NULL && errno == ENOMEM);
    errno = 0;
    sink = realloc(q, huge);
    CHECK(sink == NULL && errno == ENOMEM && all(q, LARGE, 4));
    errno = 0;
    sink = pvalloc(huge + 4095);
    CHECK(sink == NULL && errno == ENOMEM);
    CHECK(posix_memalign(&p, 3, LARGE) == EINVAL && p == before);
    CHECK(posix_memalign(&p, 4, LARGE) == EINVAL && p == before);
    errno = 0;
    CHECK(posix_memalign(&p, 64, huge) == ENOMEM && p == before);
    errno = 77;
    free(q);
    free(NULL);
    q = malloc(LARGE);
    free(q);
    CHECK(errno == 77);
    CHECK(malloc_usable_size(NULL) == 0);
}

static void memory_of_others(void) {
    char *line = NULL, *copy = strdup("text");
    size_t room = 0, i;
    FILE *f = fopen("lines.txt", "w+"); /* in the directory of the test: /tmp may be anything */
    void *library;
    CHECK(f != NULL && copy != NULL);
    for (i = 0; i < 200000; i++) fputc('a' + (int)(i % 26), f);
    rewind(f);
    CHECK(getline(&line, &room, f) == 200000); /* grown by the C library across the boundary */
    CHECK(line[0] == 'a' && line[199999] == 'a' + 199999 % 26);
    free(line);
    free(copy);
    fclose(f);
    library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(library != NULL && dlsym(library, "cos") != NULL);
    dlclose(library);
}

static pthread_key_t key;

static void at_thread_end(void *block) {
    void *other = malloc(LARGE);
    CHECK(other != NULL);
    free(block);
    free(other);
}

typedef struct box { pthread_mutex_t lock; unsigned char *block; size_t bytes; int fill; } box;
static box boxes[16];

/* Every thread runs its own sequence again and again, and swaps blocks with the others. */
static void *worker(void *argument) {
    size_t id = (size_t)argument, turn, k;
    unsigned seed = (unsigned)id + 1;
    pthread_setspecific(key, malloc(LARGE));
    for (turn = 0; turn < 40; turn++) {
        unsigned char *live[3] = {NULL, NULL, NULL};
        size_t held[3] = {0, 0, 0};
        for (k = 0; k < 30; k++) {
            size_t slot = k % 3, bytes = 65536 + 4096 * ((k * k + 3 * id) % 61);
            CHECK(live[slot] == NULL || all(live[slot], held[slot], (int)(id * 16 + slot)));
            free(live[slot]);
            live[slot] = malloc(bytes);
            held[slot] = bytes;
            CHECK(live[slot] != NULL);
            memset(live[slot], (int)(id * 16 + slot), bytes);
        }
        for (k = 0; k < 3; k++) {
            box *b = &boxes[rand_r(&seed) % 16];
            unsigned char *other;
            pthread_mutex_lock(&b->lock);
            CHECK(b->block == NULL || all(b->block, b->bytes, b->fill));
            other = b->block;
            b->block = live[k];
            b->bytes = held[k];
            b->fill = (int)(id * 16 + k);
            pthread_mutex_unlock(&b->lock);
            free(other);
        }
    }
    return NULL;
}

static void threads(void) {
    pthread_t ids[8];
    size_t i;
    CHECK(pthread_key_create(&key, at_thread_end) == 0);
    for (i = 0; i < 16; i++) pthread_mutex_init(&boxes[i].lock, NULL);
    for (i = 0; i < 8; i++) CHECK(pthread_create(&ids[i], NULL, worker, (void *)i) == 0);
    for (i = 0; i < 60; i++) { /* forks while they run */
        pid_t child = fork();
        int status = 0;
        CHECK(child >= 0);
        if (child == 0) {
            size_t k;
            for (k = 0; k < 20; k++) {
                unsigned char *p = malloc(LARGE + k * 5000);
                memset(p, 5, LARGE);
                p = realloc(p, 3 * LARGE);
                if (!all(p, LARGE, 5)) _exit(1);
                free(p);
            }
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (i = 0; i < 8; i++) pthread_join(ids[i], NULL);
    for (i = 0; i < 16; i++) free(boxes[i].block);
}

int main(int count, char **arguments) {
    sizes_and_alignments();
    resizes_across_the_boundary();
    errors();
    memory_of_others();
    threads();
    if (count > 1 && strcmp(arguments[1], "bad") == 0) {
        /* Not for the C library's own malloc: a second free of a large block is refused, and the block stays free. */
        void *p = malloc(LARGE);
        free(p);
        free(p);
        free((char *)p + 128);
    }
    malloc_trim(0);
    puts("fine");
    return 0;
}
