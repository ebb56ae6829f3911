// A kernel that has no Python beside it: softmax's gradient in float32, against fixtures.
//
//   aclnn-oracle golden fixtures --op softmax_backward --tier smoke -k "float32 and not float16"   (here is Python)
//   g++ -std=c++17 -O2 examples/cpp/softmax_backward.cpp -o kernel && ./kernel fixtures results
//   aclnn-oracle judge fixtures results -o results.jsonl                  (and here: record and report)
#include <cstdio>

#include "fixtures.hpp"

using fixtures::Array;

// The kernel under test: out = (gradOutput - sum(gradOutput * output, dim)) * output.
static void softmax_backward(const Array& g, const Array& y, int64_t dim, Array& out) {
  int64_t rank = static_cast<int64_t>(g.shape.size()), length = 1, inner = 1;
  if (rank > 0) {
    int64_t axis = dim < 0 ? dim + rank : dim;
    length = g.shape[static_cast<size_t>(axis)];
    for (int64_t k = axis + 1; k < rank; k++) inner *= g.shape[static_cast<size_t>(k)];
  }
  int64_t count = static_cast<int64_t>(g.size());
  for (int64_t block = 0; block < count; block += length * inner) {
    for (int64_t row = block; row < block + inner; row++) {
      float sum = 0;
      for (int64_t i = row; i < row + length * inner; i += inner) sum += g.as<float>()[i] * y.as<float>()[i];
      for (int64_t i = row; i < row + length * inner; i += inner)
        out.as<float>()[i] = (g.as<float>()[i] - sum) * y.as<float>()[i];
    }
  }
}

int main(int count, char** words) try {
  if (count != 3) throw std::runtime_error("usage: kernel FIXTURES RESULTS");
  size_t run = 0, failed = 0;
  fixtures::each(words[1], [&](const fixtures::Case& c) {
    if (!c.has_golden || c.op != "aclnnSoftmaxBackward" || c.golden.at("out").dtype != "float32") return;
    for (const auto& [name, array] : c.inputs)
      if (array.dtype != "float32") return;
    Array out = c.golden.at("out");
    std::fill(out.bytes.begin(), out.bytes.end(), char(0));
    softmax_backward(c.inputs.at("gradOutput"), c.inputs.at("output"), std::stoll(c.attributes["dim"].word), out);
    write_npy(fixtures::fs::path(words[2]) / c.folder / "out__float32.npy", out);
    run++;
    if (size_t wrong = fixtures::wrong(c, "out", out)) {
      failed++;
      std::printf("%s: %zu of %zu elements are wrong\n", c.id.c_str(), wrong, out.size());
    }
  });
  std::printf("%zu cases, %zu failed\n", run, failed);
  return failed || !run ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "kernel: %s\n", error.what());
  return 2;
}
