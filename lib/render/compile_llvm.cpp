// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LLVM IR text → machine code, in this process. Each kernel is a module of its own: parsed, verified (Debian's LLVM has
// assertions off, so bad IR would be undefined behaviour), optimised by a short pass list, and emitted to memory on one
// of `jobs` threads, each with its own LLVMContext and TargetMachine. Our kernels are vectorised before they get here,
// so LLVM's own vectorisers and O3 bring nothing but time. lld then links the objects, under one lock because it is not
// thread-safe. LLVM reports some errors by abort(): CrashRecoveryContext turns that into a diagnostic for the kernel.
// An object depends on its kernel's text and on what CacheKeys adds alone, so it may come from a cache instead.
// No library call may slip in: "no-builtins" on every function, an empty TargetLibraryInfo, and --no-undefined.
// This is the only file that includes LLVM or lld. Not handled: targets whose back end is not linked in below.
#include "render/compile_llvm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <lld/Common/Driver.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "render/elf_image.h"
#include "render/object_cache.h"
#include "render/temporary.h"
#include "uop/diag.h"

LLD_HAS_DRIVER(elf)

namespace tgc {
namespace {

using llvm::CodeGenFileType;
using Bytes = llvm::SmallVector<char, 0>;

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
}

/// Signal handlers that turn a crash in LLVM into a diagnostic, while at least one compile runs.
class CrashGuard {
public:
  CrashGuard() {
    std::lock_guard lock(mutex());
    if (count()++ == 0) llvm::CrashRecoveryContext::Enable();
  }
  ~CrashGuard() {
    std::lock_guard lock(mutex());
    if (--count() == 0) llvm::CrashRecoveryContext::Disable();
  }

private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static int& count() {
    static int n = 0;
    return n;
  }
};

std::unique_ptr<llvm::TargetMachine> make_target_machine(const LlvmMachine& machine) {
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(machine.triple, error);
  TGC_CHECK(target, "no LLVM back end for " + machine.triple + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(machine.triple, machine.cpu, machine.features,
                                                                          options, llvm::Reloc::PIC_, std::nullopt,
                                                                          llvm::CodeGenOptLevel::Default));
}

void optimize(llvm::Module& module, llvm::TargetMachine& tm, const llvm::TargetLibraryInfoImpl& library) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(&tm);
  fam.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);

  llvm::LoopPassManager loops;
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  loops.addPass(llvm::IndVarSimplifyPass());
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, fam);
}

/// The object file or assembly of one kernel; fills `error` when there is none.
Bytes compile_module(const KernelSource& kernel, llvm::TargetMachine& tm, CodeGenFileType type, std::string& error) {
  Bytes out;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* to) {
        if (info->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream stream(*static_cast<std::string*>(to));
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &error);
  llvm::SMDiagnostic syntax;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(kernel.text, syntax, context);
  if (!module) {
    error = "line " + std::to_string(syntax.getLineNo()) + ": " + syntax.getMessage().str() + ": " +
            syntax.getLineContents().str();
    return out;
  }
  llvm::raw_string_ostream verdict(error);
  if (llvm::verifyModule(*module, &verdict)) return out;
  module->setTargetTriple(tm.getTargetTriple().str());
  module->setDataLayout(tm.createDataLayout());
  llvm::TargetLibraryInfoImpl library(tm.getTargetTriple());
  library.disableAllFunctions();
  optimize(*module, tm, library);
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager codegen;
  codegen.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (tm.addPassesToEmitFile(codegen, stream, nullptr, type, /*DisableVerify=*/true))
    error = "the back end cannot emit this kind of file";
  else
    codegen.run(*module);
  return out;
}

struct Outcome {
  Bytes bytes;
  std::string error;
};

Outcome compile_safely(const KernelSource& kernel, llvm::TargetMachine& tm, CodeGenFileType type) {
  Outcome outcome;
  llvm::CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] { outcome.bytes = compile_module(kernel, tm, type, outcome.error); }) &&
      outcome.error.empty())
    outcome.error = "LLVM aborted";
  return outcome;
}

Diagnostic failure(const KernelSource& kernel, const LlvmMachine& machine, const std::string& why) {
  return {ErrorCode::E403, "kernel \"" + kernel.name + "\"",
          "LLVM cannot compile it for " + machine.triple + ": " + why,
          "report this with the kernel's text (--emit=source), or try --target=cpu:c"};
}

/// Names what an object is made of: this compiler, LLVM in it, the target and the kernel's text.
class CacheKeys {
public:
  explicit CacheKeys(const LlvmMachine& machine) {
    const std::string build = build_identity();
    incomplete_ = build.empty();
    for (const std::string& part : {build, machine.triple, machine.cpu, machine.features})
      common_ += std::to_string(part.size()) + ":" + part;
  }
  bool incomplete() const { return incomplete_; }
  std::string of(const KernelSource& kernel) const {
    llvm::BLAKE3 hasher;
    hasher.update(common_);
    hasher.update(kernel.text);
    return llvm::toHex(hasher.final(), /*LowerCase=*/true);
  }

private:
  std::string common_;
  bool incomplete_;
};

