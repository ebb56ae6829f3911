// Fixtures of `aclnn-oracle golden DIR`, for a machine that has a device and no Python: the cases of a folder, their
// tensors and attributes, a comparison with the golden, and files that `aclnn-oracle judge DIR RESULTS` judges.
//
// C++17, this header alone. Little-endian machines. Errors are std::runtime_error with the file's name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fixtures {

namespace fs = std::filesystem;

// ---- JSON, as far as manifest.json needs it -------------------------------------------------------------------------

struct Json {
  enum Kind { null, boolean, number, text, list, object } kind = null;
  bool flag = false;
  double value = 0;     // of a number; of an integer beyond 2^53 see `word`
  std::string word;     // of a text; of a number as it is written
  std::vector<Json> items;
  std::map<std::string, Json> members;

  const Json& operator[](const std::string& name) const {
    static const Json none;
    auto found = members.find(name);
    return found == members.end() ? none : found->second;
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : at_(text.c_str()) {}

  Json read() {
    Json made;
    switch (next()) {
      case '{':
        made.kind = Json::object;
        for (at_++; next() != '}'; skip(',')) {
          std::string name = read_text();
          skip(':');
          made.members[name] = read();
        }
        at_++;
        return made;
      case '[':
        made.kind = Json::list;
        for (at_++; next() != ']'; skip(',')) made.items.push_back(read());
        at_++;
        return made;
      case '"':
        made.kind = Json::text;
        made.word = read_text();
        return made;
      default:
        return read_word();
    }
  }

 private:
  char next() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') at_++;
    if (*at_ == 0) throw std::runtime_error("manifest.json ends in the middle");
    return *at_;
  }

  void skip(char mark) {
    if (next() == mark) at_++;
  }

  std::string read_text() {
    std::string found;
    if (next() != '"') throw std::runtime_error("manifest.json: a name is missing");
    for (at_++; *at_ && *at_ != '"'; at_++) {
      if (*at_ == '\\' && std::strlen(at_) > 6 && at_[1] == 'u') {  // names and ids are ASCII
        found += static_cast<char>(std::strtol(std::string(at_ + 2, 4).c_str(), nullptr, 16));
        at_ += 5;
      } else {
        if (*at_ == '\\' && at_[1]) at_++;
        found += *at_;
      }
    }
    if (!*at_) throw std::runtime_error("manifest.json ends in the middle of a text");
    at_++;
    return found;
  }

  Json read_word() {
    Json made;
    while (*at_ && !std::strchr(",]} \n\t\r", *at_)) made.word += *at_++;
    if (made.word == "true" || made.word == "false") {
      made.kind = Json::boolean;
      made.flag = made.word == "true";
    } else if (made.word != "null") {
      made.kind = Json::number;
      made.value = std::strtod(made.word.c_str(), nullptr);  // NaN, Infinity and -Infinity too
    }
    return made;
  }

  const char* at_;
};

// ---- arrays: .npy files, bfloat16 as its bits (uint16) ---------------------------------------------------------------

struct Array {
  std::string dtype;  // float16, bfloat16, float32, float64, int64, ...
  std::vector<int64_t> shape;
  std::vector<char> bytes;  // in C order

  size_t size() const {
    size_t count = 1;
    for (int64_t n : shape) count *= static_cast<size_t>(n);
    return count;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  double at(size_t i) const;  // an element of a floating type, widened
};

inline float from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction ? NAN : INFINITY;
  return static_cast<float>(bits >> 15 ? -size : size);
}

inline float from_bfloat16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline double Array::at(size_t i) const {
  if (dtype == "float32") return static_cast<double>(as<float>()[i]);
  if (dtype == "float64") return as<double>()[i];
  if (dtype == "float16") return static_cast<double>(from_half(as<uint16_t>()[i]));
  if (dtype == "bfloat16") return static_cast<double>(from_bfloat16(as<uint16_t>()[i]));
  throw std::runtime_error(dtype + " is no type of numbers that are compared");
}

// NumPy's word for a dtype; its last digit is the bytes of an element.
inline std::string word_of(const std::string& dtype, const fs::path& file) {
  static const std::map<std::string, std::string> words = {
      {"float16", "<f2"}, {"bfloat16", "<u2"}, {"float32", "<f4"}, {"float64", "<f8"},   {"bool", "|b1"},
      {"int8", "|i1"},    {"int16", "<i2"},    {"int32", "<i4"},   {"int64", "<i8"},     {"uint8", "|u1"},
      {"uint16", "<u2"},  {"uint32", "<u4"},   {"uint64", "<u8"},  {"complex64", "<c8"}};
  auto found = words.find(dtype);
  if (found == words.end()) throw std::runtime_error(file.string() + ": no arrays of dtype " + dtype);
  return found->second;
}

