/* Two threads write one variable: ThreadSanitizer must say so. */
#include <pthread.h>
#include <stddef.h>

/* Volatile, or the loop becomes one access, and two at the very same moment can miss each other. */
static volatile int shared;

static void *writer(void *argument) {
    int i;
    (void)argument;
    for (i = 0; i < 100000; i++) {
        shared++;
    }
    return NULL;
}

int main(void) {
    pthread_t other;
    if (pthread_create(&other, NULL, writer, NULL) != 0) {
        return 1;
    }
    writer(NULL);
    pthread_join(other, NULL);
    return 0;
}
