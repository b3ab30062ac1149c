/*
 * A program in ExecuTorch, with memory from the heap or from an arenite pool.
 *
 *   run alone|arenite OUTPUTS PROGRAM...       each program's outputs go to OUTPUTS; all programs must have the same
 *   run plan < rows                            plans `bytes first last` rows; prints the arena and then every offset
 */
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <arenite/executorch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using executorch::extension::FileDataLoader;
using executorch::runtime::Error;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Program;
using executorch::runtime::Span;

namespace {

void need(bool condition, const char *what) {
    if (!condition) {
        std::fprintf(stderr, "failed: %s\n", what);
        std::exit(1);
    }
}

/* One heap call for each request, as a host without an arena has it. */
class Heap : public MemoryAllocator {
public:
    Heap() : MemoryAllocator(0, nullptr) {}
    ~Heap() override { clear(); }
    void *allocate(size_t bytes, size_t alignment) override {
        requests++;
        alignment = alignment < sizeof(void *) ? sizeof(void *) : alignment;
        blocks_.push_back(std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment));
        return blocks_.back();
    }
    void reset() override { clear(); }
    unsigned requests = 0;

private:
    void clear() {
        for (void *block : blocks_) {
            std::free(block);
        }
        blocks_.clear();
    }
    std::vector<void *> blocks_;
};

std::vector<char> execute(const char *path, const arenite_pool_t *pool) {
    auto loader = FileDataLoader::from(path, 128);
    need(loader.ok(), "the program file cannot be opened");
    auto program = Program::load(&loader.get());
    need(program.ok(), "the program does not load");
    const char *name = *program->get_method_name(0);
    auto meta = program->method_meta(name);
    arenite::executorch::Buffers<Span<uint8_t>> planned(pool);
    std::vector<std::vector<uint8_t>> own;
    std::vector<Span<uint8_t>> spans;
    size_t total = 0;
    for (size_t i = 0; i < meta->num_memory_planned_buffers(); i++) {
        const int64_t bytes = *meta->memory_planned_buffer_size(i);
        total += size_t(bytes);
        if (pool != nullptr) {
            need(planned.add(bytes), "memory for a planned buffer");
        } else {
            own.emplace_back(size_t(bytes));
            spans.emplace_back(own.back().data(), own.back().size());
        }
    }
    HierarchicalAllocator hierarchy(pool != nullptr ? Span<Span<uint8_t>>(planned.data(), planned.size())
                                                    : Span<Span<uint8_t>>(spans.data(), spans.size()));
    Heap heap_method, heap_temp;
    arenite::executorch::Allocator<MemoryAllocator> method_memory(pool), temp_memory(pool);
    MemoryManager manager(pool != nullptr ? static_cast<MemoryAllocator *>(&method_memory) : &heap_method, &hierarchy,
                          pool != nullptr ? static_cast<MemoryAllocator *>(&temp_memory) : &heap_temp);
    auto method = program->load_method(name, &manager);
    need(method.ok(), "the method does not load");
    std::vector<char> outputs;
    uint64_t chunks_loaded = method_memory.chunks(), loaded = method_memory.requests();
    for (int run = 0; run < 3; run++) {
        auto input = method->get_input(0).toTensor();
        for (ssize_t k = 0; k < input.numel(); k++) {
            input.mutable_data_ptr<float>()[k] = float((k + run) % 61) / 61.f - 0.3f;
        }
        need(method->execute() == Error::Ok, "execute");
        auto output = method->get_output(0).toTensor();
        const char *data = reinterpret_cast<const char *>(output.const_data_ptr<float>());
        outputs.insert(outputs.end(), data, data + output.nbytes());
    }
    const char *file = std::strrchr(path, '/') + 1;
    if (pool != nullptr) {
        std::printf("%-12s planned %zu bytes; loading: %llu blocks in %llu chunks; 3 inferences: %llu blocks for the method, %llu "
                    "temporary in %llu chunks, %zu bytes at most\n",
                    file, total, (unsigned long long)loaded, (unsigned long long)chunks_loaded,
                    (unsigned long long)(method_memory.requests() - loaded), (unsigned long long)temp_memory.requests(),
                    (unsigned long long)temp_memory.chunks(), temp_memory.peak());
        need(reinterpret_cast<uintptr_t>(planned.data()[0].data()) % 128 == 0, "planned buffers are aligned");
    } else {
        std::printf("%-12s planned %zu bytes; loading and 3 inferences: %u heap calls for the method, %u temporary\n", file, total,
                    heap_method.requests, heap_temp.requests);
    }
    return outputs;
}

int plan() {
    arenite_planner_t *planner = nullptr;
    arenite_plan_t *result = nullptr;
    need(arenite_planner_create(nullptr, &planner, nullptr) == ARENITE_OK, "arenite_planner_create");
    unsigned long long bytes = 0;
    uint32_t first = 0, last = 0, count = 0;
    while (std::scanf("%llu %u %u", &bytes, &first, &last) == 3) {
        arenite_buffer_desc_t desc{};
        desc.struct_size = sizeof desc;
        desc.bytes = bytes;
        desc.first = first;
        desc.last = last;
        need(arenite_planner_add(planner, &desc, &count) == ARENITE_OK, "arenite_planner_add");
    }
    need(arenite_planner_plan(planner, &result) == ARENITE_OK, "arenite_planner_plan");
    arenite_plan_info_t info{};
    info.struct_size = sizeof info;
    need(arenite_plan_info(result, &info) == ARENITE_OK, "arenite_plan_info");
    std::printf("%llu\n", (unsigned long long)info.arena_bytes);
    for (uint32_t i = 0; i <= count; i++) {
        uint64_t offset = 0;
        need(arenite_plan_offset(result, i, &offset) == ARENITE_OK, "arenite_plan_offset");
        std::printf("%llu\n", (unsigned long long)offset);
    }
    std::fprintf(stderr, "planned %u tensors of %llu bytes in %llu, bound %llu\n", count + 1,
                 (unsigned long long)info.total_bytes, (unsigned long long)info.arena_bytes,
                 (unsigned long long)info.lower_bound);
    arenite_plan_destroy(result);
    arenite_planner_destroy(planner);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 2 && std::string(argv[1]) == "plan") {
        return plan();
    }
    std::FILE *out = argc > 3 ? std::fopen(argv[2], "wb") : nullptr;
    if (out == nullptr) {
        std::fprintf(stderr, "usage: run alone|arenite OUTPUTS PROGRAM... | run plan\n");
        return 2;
    }
    executorch::runtime::runtime_init();
    arenite_pool_t *pool = nullptr;
    if (std::string(argv[1]) == "arenite") {
        need(arenite_pool_create(nullptr, &pool, nullptr) == ARENITE_OK, "arenite_pool_create");
    }
    std::vector<char> first;
    for (int i = 3; i < argc; i++) {
        const std::vector<char> outputs = execute(argv[i], pool);
        need(i == 3 || outputs == first, "another plan gives the same outputs");
        first = outputs;
        std::fwrite(outputs.data(), 1, outputs.size(), out);
    }
    std::fclose(out);
    need(arenite_pool_destroy(pool, nullptr) == ARENITE_OK, "every block has come back");
    return 0;
}
