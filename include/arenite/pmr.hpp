/*
 * std::pmr over an arenite pool. Header only, C++17; link arenite::arenite.
 *
 *   arenite::pool_resource memory;                     // a pool of its own, from the system
 *   std::pmr::vector<float> tensor(1 << 20, &memory);
 *
 * Where memory runs out std::bad_alloc is thrown, as std::pmr asks; with -fno-exceptions the program is aborted, since a
 * memory_resource may not return null. With -fno-rtti two resources over one pool do not compare equal.
 *
 * Threads: any, as the pool.
 */
#ifndef ARENITE_PMR_HPP
#define ARENITE_PMR_HPP

#include <arenite.h>

#if !(__cplusplus >= 201703L || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L))
#error "arenite/pmr.hpp needs C++17: std::pmr begins there"
#endif

#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <new>

namespace arenite {

/* A memory_resource over a pool: its own, or one that outlives it. */
class pool_resource final : public std::pmr::memory_resource {
public:
    /* Makes a pool; std::bad_alloc where that fails. `options` may be null. */
    explicit pool_resource(const arenite_pool_options_t *options = nullptr) {
        if (arenite_pool_create(options, &own_, nullptr) != ARENITE_OK) {
            no_memory();
        }
        pool_ = own_;
    }

    /* Uses a pool that is the caller's and outlives this object. */
    explicit pool_resource(const arenite_pool_t &pool) noexcept : pool_(&pool) {}

    pool_resource(const pool_resource &) = delete;
    pool_resource &operator=(const pool_resource &) = delete;

    /* Destroys the pool if it is its own. With live blocks the pool stays, as their owners still use it. */
    ~pool_resource() override {
        if (own_ != nullptr) {
            (void)(arenite_pool_destroy(own_, nullptr) == ARENITE_OK);
        }
    }

    const arenite_pool_t *pool() const noexcept { return pool_; }

private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        void *data = nullptr;
        if (arenite_pool_alloc(pool_, bytes, alignment, &data, nullptr) != ARENITE_OK) {
            no_memory();
        }
        return data;
    }

    void do_deallocate(void *data, std::size_t, std::size_t) override {
        /* A refusal means that the block was none of the pool's: nothing was changed, and this cannot throw. */
        (void)(arenite_pool_free(pool_, data, nullptr) == ARENITE_OK);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti) || defined(_CPPRTTI)
        const auto *same = dynamic_cast<const pool_resource *>(&other);
        return same != nullptr && same->pool_ == pool_;
#else
        return this == &other;
#endif
    }

    [[noreturn]] static void no_memory() {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
        throw std::bad_alloc();
#else
        std::abort();
#endif
    }

    arenite_pool_t *own_ = nullptr;
    const arenite_pool_t *pool_ = nullptr;
};

} // namespace arenite

#endif
