// Collectives as an asynchronous operation of TensorFlow: no thread waits in it.
//
// The operation knows no transport.  A thread of the runtime takes collectives, with the memory of
// their tensors, from a queue, allocates results and completes them, through the C functions at the
// end of this file.  TensorFlow's threads only fill the queue: they never run Python.  The source
// compiles with TensorFlow 1.14 and newer; ``build.py`` does it.

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/errors.h"

namespace errors = tensorflow::errors;
using tensorflow::DataType;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using Status = decltype(errors::Unknown(""));

namespace {

// What TensorFlow requires of the address of a tensor.
constexpr size_t kAlignment = 64;
constexpr int kFirstInput = 1;  // after the token

// Memory for exchanges.  Blocks that are freed are used again: the pages of new ones cost more time
// than the copy into them.
class ExchangeAllocator : public tensorflow::Allocator {
 public:
  std::string Name() override { return "distributed_dl_training"; }

  void* AllocateRaw(size_t, size_t bytes) override {
    std::lock_guard<std::mutex> guard(lock_);
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      if (Size(*block) == bytes) {
        void* address = *block;
        free_.erase(block);
        return address;
      }
    }
    void* base = nullptr;
    if (posix_memalign(&base, kAlignment, bytes + kAlignment) != 0) return nullptr;
    *static_cast<size_t*>(base) = bytes;
    return static_cast<char*>(base) + kAlignment;
  }

  void DeallocateRaw(void* address) override {
    std::lock_guard<std::mutex> guard(lock_);
    if (Size(address) < kSmall) {
      std::free(static_cast<char*>(address) - kAlignment);
      return;
    }
    free_.push_back(address);
    if (free_.size() > kBlocks) {
      std::free(static_cast<char*>(free_.front()) - kAlignment);
      free_.erase(free_.begin());
    }
  }

 private:
  static constexpr size_t kBlocks = 4;
  static constexpr size_t kSmall = 1 << 20;  // bytes; the C library uses smaller ones again itself

  static size_t Size(void* address) {
    return *reinterpret_cast<size_t*>(static_cast<char*>(address) - kAlignment);
  }

  std::mutex lock_;
  std::vector<void*> free_;
};

ExchangeAllocator* exchange_allocator() {
  static ExchangeAllocator* allocator = new ExchangeAllocator;  // outlives every tensor
  return allocator;
}

// The end of an operation: it comes from the runtime, or earlier from TensorFlow, which cancels it.
// After it the context and its manager of cancellations are gone.
struct Completion {
  OpKernelContext* context;
  tensorflow::AsyncOpKernel::DoneCallback done;
  std::atomic<bool> claimed;  // by one of the two
};

// A collective under way.  It holds its tensors until the runtime completes it, also if TensorFlow
// has cancelled the operation.
struct Request {
  std::shared_ptr<Completion> completion;
  std::string collective;
  bool in_place;
  tensorflow::CancellationManager* manager;
  tensorflow::CancellationToken token;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  Tensor exchange;  // of a collective that works in place
  std::vector<int64_t> numbers;
  std::vector<void*> data;
};

// What the runtime has not taken yet.
struct Queue {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Request*> requests;
  bool woken = false;
  pid_t process = 0;  // whose thread takes them; 0: nobody does
};

Queue* queue() {
  static Queue* queue = new Queue;  // a thread may wait for it until the process ends
  return queue;
}

Status CollectiveError(int code, const char* message) {
  if (code == 3) return errors::InvalidArgument(message);
  if (code == 12) return errors::Unimplemented(message);
  return errors::Unknown(message);
}

