// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rewrite drivers: one explicit stack, one memo from node to result.
//
// A frame is a node in one of three states: Enter (not looked at), Build (its sources are done) and Link (its
// replacement is done, whose result is also its own). A node met again while it is on the stack means that rules undo
// each other or grow a node around itself; a chain of ever new nodes is stopped by the fuel of the original node it
// began with. Results are fixpoints and map to themselves, so nothing is matched twice.
// Not handled: rules that look at users of a node; the graph has no such edges.
// The traversal is after tinygrad's unified_rewrite (tinygrad/uop/ops.py).
#include "rewrite/rewrite.h"

#include <algorithm>
#include <vector>

#include "rewrite/node_map.h"
#include "rewrite/node_text.h"

namespace tgc {

class Rewriter {
public:
  Rewriter(const PatternMatcher& matcher, PassContext& context, const RewriteOptions& options)
      : matcher_(matcher), context_(context), options_(options), session_(matcher.session(context)) {
    if (context.count_rules) session_.counts = context.counts_of(matcher).data();
  }

  Ref run(Ref root) {
    first_new_ = root->ctx->size();
    stack_.push_back({root, {}, kNoOrigin, Phase::Enter});
    while (!stack_.empty()) {
      const Frame frame = stack_.back();
      stack_.pop_back();
      switch (frame.phase) {
      case Phase::Enter: enter(frame); break;
      case Phase::Build: build(frame); break;
      case Phase::Link: finish(frame.node, memo_[frame.target].result); break;
      }
    }
    return memo_[root].result;
  }

private:
  enum class Phase : uint8_t { Enter, Build, Link };
  static constexpr uint32_t kNoOrigin = ~uint32_t{0};
  struct Frame {
    Ref node, target;
    uint32_t origin; ///< index in spent_: the original node that this one came from
    Phase phase;
  };
  struct Memo {
    Ref result;
    bool active = false; ///< on the stack
  };
  struct Event {
    int rule;
    Ref before, after;
  };

  void enter(Frame frame) {
    Memo& memo = memo_[frame.node];
    if (memo.result) return;
    if (memo.active) overflow(frame.node);
    memo.active = true;
    if (frame.node->id < first_new_ || frame.origin == kNoOrigin) {
      frame.origin = static_cast<uint32_t>(spent_.size());
      spent_.push_back(0);
    }
    if (options_.order == Order::ParentFirst) {
      const Ref out = apply(frame);
      const bool stop = context_.take_stop();
      if (stop) return finish(frame.node, out ? out : frame.node);
      if (out) return follow(frame, out);
    }
    stack_.push_back({frame.node, {}, frame.origin, Phase::Build});
    for (size_t i = frame.node->src.size(); i-- > 0;) {
      if (skips(frame.node, i)) continue;
      const Memo* source = memo_.find(frame.node->src[i]);
      if (!source || !source->result) stack_.push_back({frame.node->src[i], {}, frame.origin, Phase::Enter});
    }
  }

  void build(const Frame& frame) {
    const Ref rebuilt = with_results(frame.node);
    inherit_origin(frame.node, rebuilt);
    if (options_.order == Order::OncePerNode) {
      const Ref out = apply({rebuilt, {}, frame.origin, Phase::Build});
      memo_[frame.node].result = out ? out : rebuilt;
      return;
    }
    if (!(rebuilt == frame.node)) return follow(frame, rebuilt);
    const Ref out = options_.order == Order::ChildrenFirst ? apply(frame) : Ref();
    if (out) return follow(frame, out);
    finish(frame.node, frame.node);
  }

  Ref with_results(Ref node) {
    sources_.clear();
    for (size_t i = 0; i < node->src.size(); ++i)
      sources_.push_back(skips(node, i) ? node->src[i] : memo_[node->src[i]].result);
    return std::equal(sources_.begin(), sources_.end(), node->src.begin()) ? node : node->ctx->with_src(node, sources_);
  }

  bool skips(Ref node, size_t source) const { return source == 0 && node->is(Ops::Call) && !options_.enter_funcs; }

