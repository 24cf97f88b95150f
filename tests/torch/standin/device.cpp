// An accelerator to test with, where there is none: PyTorch's device PrivateUse1, in the host's memory.
//
// Its streams are threads, so what was enqueued happens later, and whoever forgets to wait for it reads old values.
// What has no kernel here runs on the CPU, after what the current stream has to do.
// It includes as little of PyTorch as it can: all of it takes a minute to compile.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace {

constexpr auto KIND = c10::DeviceType::PrivateUse1;
constexpr auto LATE = std::chrono::milliseconds(2); // that every copy takes at least

struct Done { // of what was enqueued before an event was recorded
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    void set() {
        std::lock_guard<std::mutex> held(mutex);
        done = true;
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> held(mutex);
        changed.wait(held, [this] { return done; });
    }
    bool is_set() {
        std::lock_guard<std::mutex> held(mutex);
        return done;
    }
};

class Queue { // a stream
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;

  public:
    Queue() {
        std::thread([this] {
            for (;;) {
                std::function<void()> task;
                {
                    std::unique_lock<std::mutex> held(mutex);
                    changed.wait(held, [this] { return !tasks.empty(); });
                    task = std::move(tasks.front());
                    tasks.pop_front();
                }
                task();
            }
        }).detach();
    }
    void add(std::function<void()> task) {
        std::lock_guard<std::mutex> held(mutex);
        tasks.push_back(std::move(task));
        changed.notify_all();
    }
    std::shared_ptr<Done> mark() {
        auto done = std::make_shared<Done>();
        add([done] { done->set(); });
        return done;
    }
};

Queue &queue(c10::StreamId id) { // never destroyed, as its thread is not
    static auto *mutex = new std::mutex;
    static auto *queues = new std::map<c10::StreamId, Queue *>;
    std::lock_guard<std::mutex> held(*mutex);
    auto &found = (*queues)[id];
    if (!found) found = new Queue;
    return *found;
}

thread_local c10::StreamId current = 0;
std::atomic<c10::StreamId> newest{0};

c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(KIND, 0), id);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return KIND; }
    c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
    c10::Device getDevice() const override { return c10::Device(KIND, 0); }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::Stream getStream(c10::Device) const override { return stream(current); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
    c10::Stream getNewStream(c10::Device, int) const override { return stream(++newest); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(++newest); }
    c10::Stream exchangeStream(c10::Stream to) const override {
        auto before = stream(current);
        current = to.id();
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void **event, const c10::Stream &on, const c10::DeviceIndex, const c10::EventFlag) const override {
        delete static_cast<std::shared_ptr<Done> *>(*event);
        *event = new std::shared_ptr<Done>(queue(on.id()).mark());
    }
    void block(void *event, const c10::Stream &on) const override {
        if (!event) return;
        auto done = *static_cast<std::shared_ptr<Done> *>(event);
        queue(on.id()).add([done] { done->wait(); });
    }
    bool queryEvent(void *event) const override {
        return !event || (*static_cast<std::shared_ptr<Done> *>(event))->is_set();
    }
    void synchronizeEvent(void *event) const override {
        if (event) (*static_cast<std::shared_ptr<Done> *>(event))->wait();
    }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
        delete static_cast<std::shared_ptr<Done> *>(event);
    }
    bool queryStream(const c10::Stream &) const override { return false; }
    void synchronizeStream(const c10::Stream &on) const override { queue(on.id()).mark()->wait(); }
    void synchronizeDevice(const c10::DeviceIndex) const override {
        for (c10::StreamId id = 0; id <= newest; id++) queue(id).mark()->wait();
    }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

std::mutex pinned_mutex;
std::map<char *, size_t> pinned_blocks;

struct OnDevice final : c10::Allocator {
    c10::DataPtr allocate(size_t size) override {
        void *data = size ? malloc(size) : nullptr;
        return {data, data, &free, c10::Device(KIND, 0)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free; }
    void copy_data(void *to, const void *from, size_t count) const override { default_copy_data(to, from, count); }
} on_device;
REGISTER_ALLOCATOR(KIND, &on_device);

struct Pinned final : c10::Allocator {
    static void release(void *data) {
        std::lock_guard<std::mutex> held(pinned_mutex);
        pinned_blocks.erase(static_cast<char *>(data));
        free(data);
    }
    c10::DataPtr allocate(size_t size) override {
        void *data = malloc(size ? size : 1);
        std::lock_guard<std::mutex> held(pinned_mutex);
        pinned_blocks[static_cast<char *>(data)] = size ? size : 1;
        return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void *to, const void *from, size_t count) const override { default_copy_data(to, from, count); }
} pinned;

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return 1; }
    c10::DeviceIndex getCurrentDevice() const override { return 0; }
    void setCurrentDevice(c10::DeviceIndex) const override {}
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
    c10::Allocator *getPinnedMemoryAllocator() const override { return &pinned; }
    bool isPinnedPtr(const void *data) const override {
        std::lock_guard<std::mutex> held(pinned_mutex);
        auto after = pinned_blocks.upper_bound(static_cast<char *>(const_cast<void *>(data)));
        if (after == pinned_blocks.begin()) return false;
        --after;
        return static_cast<const char *>(data) < after->first + after->second;
    }
    at::Device getDeviceFromPtr(void *) const override { return c10::Device(KIND, 0); }
};

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
    return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &on_device,
                                     c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                     c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
    return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &on_device,
                                             c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                             c10::dtype_or_default(type));
}

// The same memory as a tensor of the CPU. It does not keep the memory alive.
at::Tensor on_cpu(const at::Tensor &of) {
    return at::from_blob(of.data_ptr(), of.sizes(), of.strides(), of.options().device(at::kCPU).requires_grad(false));
}

at::Tensor copy_from(const at::Tensor &from, const at::Tensor &to, bool non_blocking) {
    if (!to.numel()) return to;
    auto values = on_cpu(from.expand(to.sizes())), place = on_cpu(to);
    c10::Storage kept[] = {from.storage(), to.storage()};
    queue(current).add([values, place, a = kept[0], b = kept[1]]() mutable {
        std::this_thread::sleep_for(LATE);
        c10::InferenceMode unchecked; // whoever enqueued it has counted the change
        place.copy_(values);
    });
    bool host = (from.is_cpu() && !from.is_pinned()) || (to.is_cpu() && !to.is_pinned());
    if (!non_blocking || host) queue(current).mark()->wait();
    return to;
}

at::Tensor copy_from_and_resize(const at::Tensor &from, const at::Tensor &to) {
    to.resize_(from.sizes());
    return copy_from(from, to, false);
}

const at::Tensor &resize(const at::Tensor &of, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
    return at::native::resize_(of, C10_AS_INTARRAYREF_SLOW(size), format);
}

void record_stream(at::Tensor &, at::Stream) {} // what is enqueued holds the memory

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) { at::native::cpu_fallback(op, stack); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", &empty);
    m.impl("empty_strided", &empty_strided);
    m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
    m.impl("view", TORCH_FN(at::native::view));
    m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
    m.impl("resize_", &resize);
    m.impl("record_stream", &record_stream);
    m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
    m.impl("_copy_from", &copy_from);
    m.impl("_copy_from_and_resize", &copy_from_and_resize);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

} // namespace

// Enqueues in the current stream: after so many seconds the values, which have to stay in memory, are filled with one.
extern "C" void serene_fill_later(float *values, int64_t count, double value, double seconds) {
    queue(current).add([=] {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        std::fill_n(values, count, static_cast<float>(value));
    });
}
