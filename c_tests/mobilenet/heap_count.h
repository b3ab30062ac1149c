/*
 * Counts heap calls of the whole process, also those inside a shared library: the program defines the malloc family
 * itself, which takes precedence over the C library's. Under a sanitizer its allocation hooks count instead.
 */
#ifndef MOBILENET_HEAP_COUNT_H
#define MOBILENET_HEAP_COUNT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Calls so far that take memory or give it back; free(NULL) is none. */
unsigned long heap_calls(void);

/* Whether this build can count them. */
int heap_is_counted(void);

#ifdef __cplusplus
}
#endif

#endif