  void follow(const Frame& frame, Ref target) {
    stack_.push_back({frame.node, target, frame.origin, Phase::Link});
    stack_.push_back({target, {}, frame.origin, Phase::Enter});
  }

  void finish(Ref node, Ref result) {
    memo_[node].result = result;
    Memo& own = memo_[result];
    if (!own.result) own.result = result;
  }

  Ref apply(const Frame& frame) {
    const Ref out = matcher_.apply(frame.node, session_);
    if (!out) return out;
    inherit_origin(frame.node, out);
    events_[num_events_++ % kEvents] = {session_.fired, frame.node, out};
    if (context_.on_rewrite)
      context_.on_rewrite({options_.name, matcher_.rules()[session_.fired].full_name(), frame.node, out});
    if (++spent_[frame.origin] > options_.fuel) overflow(frame.node);
    return out;
  }

  /// What is made of a model's node is of that node.
  void inherit_origin(Ref from, Ref to) {
    if (!context_.origin) return;
    const auto at = context_.origin->find(from->id);
    if (at == context_.origin->end()) return;
    std::vector<Ref> made = {to};
    while (!made.empty()) {
      const Ref node = made.back();
      made.pop_back();
      if (node->id >= first_new_ && context_.origin->emplace(node->id, at->second).second)
        made.insert(made.end(), node->src.begin(), node->src.end());
    }
  }

  [[noreturn]] void overflow(Ref node) const {
    const size_t shown = std::min(num_events_, kEvents);
    std::string rules, steps;
    for (size_t i = num_events_ - shown; i < num_events_; ++i) {
      const Event& e = events_[i % kEvents];
      const std::string rule = matcher_.rules()[static_cast<size_t>(e.rule)].full_name();
      if (rules.find(rule) == std::string::npos) rules += (rules.empty() ? "" : ", ") + rule;
      steps += "\n  " + rule + ": " + node_text(e.before) + " -> " + node_text(e.after);
    }
    throw CompileError(Diagnostic{ErrorCode::E104, "",
                                  std::string("pass \"") + options_.name + "\" does not terminate at " +
                                      node_text(node) + "; the last rules are " + rules + steps,
                                  "disable one of these rules with --disable-rule=TABLE/RULE"});
  }

  static constexpr size_t kEvents = 6;
  const PatternMatcher& matcher_;
  PassContext& context_;
  const RewriteOptions& options_;
  PatternMatcher::Session session_;
  NodeMap<Memo> memo_;
  std::vector<Frame> stack_;
  std::vector<int> spent_; ///< replacements by origin
  std::vector<Ref> sources_;
  Event events_[kEvents];
  size_t num_events_ = 0;
  size_t first_new_ = 0;
};

Ref graph_rewrite(Ref root, const PatternMatcher& matcher, PassContext& context, const RewriteOptions& options) {
  return Rewriter(matcher, context, options).run(root);
}

Ref substitute(Ref root, std::span<const std::pair<Ref, Ref>> replacements) {
  NodeMap<Ref> result;
  for (const auto& [from, to] : replacements) result[from] = to;
  std::vector<Ref> stack = {root}, sources;
  while (!stack.empty()) {
    const Ref node = stack.back();
    if (const Ref* done = result.find(node); done && *done) {
      stack.pop_back();
      continue;
    }
    sources.clear();
    const size_t waiting = stack.size();
    for (size_t i = 0; i < node->src.size(); ++i) {
      const Ref* done = result.find(node->src[i]);
      if (done && *done)
        sources.push_back(*done);
      else if (i == 0 && node->is(Ops::Call))
        sources.push_back(node->src[i]);
      else
        stack.push_back(node->src[i]);
    }
    if (stack.size() > waiting) continue;
    stack.pop_back();
    result[node] =
        std::equal(sources.begin(), sources.end(), node->src.begin()) ? node : node->ctx->with_src(node, sources);
  }
  return *result.find(root);
}

} // namespace tgc
