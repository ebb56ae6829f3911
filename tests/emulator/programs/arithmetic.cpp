// libopapi_math: what its functions refuse. Its headers are not among the emulator's.
#include "work.h"

extern "C" {
int aclnnCatGetWorkspaceSize(const aclTensorList*, int64_t, aclTensor*, uint64_t*, aclOpExecutor**);
int aclnnCat(void*, uint64_t, aclOpExecutor*, aclrtStream);
int aclnnCastGetWorkspaceSize(const aclTensor*, aclDataType, aclTensor*, uint64_t*, aclOpExecutor**);
int aclnnCast(void*, uint64_t, aclOpExecutor*, aclrtStream);
}

static int cat(std::vector<aclTensor*> parts, int64_t dim, aclTensor* out, aclOpExecutor** executor) {
  uint64_t workspace = 0;
  return aclnnCatGetWorkspaceSize(aclCreateTensorList(parts.data(), parts.size()), dim, out, &workspace, executor);
}

CASE(parts_fill_the_output) {
  start();
  void* memory = floats({7, 7, 7, 7, 7});
  aclTensor *two = row(floats({1, 2}), 2), *three = row(floats({3, 4, 5}), 3), *none = row(floats({0}), 0);
  aclOpExecutor* executor = nullptr;
  OK(cat({two, none, three}, -1, row(memory, 5), &executor));
  OK(aclnnCat(nullptr, 0, executor, nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(memory, 5) == std::vector<float>({1, 2, 3, 4, 5}));
}

CASE(parts_that_do_not_fill_the_output_are_refused) {
  start();
  aclTensor *two = row(floats({1, 2}), 2), *out = row(floats({7, 7, 7, 7, 7}), 5);
  int64_t square[2] = {1, 2};
  aclTensor* flat = aclCreateTensor(square, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, square, 2, floats({1, 2}));
  aclOpExecutor* executor = nullptr;
  REQUIRE(cat({two, nullptr}, 0, out, &executor) == 161001);
  REQUIRE(cat({two, two}, 0, out, &executor) == 161002);
  REQUIRE(message_has("out has 5 elements along the axis, the tensors have 4"));
  REQUIRE(cat({two, flat}, 0, out, &executor) == 161002);
  REQUIRE(message_has("the ranks differ"));
  REQUIRE(cat({}, 0, out, &executor) == 161002);
}

CASE(complex_numbers_fault_where_only_their_real_part_would_be_read) {
  start();
  int64_t n = 1, stride = 1;
  aclTensor* pair = aclCreateTensor(&n, 1, ACL_COMPLEX64, &stride, 0, ACL_FORMAT_ND, &n, 1, floats({1, 2}));
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  OK(aclnnCastGetWorkspaceSize(pair, ACL_FLOAT, row(floats({7}), 1), &workspace, &executor));
  OK(aclnnCast(nullptr, 0, executor, nullptr));
  require_fault("complex64");
}

int main(int argc, char** argv) { return run_named(argc, argv); }
