/*
 * The part of ncnn's C++ interface that the test needs: the one binary package with ncnn's symbols has no headers. A program
 * of yours includes ncnn/net.h instead. Net and Option are opaque here, so Net is only storage that is large enough.
 */
#ifndef NCNN_INTERFACE_HPP
#define NCNN_INTERFACE_HPP

#include <cstddef>

namespace ncnn {

class Allocator {
public:
    virtual ~Allocator();
    virtual void *fastMalloc(std::size_t bytes) = 0;
    virtual void fastFree(void *data) = 0;
};

/* ncnn's own pool for one thread at a time. */
class UnlockedPoolAllocator : public Allocator {
public:
    UnlockedPoolAllocator();
    ~UnlockedPoolAllocator() override;
    void *fastMalloc(std::size_t bytes) override;
    void fastFree(void *data) override;
    void clear();

private:
    void *d_;
    char room_[64];
};

class DataReader {
public:
    DataReader();
    virtual ~DataReader();
    virtual int scan(const char *format, void *data) const;
    virtual std::size_t read(void *data, std::size_t bytes) const;
    virtual std::size_t reference(std::size_t bytes, const void **data) const;
};

/* A reference-counted tensor; field by field ncnn's since it has a depth. */
class Mat {
public:
    Mat() = default;
    ~Mat() { drop(); }
    Mat(const Mat &) = delete;
    Mat &operator=(const Mat &) = delete;

    void create(int width, int height, int channels, std::size_t element, Allocator *allocator);
    float *channel(int k) { return static_cast<float *>(data) + cstep * static_cast<std::size_t>(k); }

    void *data = nullptr;
    int *refcount = nullptr;
    std::size_t elemsize = 0;
    int elempack = 0;
    Allocator *allocator = nullptr;
    int dims = 0, w = 0, h = 0, d = 0, c = 0;
    std::size_t cstep = 0;

private:
    void drop();
};

class Net;

class Extractor {
public:
    virtual ~Extractor();
    Extractor(const Extractor &);
    void set_light_mode(bool on);
    void set_blob_allocator(Allocator *allocator);
    void set_workspace_allocator(Allocator *allocator);
    int input(const char *blob, const Mat &value);
    int extract(const char *blob, Mat &value, int type);

private:
    void *d_;
};

class Net {
public:
    Net();
    virtual ~Net();
    int load_param(const char *path);
    int load_param_mem(const char *text);
    int load_model(const char *path);
    int load_model(const DataReader &reader);
    Extractor create_extractor() const;

private:
    char room_[1024];
};

} // namespace ncnn

#endif
