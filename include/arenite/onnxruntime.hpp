/*
 * ONNX Runtime's CPU memory from an arenite pool, with runs that repeat served from one planned arena. Header only,
 * C++11, no exceptions, no RTTI; link arenite::arenite. Needs no header of ONNX Runtime: `Host` is its `OrtAllocator`.
 *
 *   #include <onnxruntime_c_api.h>
 *   #include <arenite/onnxruntime.hpp>
 *
 *   arenite::onnxruntime::Allocator<OrtAllocator> memory;                  // outlives the environment
 *   ort->CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info);
 *   ort->RegisterAllocator(env, memory.attach(info));
 *   ort->AddSessionConfigEntry(options, "session.use_env_allocators", "1");
 *   ort->DisableMemPattern(options);                                       // its planner would hide the sequence from ours
 *   ort->CreateSession(env, path, options, &session);
 *   memory.settle();                                                       // what loading needed goes back
 *   for each input:
 *       arenite::Frame frame(memory, arenite::Signature().shape(dims, rank));
 *       ort->Run(session, ...);
 *       // read and release the outputs here: what is released before the frame ends is in the plan
 *
 * What frames do, and which threads they serve: frames.hpp. Several threads may call Run at once.
 */
#ifndef ARENITE_ONNXRUNTIME_HPP
#define ARENITE_ONNXRUNTIME_HPP

#include <arenite/frames.hpp>

#if defined(_WIN32) && !defined(_WIN64)
#define ARENITE_ORT_CALL __stdcall
#else
#define ARENITE_ORT_CALL
#endif

namespace arenite {
namespace onnxruntime {

/*
 * The host's struct of function pointers over a `Memory`. `Host` is `OrtAllocator` of any version of its header. As the
 * host's own allocator it has no block for 0 bytes.
 */
template <class Host>
class Allocator final : public Host, public Memory {
public:
    explicit Allocator(const arenite_pool_options_t *options = nullptr) noexcept : Host(), Memory(options) {
        /* The table version whose fields the host may read: 18 is the first with Reserve, 1 has none. */
        Host::version = has_reserve<Host>(0) ? 18 : 1;
        Host::Alloc = &Allocator::alloc;
        Host::Free = &Allocator::free;
        Host::Info = &Allocator::info;
        set_reserve<Host>(this, 0);
    }

    /* `info` is an `OrtMemoryInfo *`: kept, so it is released after the environment. Returns what to register. */
    template <class Info>
    Host *attach(const Info *info) noexcept {
        info_ = info;
        return this;
    }

    Host *host() noexcept { return this; }

private:
    using InfoFunction = decltype(Host::Info);

    template <class Result, class... Arguments>
    static Result result_of(Result(ARENITE_ORT_CALL *)(Arguments...));
    using InfoPointer = decltype(result_of(static_cast<InfoFunction>(nullptr)));

    static void *ARENITE_ORT_CALL alloc(Host *self, std::size_t bytes) {
        return bytes != 0 ? static_cast<Allocator *>(self)->allocate(bytes) : nullptr;
    }
    static void *ARENITE_ORT_CALL reserved(Host *self, std::size_t bytes) {
        return bytes != 0 ? static_cast<Allocator *>(self)->reserve(bytes) : nullptr;
    }
    static void ARENITE_ORT_CALL free(Host *self, void *data) { static_cast<Allocator *>(self)->release(data); }
    static InfoPointer ARENITE_ORT_CALL info(const Host *self) {
        return static_cast<InfoPointer>(static_cast<const Allocator *>(self)->info_);
    }

    template <class H>
    static constexpr auto has_reserve(int) -> decltype(static_cast<void>(&H::Reserve), true) {
        return true;
    }
    template <class H>
    static constexpr bool has_reserve(long) {
        return false;
    }
    template <class H>
    static auto set_reserve(H *host, int) -> decltype(static_cast<void>(&H::Reserve)) {
        host->Reserve = &Allocator::reserved;
    }
    template <class H>
    static void set_reserve(H *, long) {}

    const void *info_ = nullptr;
};

} // namespace onnxruntime
} // namespace arenite

#endif