class CollectiveOp : public tensorflow::AsyncOpKernel {
 public:
  explicit CollectiveOp(tensorflow::OpKernelConstruction* context) : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("collective", &collective_));
    OP_REQUIRES_OK(context, context->GetAttr("in_place", &in_place_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    OP_REQUIRES_ASYNC(context, queue()->process == getpid(),
                      errors::FailedPrecondition("this process does not run the runtime"), done);
    tensorflow::OpInputList inputs;
    OP_REQUIRES_OK_ASYNC(context, context->input_list("inputs", &inputs), done);
    std::shared_ptr<Completion> completion(new Completion{context, done, {false}});
    Request* request =
        new Request{completion, collective_, in_place_, context->cancellation_manager()};
    for (const Tensor& input : inputs) {
      request->inputs.push_back(input);
      request->numbers.push_back(input.dtype());
      request->numbers.push_back(input.dims());
      for (int axis = 0; axis < input.dims(); ++axis) {
        request->numbers.push_back(input.dim_size(axis));
      }
      request->data.push_back(const_cast<char*>(input.tensor_data().data()));
    }
    for (int index = 0; index < context->num_outputs(); ++index) {
      request->outputs.emplace_back(context->expected_output_dtype(index));
    }
    if (in_place_) {
      Pack(context, request);
      request->data.assign(1, const_cast<char*>(request->exchange.tensor_data().data()));
    }
    if (in_place_ && !request->exchange.IsInitialized()) {
      delete request;
      context->SetStatus(errors::ResourceExhausted("no memory for a collective"));
      done();
    } else if (!WatchCancellation(request)) {
      delete request;
      context->SetStatus(errors::Cancelled("collective cancelled"));
      done();
    } else {
      std::lock_guard<std::mutex> guard(queue()->lock);
      queue()->requests.push_back(request);
      queue()->changed.notify_one();
    }
  }

 private:
  // Completes the operation when TensorFlow cancels it; returns false if that has happened already.
  static bool WatchCancellation(Request* request) {
    if (request->manager == nullptr) return true;
    request->token = request->manager->get_cancellation_token();
    const auto completion = request->completion;
    return request->manager->RegisterCallback(request->token, [completion]() {
      if (completion->claimed.exchange(true)) return;
      completion->context->SetStatus(errors::Cancelled("collective cancelled"));
      completion->done();
    });
  }

  // Brings the inputs, of one dtype, together in request->exchange.
  static void Pack(OpKernelContext* context, Request* request) {
    std::vector<Tensor>& inputs = request->inputs;
    if (inputs.size() == 1) {
      const DataType dtype = inputs[0].dtype();
      const TensorShape shape = inputs[0].shape();
      inputs.clear();  // or it has two owners, and cannot be forwarded
      auto forwarded = context->forward_input(kFirstInput, 0, dtype, shape, tensorflow::HOST_MEMORY,
                                              tensorflow::AllocatorAttributes());
      if (forwarded != nullptr) {
        request->exchange = *forwarded;
        return;
      }
      inputs.push_back(context->input(kFirstInput));
    }
    int64_t elements = 0;
    for (const Tensor& input : inputs) elements += input.NumElements();
    request->exchange = Tensor(exchange_allocator(), inputs[0].dtype(), TensorShape({elements}));
    char* target = const_cast<char*>(request->exchange.tensor_data().data());
    for (const Tensor& input : inputs) {
      const auto source = input.tensor_data();
      if (source.size() > 0) std::memcpy(target, source.data(), source.size());
      target += source.size();
    }
  }

  std::string collective_;
  bool in_place_;
};

// Gives each output its part of the exchange: the memory itself where TensorFlow's alignment allows
// it, else a copy.
void Unpack(OpKernelContext* context, const Tensor& exchange) {
  int64_t start = 0;
  const auto memory = exchange.tensor_data();
  const int64_t itemsize = tensorflow::DataTypeSize(exchange.dtype());
  for (int index = 0; index < context->num_outputs(); ++index) {
    const TensorShape shape = context->input(kFirstInput + index).shape();
    const int64_t end = start + shape.num_elements();
    Tensor output(exchange.dtype());
    if (start == 0 && end == exchange.NumElements()) {
      CHECK(output.CopyFrom(exchange, shape));
    } else if (start < end && start * itemsize % kAlignment == 0) {
      CHECK(output.CopyFrom(exchange.Slice(start, end), shape));
    } else {
      output = Tensor(exchange.dtype(), shape);
      if (start < end) {
        std::memcpy(const_cast<char*>(output.tensor_data().data()), memory.data() + start * itemsize,
                    (end - start) * itemsize);
      }
    }
    context->set_output(index, output);
    start = end;
  }
}

