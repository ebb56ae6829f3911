// The activations whose gradients the suite has: of each what the host code accepts (ops-nn, aclnn_*.cpp) and the
// formula, computed in float64 and rounded once.
#include "ops/nn/elementwise.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

constexpr size_t kMostScalars = 3;

// What the host code asks beside one shape.
enum Rules : unsigned {
  kSameType = 1,          // out has self's dtype
  kFloatOut = 2,          // out has one of self's floating dtypes
  kCastOut = 4,           // self's dtype can be cast to out's
  kCastOutBefore950 = 8,  // ascend950 does not ask
  kAnyRank = 16,          // more than 8 dims are accepted
  kPublicFormat = 32,     // no format of CANN's own
  kSameFormat = 128,
  kSinceA2 = 256,         // no dtype is accepted before Atlas A2
  kOptionalScalar = 512,  // a null pointer is 1
  kScalarsCastToSelf = 1024,
  kScalarsCastToFloat = 2048,
  kScalarsRounded = 4096,  // to self's type, without a check
};

using Scalars = std::array<std::shared_ptr<ScalarInfo>, kMostScalars>;

struct Activation {
  unsigned rules;
  uint64_t more;  // dtypes beside float16, float32 and bfloat16: the bits of their numbers
  const char* scalars[kMostScalars];
  double (*formula)(double x, const double* s);
  void (*check_values)(const Scalars& s) = nullptr;
  int64_t (*of_integers)(int64_t x, const int64_t* s) = nullptr;  // where self is of integers, which stay so
};

constexpr uint64_t types(std::initializer_list<aclDataType> listed) {
  uint64_t bits = 0;
  for (aclDataType type : listed) bits |= uint64_t{1} << type;
  return bits;
}

// The formulas; s holds the attributes in their order.
double gelu_by_tanh(double x, const double*) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));  // sqrt(2 / pi)
}
double gelu_by_erf(double x, const double*) { return x / 2 * std::erfc(-x * 0.7071067811865476); }  // 1 / sqrt(2)
double fast_gelu(double x, const double*) { return x / (1 + std::exp(-1.702 * x)); }
double silu(double x, const double*) { return x / (1 + std::exp(-x)); }
double swish(double x, const double* s) { return x / (1 + std::exp(-s[0] * x)); }
double mish(double x, const double*) { return x * std::tanh(std::log1p(std::exp(x))); }
double softplus(double x, const double* s) { return s[0] * x > s[1] ? x : std::log1p(std::exp(s[0] * x)) / s[0]; }
double elu(double x, const double* s) {
  if (!std::isfinite(s[0]) || !std::isfinite(s[2])) return (x <= 0 ? -s[0] : x) * s[1];  // the host takes Threshold
  return x > 0 ? s[1] * x : s[0] * s[1] * std::expm1(s[2] * x);
}
double celu(double x, const double* s) { return x > 0 ? x : s[0] * std::expm1(x / s[0]); }
double leaky_relu(double x, const double* s) { return x > 0 ? x : s[0] * x; }
double relu(double x, const double*) { return x <= 0 ? 0 : x; }
double threshold(double x, const double* s) { return x <= s[0] ? s[1] : x; }
double clamp(double x, double low, double high) {  // the upper limit wins
  double raised = x < low ? low : x;
  return raised > high ? high : raised;
}
double hardtanh(double x, const double* s) { return clamp(x, s[0], s[1]); }
int64_t integer_relu(int64_t x, const int64_t*) { return std::max<int64_t>(x, 0); }
int64_t integer_threshold(int64_t x, const int64_t* s) { return x <= s[0] ? s[1] : x; }
int64_t integer_hardtanh(int64_t x, const int64_t* s) { return std::min(std::max(x, s[0]), s[1]); }
double hardshrink(double x, const double* s) { return std::fabs(x) <= s[0] ? 0 : x; }
double softshrink(double x, const double* s) { return x > s[0] ? x - s[0] : x < -s[0] ? x + s[0] : 0 * x; }
double hardsigmoid(double x, const double*) { return clamp(x / 6 + 0.5, 0, 1); }
double hardswish(double x, const double*) { return x * clamp(x + 3, 0, 6) / 6; }