inline Array read_npy(const fs::path& file, const std::string& dtype) {
  std::ifstream in(file, std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(in)), {});
  if (all.size() < 12 || all.compare(0, 6, "\x93NUMPY") != 0)
    throw std::runtime_error(file.string() + " is missing, or no .npy file");
  bool is_long = all[6] > 1;
  uint32_t length = 0;
  std::memcpy(&length, all.data() + 8, is_long ? 4 : 2);
  size_t begin = is_long ? 12 : 10, end = std::min(all.size(), begin + length);
  std::string header = all.substr(begin, end - begin), word = word_of(dtype, file);
  size_t shape = header.find("'shape': (");
  if (shape == std::string::npos || header.find("'" + word + "'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error(file.string() + " holds no array of dtype " + dtype + " in C order");
  Array found{dtype, {}, {all.begin() + static_cast<std::ptrdiff_t>(end), all.end()}};
  std::stringstream dims(header.substr(shape + 10));
  for (int64_t n; dims >> n; dims.get()) found.shape.push_back(n);
  size_t wanted = found.size() * static_cast<size_t>(word.back() - '0');
  if (found.bytes.size() != wanted)
    throw std::runtime_error(file.string() + " has " + std::to_string(found.bytes.size()) + " bytes of data, its shape " +
                             std::to_string(wanted));
  return found;
}

inline void write_npy(const fs::path& file, const Array& array) {
  std::string dims;
  for (int64_t n : array.shape) dims += std::to_string(n) + ", ";
  std::string header = "{'descr': '" + word_of(array.dtype, file) + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  header.resize((header.size() + 10) / 64 * 64 + 53, ' ');  // the data begins at a multiple of 64
  header += '\n';
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  uint16_t length = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8).write(reinterpret_cast<const char*>(&length), 2) << header;
  out.write(array.bytes.data(), static_cast<std::streamsize>(array.bytes.size()));
  if (!out.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

// ---- cases ----------------------------------------------------------------------------------------------------------

struct Case {
  std::string id, op, expected;  // the status that GetWorkspaceSize must return
  fs::path folder;               // below the folder of fixtures
  bool has_golden = false;
  Json attributes;                     // by aclnn name
  std::map<std::string, Array> inputs;  // by aclnn name; absent ones are null pointers
  std::map<std::string, Array> golden, bound;
};

// Every case of a folder that holds values; `read` gets one after the other.
template <class Read>
void each(const fs::path& root, Read read) {
  std::ifstream in(root / "manifest.json");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.empty()) throw std::runtime_error((root / "manifest.json").string() + " is missing or empty");
  const Json manifest = JsonReader(text).read();
  for (const Json& entry : manifest["cases"].items) {
    Case made;
    made.id = entry["id"].word;
    made.op = entry["case"]["op"].word;
    made.expected = entry["expected"].word;
    made.folder = entry["folder"].word;
    made.has_golden = entry["kind"].word == "golden";
    made.attributes = entry["case"]["attrs"];
    for (const auto& [file, checksum] : entry["files"].members) {
      size_t mark = file.rfind("__"), dot = file.rfind(".npy");
      std::string name = file.substr(0, mark), kind = file.substr(mark + 2, dot - mark - 2);
      fs::path path = root / made.folder / file;
      if (name == "bound") {
        made.bound[kind] = read_npy(path, "float64");
      } else if (name.rfind("golden_", 0) == 0) {
        made.golden[name.substr(7)] = read_npy(path, kind);
      } else if (name != "allowed") {
        made.inputs[name] = read_npy(path, kind);
      }
    }
    read(made);
  }
}

// How many elements of an output are neither within the strict bound of the golden nor, where that is NaN or infinite,
// the same.
inline size_t wrong(const Case& of, const std::string& output, const Array& actual) {
  const Array &golden = of.golden.at(output), &bound = of.bound.at(output);
  if (actual.shape != golden.shape || actual.dtype != golden.dtype) return golden.size();
  size_t count = 0;
  for (size_t i = 0; i < golden.size(); i++) {
    double a = actual.at(i), g = golden.at(i), allowed = bound.as<double>()[i];
    bool same = a == g || (std::isnan(a) && std::isnan(g));
    if (!same && !std::isinf(allowed) && !(std::fabs(a - g) <= allowed)) count++;
  }
  return count;
}

}  // namespace fixtures