Status SetShapes(tensorflow::shape_inference::InferenceContext* context) {
  std::vector<tensorflow::PartialTensorShape> shapes;
  TF_RETURN_IF_ERROR(context->GetAttr("shapes", &shapes));
  for (size_t index = 0; index < shapes.size(); ++index) {
    tensorflow::shape_inference::ShapeHandle shape;
    TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shapes[index], &shape));
    context->set_output(index, shape);
  }
  return Status();
}

// A stateful operation is neither dropped, nor merged with another one, nor run beforehand.
//
// In a tf.function TensorFlow executes stateful operations in the order of the program, but for those
// that use different resources.  So each collective has a token, a resource, of its own.
REGISTER_OP("DistributedDlCollective")
    .Input("token: resource")
    .Input("inputs: input_types")
    .Output("outputs: output_types")
    .Attr("input_types: list(type) >= 1")
    .Attr("output_types: list(type) >= 1")
    .Attr("shapes: list(shape)")
    .Attr("collective: string")
    .Attr("in_place: bool")
    .SetIsStateful()
    .SetShapeFn(SetShapes);

class TokenOp : public tensorflow::OpKernel {
 public:
  explicit TokenOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    Tensor* token = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &token));
  }
};

REGISTER_OP("DistributedDlToken")
    .Output("token: resource")
    .SetShapeFn(tensorflow::shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name("DistributedDlToken").Device(tensorflow::DEVICE_CPU), TokenOp);
REGISTER_KERNEL_BUILDER(Name("DistributedDlCollective").Device(tensorflow::DEVICE_CPU), CollectiveOp);

void Complete(Request* request, int code, const char* message) {
  const auto completion = request->completion;
  if (completion->claimed.exchange(true)) {
    delete request;
    return;
  }
  OpKernelContext* context = completion->context;
  if (request->manager != nullptr) request->manager->DeregisterCallback(request->token);
  if (code != 0) {
    context->SetStatus(CollectiveError(code, message));
  } else if (request->in_place) {
    Unpack(context, request->exchange);
  } else {
    for (size_t index = 0; index < request->outputs.size(); ++index) {
      context->set_output(index, request->outputs[index]);
    }
  }
  delete request;  // first: an output of one owner can be changed in place
  completion->done();
}

}  // namespace

extern "C" {

// Says that a thread of this process takes collectives; returns the version of this interface.
int ddlt_open() {
  queue()->process = getpid();
  return 1;
}

// Takes a collective, to be completed once; null if there is none.  wait: whether to wait for one, or
// for ddlt_wake.  collective: the attribute of the node.  numbers: dtype, number of dimensions and
// dimensions of each input, ``length`` numbers in all.  data: the memory of each input; if the
// collective works in place, one address, where all of them lie one behind the other.
void* ddlt_take(int wait, const char** collective, int64_t* length, const int64_t** numbers,
                void* const** data) {
  std::unique_lock<std::mutex> guard(queue()->lock);
  if (wait != 0) {
    queue()->changed.wait(guard, [] { return queue()->woken || !queue()->requests.empty(); });
    queue()->woken = false;
  }
  if (queue()->requests.empty()) return nullptr;
  Request* request = queue()->requests.front();
  queue()->requests.pop_front();
  *collective = request->collective.c_str();
  *length = request->numbers.size();
  *numbers = request->numbers.data();
  *data = request->data.data();
  return request;
}

// Lets ddlt_take return.
void ddlt_wake() {
  std::lock_guard<std::mutex> guard(queue()->lock);
  queue()->woken = true;
  queue()->changed.notify_one();
}

// Returns memory for a result of these dimensions; null if there is none.
void* ddlt_allocate(void* handle, int index, int dimensions, const int64_t* shape) {
  TensorShape dims;
  for (int axis = 0; axis < dimensions; ++axis) dims.AddDim(shape[axis]);
  Tensor& output = static_cast<Request*>(handle)->outputs[index];
  output = Tensor(output.dtype(), dims);
  return const_cast<char*>(output.tensor_data().data());
}

// Completes collectives.  codes: 0, or that of an error of TensorFlow, which gets the message.
void ddlt_complete(int count, void* const* handles, const int* codes, const char* const* messages) {
  for (int index = 0; index < count; ++index) {
    Complete(static_cast<Request*>(handles[index]), codes[index], messages[index]);
  }
}
}