void check_order(const Scalars& s) {
  bool whole = is_integer(s[0]->type);  // an integral min is compared with an integral max
  check(whole ? std::trunc(s[0]->real) <= std::trunc(s[1]->real) : !(s[0]->real > s[1]->real), "clipValueMin is %g, clipValueMax %g; min must not be larger", s[0]->real,
        s[1]->real);
}
void check_not_negative(const Scalars& s) {
  check(!(value_of(s[0]) < 0), "lambd is %g; it must not be negative", s[0]->real);
}
void check_not_zero(const Scalars& s) {
  check(value_of(s[0]) > 0 || value_of(s[0]) < 0, "alpha is %g; it must not be 0", s[0]->real);
}

constexpr uint64_t kIntegers = types({ACL_INT8, ACL_UINT8, ACL_INT32, ACL_INT64});
constexpr uint64_t kMoreIntegers = kIntegers | types({ACL_INT16});
constexpr uint64_t kDouble = types({ACL_DOUBLE});

constexpr Activation kGelu = {kSameType | kPublicFormat, 0, {}, gelu_by_tanh};
constexpr Activation kGeluByTanh = {kSameType | kAnyRank, 0, {}, gelu_by_tanh};
constexpr Activation kGeluByErf = {kSameType | kAnyRank, 0, {}, gelu_by_erf};
constexpr Activation kFastGelu = {kSameType | kSameFormat | kSinceA2, 0, {}, fast_gelu};
constexpr Activation kSilu = {kSameType | kAnyRank, 0, {}, silu};
constexpr Activation kSwish = {kSameType | kOptionalScalar | kScalarsCastToFloat, 0, {"betaOptional"}, swish};
constexpr Activation kMish = {kSameType, 0, {}, mish};
constexpr Activation kSoftplus = {kCastOut | kScalarsCastToSelf, 0, {"beta", "threshold"}, softplus};
constexpr Activation kElu = {
    kCastOut | kScalarsCastToFloat, kDouble | types({ACL_BF16}), {"alpha", "scale", "inputScale"}, elu};
constexpr Activation kCelu = {kCastOut | kScalarsCastToFloat, 0, {"alpha"}, celu, check_not_zero};
constexpr Activation kLeakyRelu = {kCastOut, kDouble, {"negativeSlope"}, leaky_relu};
constexpr Activation kRelu = {kSameType, kIntegers, {}, relu, nullptr, integer_relu};
constexpr Activation kThreshold = {
    kCastOutBefore950 | kScalarsRounded, kMoreIntegers, {"threshold", "value"}, threshold, nullptr, integer_threshold};
constexpr Activation kHardtanh = {
    kSameType | kScalarsRounded, kMoreIntegers | kDouble, {"clipValueMin", "clipValueMax"}, hardtanh, check_order,
    integer_hardtanh};
constexpr Activation kHardshrink = {kFloatOut, 0, {"lambd"}, hardshrink};
constexpr Activation kSoftshrink = {kFloatOut, 0, {"lambd"}, softshrink, check_not_negative};
constexpr Activation kHardsigmoid = {kSameType | kSameFormat, types({ACL_INT32}), {}, hardsigmoid};
constexpr Activation kHardswish = {kFloatOut | kAnyRank, 0, {}, hardswish};

bool is_private(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
      return true;
    default:
      return format >= ACL_FORMAT_FRACTAL_NZ_C0_16 && format <= ACL_FORMAT_FRACTAL_NZ_C0_8;
  }
}

void check_types(const Activation& row, const Tensor& x, const Tensor& out) {
  check(!(row.rules & kSinceA2) || soc().bfloat16, "%s does not support this operator", soc().soc);
  bool listed = x.type >= 0 && x.type < 64 && (row.more >> x.type & 1) != 0;
  if (!listed) check_supported_float(x);
  if (row.rules & kSameType) check_same_type(out, x);
  if (row.rules & kFloatOut) check_supported_float(out);
  if (row.rules & kCastOut || (row.rules & kCastOutBefore950 && !is_950())) check_can_cast("self", x.type, out);
}

void check_formats(const Activation& row, const Tensor& x, const Tensor& out) {
  if (row.rules & kPublicFormat) {
    for (const Tensor* t : {&x, &out})
      check(!is_private(t->format), "%s has the private format %d", t->name, t->format);
  }
  if (row.rules & kSameFormat) check(x.format == out.format, "self has format %d, out has %d", x.format, out.format);
}