std::vector<Outcome> compile_all(std::span<const KernelSource> kernels, const LlvmMachine& machine, int jobs,
                                 ObjectCache* cache) {
  std::vector<Outcome> outcomes(kernels.size());
  std::vector<std::string> keys(kernels.size());
  std::vector<size_t> missing;
  const CacheKeys key(machine);
  if (key.incomplete()) cache = nullptr;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::optional<std::vector<char>> found;
    if (cache) found = cache->find(keys[i] = key.of(kernels[i]));
    if (found)
      outcomes[i].bytes.assign(found->begin(), found->end());
    else
      missing.push_back(i);
  }
  std::atomic<size_t> next = 0;
  auto work = [&] {
    const std::unique_ptr<llvm::TargetMachine> tm = make_target_machine(machine);
    for (size_t at = next++; at < missing.size(); at = next++) {
      const size_t i = missing[at];
      outcomes[i] = compile_safely(kernels[i], *tm, CodeGenFileType::ObjectFile);
      if (cache && outcomes[i].error.empty()) cache->keep(keys[i], outcomes[i].bytes);
    }
  };
  if (missing.empty()) return outcomes;
  const size_t helpers = std::min<size_t>(jobs > 1 ? jobs - 1 : 0, missing.size() - 1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < helpers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// A file in memory that lld can open by name.
class MemoryFile {
public:
  explicit MemoryFile(llvm::StringRef bytes) : fd_(memfd_create("kernels", MFD_CLOEXEC)) {
    TGC_CHECK(fd_ >= 0, "memfd_create failed");
    while (!bytes.empty()) {
      const ssize_t n = write(fd_, bytes.data(), bytes.size());
      TGC_CHECK(n > 0, "write to a memory file failed");
      bytes = bytes.drop_front(size_t(n));
    }
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
  int fd_;
};

std::vector<std::byte> read_file(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  TGC_CHECK(bool(buffer), "the linked image cannot be read");
  const auto* begin = reinterpret_cast<const std::byte*>((*buffer)->getBufferStart());
  return {begin, begin + (*buffer)->getBufferSize()};
}

/// All objects → one image, in their order.
std::vector<std::byte> link(std::span<const KernelSource> kernels, std::span<const Outcome> objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (size_t i = 0; i < objects.size(); ++i)
    members.emplace_back(llvm::MemoryBufferRef({objects[i].bytes.data(), objects[i].bytes.size()}, kernels[i].name));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  TGC_CHECK(bool(archive), "no archive could be made of the objects");
  static std::mutex lld_is_not_thread_safe;
  std::lock_guard lock(lld_is_not_thread_safe);
  const MemoryFile input((*archive)->getBuffer());
  TemporaryFolder folder; // lld renames a file of its own over its output, so no memory file will do
  const std::string in = input.path(), out = folder.file("kernels.so");
  const char* args[] = {"ld.lld",      "-shared",     "--no-undefined",    "-z",
                        "noexecstack", "-z",          "norelro",           "-z",
                        "rodynamic",   "-Bsymbolic",  "--hash-style=both", "--build-id=none",
                        "--strip-all", "--threads=1", "--whole-archive",   in.c_str(),
                        "-o",          out.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0 && messages.empty()) // as when there is no space
    throw CompileError({ErrorCode::E502, out, "lld cannot write it", "set TMPDIR to a folder with space"});
  if (result.retCode != 0)
    throw CompileError({ErrorCode::E403, "", "lld cannot link the kernels: " + messages, "report this as a bug"});
  return read_file(out);
}

} // namespace

CompiledCode compile_llvm(std::span<const KernelSource> kernels, const LlvmMachine& machine, int jobs,
                          ObjectCache* cache) {
  initialize_llvm();
  const CrashGuard guard;
  const std::vector<Outcome> objects = compile_all(kernels, machine, jobs, cache);
  Diagnostics problems;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!objects[i].error.empty()) problems.error(failure(kernels[i], machine, objects[i].error));
  problems.checkpoint();

  CompiledCode code;
  code.image = link(kernels, objects);
  const std::string fault = check_image(code.image);
  TGC_CHECK(fault.empty(), "the linked image " + fault);
  std::vector<std::string> names;
  for (const KernelSource& kernel : kernels) names.push_back(kernel.name);
  code.entries = find_symbols(code.image, names);
  for (size_t i = 0; i < names.size(); ++i)
    if (code.entries[i] == UINT64_MAX)
      problems.error(failure(kernels[i], machine, "its text defines no such function"));
  problems.checkpoint();
  return code;
}

std::string assemble_llvm(const KernelSource& kernel, const LlvmMachine& machine) {
  initialize_llvm();
  const CrashGuard guard;
  const std::unique_ptr<llvm::TargetMachine> tm = make_target_machine(machine);
  const Outcome outcome = compile_safely(kernel, *tm, CodeGenFileType::AssemblyFile);
  if (!outcome.error.empty()) throw CompileError(failure(kernel, machine, outcome.error));
  return {outcome.bytes.data(), outcome.bytes.size()};
}

} // namespace tgc
