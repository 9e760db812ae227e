// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes DIR/{onnx,json,text,bundle,tuning}/…: what the fuzzers start from. Models are made here or are the tests' own
// graphs, golden texts and documented examples.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/onnx_writer.h"
#include "fuzz/packed_bundle.h"
#include "tgc/pipeline.h"
#include "uop/text.h"

namespace {

using namespace tgc;
namespace fs = std::filesystem;
using Ints = std::vector<int64_t>;

std::string content(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string one_node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<Wire>& attributes,
                     const std::vector<Wire>& initializers = {}, const std::vector<DimSpec>& x = {2, 3, 8, 8}) {
  ModelSpec s;
  s.nodes = {node({op, inputs, {"y"}, attributes})};
  s.initializers = initializers;
  s.inputs = {value_info("x", 1, x)};
  s.outputs = {Wire().text(1, "y")};
  s.opset = 17;
  return model(s);
}

void onnx_seeds(const fs::path& to) {
  const std::vector<float> w(54, 0.5f);
  write(to / "conv", one_node("Conv", {"x", "w"}, {attr("pads", Ints{1, 1, 1, 1}), attr("strides", Ints{2, 2})},
                              {tensor_floats("w", {2, 3, 3, 3}, w)}));
  write(to / "pool", one_node("MaxPool", {"x"}, {attr("kernel_shape", Ints{3, 3}), attr("ceil_mode", int64_t{1})}));
  write(to / "gather",
        one_node("Gather", {"x", "i"}, {attr("axis", int64_t{1})}, {tensor_ints("i", {2}, {2, 0})}, {"N", 3, 4, 4}));
  write(to / "slice",
        one_node("Slice", {"x", "b", "e", "b"}, {}, {tensor_ints("b", {1}, {1}), tensor_ints("e", {1}, {7})}));
  write(to / "pad", one_node("Pad", {"x", "p"}, {}, {tensor_ints("p", {8}, {0, 1, 0, 0, 0, 0, 2, 0})}));
  write(to / "reshape", one_node("Reshape", {"x", "s"}, {}, {tensor_ints("s", {2}, {0, -1})}, {"N", 3, 3, 3}));
  write(to / "resize", one_node("Resize", {"x", "", "s"}, {attr("mode", std::string("linear"))},
                                {tensor_floats("s", {4}, {1, 1, 2, 1.5f})}, {1, 1, 4, 4}));
  write(to / "reduce", one_node("ReduceMean", {"x"}, {attr("axes", Ints{1, 2}), attr("keepdims", int64_t{0})}));
  write(to / "transpose", one_node("Transpose", {"x"}, {attr("perm", Ints{3, 0, 1, 2})}));
  write(to / "softmax", one_node("Softmax", {"x"}, {attr("axis", int64_t{-1})}));
  write(to / "concat", one_node("Concat", {"x", "x"}, {attr("axis", int64_t{1})}));
  write(to / "expand", one_node("Expand", {"x", "s"}, {}, {tensor_ints("s", {4}, {2, 3, 1, 8})}));
  write(to / "tile", one_node("Tile", {"x", "s"}, {}, {tensor_ints("s", {4}, {2, 3, 1, 8})}));
  write(to / "external", one_node("MatMul", {"x", "w"}, {}, {tensor_external("w", {8, 2}, "w.bin", "0", "64")}));
}

void json_seeds(const fs::path& to) {
  const std::string page = content(fs::path(TGC_SOURCE_DIR) / "docs/json-graph.md"), open = "```json\n{";
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const size_t start = at + open.size() - 1;
    write(to / std::to_string(at), page.substr(start, page.find("```", start) - start));
  }
  for (const auto& file : fs::directory_iterator(fs::path(TGC_SOURCE_DIR) / "test/golden_graphs"))
    write(to / file.path().filename(), content(file.path()));
}

void text_seeds(const fs::path& to) {
  for (const char* folder : {"test/golden", "test/tools/differential"})
    for (const auto& file : fs::directory_iterator(fs::path(TGC_SOURCE_DIR) / folder))
      write(to / file.path().filename(), content(file.path()));
  for (const auto& file : fs::directory_iterator(fs::path(TGC_SOURCE_DIR) / "test/golden_graphs"))
    write(to / file.path().stem(), print(import_model(file.path())));
}

void bundle_seeds(const fs::path& to) {
  std::vector<fs::path> graphs;
  for (const char* folder : {"test/golden_graphs", "test/tools/differential"})
    for (const auto& file : fs::directory_iterator(fs::path(TGC_SOURCE_DIR) / folder)) graphs.push_back(file.path());
  CompileOptions options;
  options.target = "cpu:llvm:x86-64";
  for (const fs::path& graph : graphs) {
    compile_file(graph, to.string() + ".whole", options);
    const std::string whole = content(to.string() + ".whole");
    const std::vector<unsigned char> packed =
        pack_bundle({reinterpret_cast<const unsigned char*>(whole.data()), whole.size()});
    write(to / graph.stem(), {packed.begin(), packed.end()});
  }
  fs::remove(to.string() + ".whole");
}

void tuning_seeds(const fs::path& to) {
  const std::string start = "tuned1 0123456789abcdef cpu:llvm:znver3:00c0ffee ns 100 was 120 opts";
  write(to / "list", "# a comment\n\n" + start + " split 1 16; lane 2; pack 2 1 4\n");
  write(to / "nests", start + " winograd 16 1 | lane 2 |  | thread 0\n" + start + " defer; nest 1 8 1 | lane 0 | \n");
  write(to / "none", "\xEF\xBB\xBF" + start + "\r\n");
}

} // namespace

int main(int, char** argv) {
  const fs::path folder = argv[1];
  fs::create_directories(folder);
  onnx_seeds(folder / "onnx");
  json_seeds(folder / "json");
  text_seeds(folder / "text");
  bundle_seeds(folder / "bundle");
  tuning_seeds(folder / "tuning");
}