void check_scalars(const Activation& row, const Tensor& x, const Scalars& scalars) {
  for (size_t i = 0; i < kMostScalars; i++) {
    if (scalars[i] == nullptr) continue;
    aclDataType to = row.rules & kScalarsCastToSelf    ? x.type
                     : row.rules & kScalarsCastToFloat ? ACL_FLOAT
                                                       : scalars[i]->type;
    check(can_cast(scalars[i]->type, to), "%s has dtype %s, which cannot be cast to %s", row.scalars[i],
          type_name(scalars[i]->type), type_name(to));
  }
  if (row.check_values != nullptr) row.check_values(scalars);
}

// Called for `aclnnX` (self, scalars, out) and, without an output, for `aclnnInplaceX` (selfRef, scalars).
void activation(Op& op, const Activation& row, const aclTensor* self, std::initializer_list<const aclScalar*> given,
                const aclTensor* output, bool in_place) {
  Tensor x = in_place ? op.output("selfRef", self) : op.input("self", self);
  Scalars scalars;
  std::array<double, kMostScalars> values{1, 1, 1};
  size_t count = 0;
  for (const aclScalar* each : given) {
    auto with = row.rules & kOptionalScalar ? &Op::optional_scalar : &Op::scalar;
    scalars[count] = (op.*with)(row.scalars[count], each);
    if (scalars[count] != nullptr) values[count] = static_cast<double>(value_of(scalars[count]));
    count++;
  }
  Tensor out = in_place ? x : op.output("out", output);
  op.require_present({x, out});
  check_types(row, x, out);
  if (!(row.rules & kAnyRank)) check_rank(x, 8);
  check_same_shape(out, x);
  check_formats(row, x, out);
  check_scalars(row, x, scalars);
  if (x.empty()) return;
  op.workspace({x, out});
  if (row.rules & kScalarsRounded && is_float(x.type)) {
    for (double& v : values) v = static_cast<double>(round_to(x.type, static_cast<float>(v)));
  }
  if (row.of_integers != nullptr && is_integer(x.type)) {
    std::array<int64_t, kMostScalars> whole;
    for (size_t i = 0; i < kMostScalars; i++) whole[i] = static_cast<int64_t>(values[i]);
    op.kernel([=, formula = row.of_integers](Run& run) {
      std::vector<int64_t> xs = read_integers(run.open(x));
      for (int64_t& v : xs) v = formula(v, whole.data());
      write(run.open(out), xs);
    });
    return;
  }
  op.kernel([=, formula = row.formula](Run& run) {
    std::vector<double> xs = read_doubles(run.open(x));
    for (double& v : xs) {
      v = formula(v, values.data());
      if (out.type != x.type && is_float(x.type)) v = static_cast<double>(round_to(x.type, static_cast<float>(v)));
    }
    write(run.open(out), xs);
  });
}

// The parameters between self and out, and their names.
#define EMU_PARAMETERS_0
#define EMU_PARAMETERS_1 , const aclScalar *a
#define EMU_PARAMETERS_2 , const aclScalar *a, const aclScalar *b
#define EMU_PARAMETERS_3 , const aclScalar *a, const aclScalar *b, const aclScalar *c
#define EMU_NAMES_0 \
  {                 \
  }
#define EMU_NAMES_1 {a}
#define EMU_NAMES_2 {a, b}
#define EMU_NAMES_3 {a, b, c}

}  // namespace

