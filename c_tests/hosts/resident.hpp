/* Resident memory of the process, its peak since the last reset, and processor time. Linux. */
#ifndef HOSTS_RESIDENT_HPP
#define HOSTS_RESIDENT_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace hosts {

/* KiB, or -1 where the system does not say. */
inline long status_kib(const char *field) {
    long kib = -1;
    if (std::FILE *file = std::fopen("/proc/self/status", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file) != nullptr) {
            if (std::strncmp(line, field, std::strlen(field)) == 0) {
                kib = std::atol(line + std::strlen(field));
            }
        }
        std::fclose(file);
    }
    return kib;
}

inline double resident_mib() { return double(status_kib("VmRSS:")) / 1024; }
/* The part that is pages of files: libraries' code, which depends on the system's file cache. */
inline double file_mib() { return double(status_kib("RssFile:")) / 1024; }
inline double peak_mib() { return double(status_kib("VmHWM:")) / 1024; }

/* The peak starts again from what is resident now. */
inline void reset_peak() {
    if (std::FILE *file = std::fopen("/proc/self/clear_refs", "w")) {
        std::fputs("5", file);
        std::fclose(file);
    }
}

/* Milliseconds of all threads. */
inline double processor_ms() {
    std::timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) * 1e3 + double(t.tv_nsec) / 1e6;
}

} // namespace hosts

#endif
