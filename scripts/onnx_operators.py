#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes test/frontend/onnx_operators.txt, the operator versions of ai.onnx (needs: pip install onnx).

One operator per line, with the versions that changed it: `since:least..most` inputs (most * is any number), or
`since:deprecated`.
"""
import collections
import pathlib

import onnx
from onnx import defs

ANY = 1 << 20  # more inputs than any operator has: onnx says INT_MAX


def version_text(schema):
    if schema.deprecated:
        return f"{schema.since_version}:deprecated"
    most = "*" if schema.max_input > ANY else schema.max_input
    return f"{schema.since_version}:{schema.min_input}..{most}"


versions = collections.defaultdict(dict)
for schema in defs.get_all_schemas_with_history():
    if schema.domain == "":
        versions[schema.name][schema.since_version] = version_text(schema)

lines = [f"# Operators of ai.onnx in onnx {onnx.__version__}, by scripts/onnx_operators.py"]
for name in sorted(versions):
    lines.append(" ".join([name] + [versions[name][since] for since in sorted(versions[name])]))
target = pathlib.Path(__file__).resolve().parent.parent / "test/frontend/onnx_operators.txt"
target.write_text("\n".join(lines) + "\n")