#define EMU_ACTIVATION(api, row, scalars)                                                \
  EMU_FIRST_PHASE(api, const aclTensor* self EMU_PARAMETERS_##scalars, aclTensor* out) { \
    activation(op, row, self, EMU_NAMES_##scalars, out, false);                          \
  }                                                                                      \
  EMU_END(api)
#define EMU_INPLACE_ACTIVATION(api, row, scalars)                       \
  EMU_FIRST_PHASE(api, aclTensor* self EMU_PARAMETERS_##scalars) {      \
    activation(op, row, self, EMU_NAMES_##scalars, nullptr, true);      \
  }                                                                     \
  EMU_END(api)

EMU_ACTIVATION(aclnnGelu, kGelu, 0)
EMU_ACTIVATION(aclnnFastGelu, kFastGelu, 0)
EMU_ACTIVATION(aclnnSilu, kSilu, 0)
EMU_ACTIVATION(aclnnSwish, kSwish, 1)
EMU_ACTIVATION(aclnnMish, kMish, 0)
EMU_INPLACE_ACTIVATION(aclnnInplaceMish, kMish, 0)
EMU_ACTIVATION(aclnnSoftplus, kSoftplus, 2)
EMU_ACTIVATION(aclnnElu, kElu, 3)
EMU_INPLACE_ACTIVATION(aclnnInplaceElu, kElu, 3)
EMU_ACTIVATION(aclnnCelu, kCelu, 1)
EMU_INPLACE_ACTIVATION(aclnnInplaceCelu, kCelu, 1)
EMU_ACTIVATION(aclnnLeakyRelu, kLeakyRelu, 1)
EMU_INPLACE_ACTIVATION(aclnnInplaceLeakyRelu, kLeakyRelu, 1)
EMU_ACTIVATION(aclnnRelu, kRelu, 0)
EMU_INPLACE_ACTIVATION(aclnnInplaceRelu, kRelu, 0)
EMU_ACTIVATION(aclnnThreshold, kThreshold, 2)
EMU_INPLACE_ACTIVATION(aclnnInplaceThreshold, kThreshold, 2)
EMU_ACTIVATION(aclnnHardtanh, kHardtanh, 2)
EMU_INPLACE_ACTIVATION(aclnnInplaceHardtanh, kHardtanh, 2)
EMU_ACTIVATION(aclnnHardshrink, kHardshrink, 1)
EMU_ACTIVATION(aclnnSoftshrink, kSoftshrink, 1)
EMU_ACTIVATION(aclnnHardsigmoid, kHardsigmoid, 0)
EMU_INPLACE_ACTIVATION(aclnnInplaceHardsigmoid, kHardsigmoid, 0)
EMU_ACTIVATION(aclnnHardswish, kHardswish, 0)
EMU_INPLACE_ACTIVATION(aclnnInplaceHardswish, kHardswish, 0)

// 1 is the formula with tanh, every other number the one with erf.
EMU_FIRST_PHASE(aclnnGeluV2, const aclTensor* x, int64_t approximate, aclTensor* y) {
  op.attribute("approximate", approximate);
  activation(op, approximate == 1 ? kGeluByTanh : kGeluByErf, x, {}, y, false);
}
EMU_END(aclnnGeluV2)

EMU_FIRST_PHASE(aclnnPrelu, const aclTensor* self, const aclTensor* weight, aclTensor* output) {
  Tensor x = op.input("self", self), w = op.input("weight", weight), out = op.output("out", output);
  op.require_present({x, w, out});
  check_supported_floats({x, w, out});
  check_can_cast("the common dtype of self and weight", promoted(x, w), out);
  check_ranks({x, w, out});
  check_same_shape(out, x);
  int64_t channels = x.rank() > 1 ? x.shape[1] : 1, weights = count_of(w.shape), inner = 1;
  check(weights == 1 || weights == channels, "weight has shape %s; self has %ld channels", show(w.shape).c_str(),
        static_cast<long>(channels));
  if (any_empty({x, w})) return;
  for (size_t axis = 2; axis < x.rank(); axis++) inner *= x.shape[axis];
  op.workspace({x, w, out});
  op.kernel([=](Run& run) {
    std::vector<double> xs = read_doubles(run.open(x)), ws = read_doubles(run.open(w));
    for (size_t i = 0; i < xs.size(); i++) {
      double slope = ws[weights == 1 ? 0 : i / static_cast<size_t>(inner) % ws.size()];
      xs[i] = static_cast<double>(round_to(promoted(x, w), static_cast<float>(xs[i] > 0 ? xs[i] : slope * xs[i])));
    }
    write(run.open(out), xs);
  });
}
EMU_END(aclnnPrelu)

EMU_FIRST_PHASE(aclnnGlu, const aclTensor* self, int64_t dim, const aclTensor* output) {
  Tensor x = op.input("self", self);
  op.attribute("dim", dim);
  Tensor out = op.output("out", output);
  op.require_present({x, out});
  for (const Tensor* t : {&x, &out}) check_supported_float_or_double(*t);
  check_can_cast("self", x.type, out);
  check_ranks({x, out});
  check_shape(out, half_along(x, dim));
  if (x.empty()) return;
  op.workspace({x, out}, static_cast<size_t>(x.count()) * sizeof(float));
  Rows rows(out.shape, dim);
  op.kernel([=, inner = static_cast<size_t>(rows.inner * rows.length)](Run& run) {
    std::vector<double> xs = read_doubles(run.open(x)), ys(xs.size() / 2);
    for (size_t i = 0; i < ys.size(); i++) {
      size_t first = i / inner * 2 * inner + i % inner;  // the other half's element is `inner` further on
      ys[i] = xs[first] / (1 + std::exp(-xs[first + inner]));
    }
    write(run.open(out), ys);
  });
}
EMU_END(aclnnGlu)
