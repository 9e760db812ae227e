# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 -m unittest bench/report_test.py"""
import pathlib
import tempfile
import unittest
import xml.dom.minidom

import report


def row(model, peer, ratio, **more):
    return {"model": model, "threads": 1, "peer": peer, "peer_ms": ratio and 3 * ratio, "tgc_ms": ratio and 3.0,
            "ratio": ratio, "agree": True if ratio else None} | more


ROWS = [row("a", "ort", 2.0), row("a", "iree", None, skipped="no such op"),
        row("b<c", "ort", 0.5), row("b<c", "iree", 8.0, agree=False)]


class Report(unittest.TestCase):
    def test_summary_is_over_what_was_measured(self):
        self.assertEqual(report.summary(ROWS), [
            "1 threads, ort: geometric mean of ratios 1.000 over 2 models, least 0.500 (b<c)",
            "1 threads, iree: geometric mean of ratios 8.000 over 1 models, least 8.000 (b<c)"])

    def test_table_has_a_line_per_model(self):
        self.assertEqual(report.table(ROWS).splitlines()[2:], [
            "| a | 1 | 3.00 | 6.00 | 2.00 | - | - |",
            "| b<c | 1 | 3.00 | 1.50 | 0.50 | 24.00 | 8.00 (differs) |"])

    def test_bars_start_at_one(self):
        svg = xml.dom.minidom.parseString(report.picture(ROWS, "x & y"))
        bars = [(float(r.getAttribute("x")), float(r.getAttribute("width")))
                for r in svg.getElementsByTagName("rect") if r.getAttribute("height") == str(report.BAR - 2)]
        step = report.WIDTH / 4  # from 1/2 to 8
        one = report.LEFT + step
        self.assertEqual(bars, [(one, step), (one - step, step), (one, 3 * step)])

    def test_models_are_files_and_those_of_folders(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            with self.assertRaisesRegex(SystemExit, "p: .* holds no .onnx files"):
                report.model_files("p", [folder])
            with self.assertRaisesRegex(SystemExit, "p: .*none.onnx does not exist"):
                report.model_files("p", [folder / "none.onnx"])
            for file in ("b.onnx", "a.onnx", "c.txt"):
                (folder / file).touch()
            self.assertEqual(report.model_files("p", [folder, folder / "c.txt"]),
                             [folder / "a.onnx", folder / "b.onnx", folder / "c.txt"])

    def test_nothing_measured_is_still_a_picture(self):
        xml.dom.minidom.parseString(report.picture([], ""))

    def test_document_replaces_what_was_written(self):
        page = f"# Head\n\n{report.MARKER}\n\nold\n"
        new = report.document(page, ROWS, "a machine", "b.svg")
        self.assertTrue(new.startswith(f"# Head\n\n{report.MARKER}\n\na machine\n\n| model"))
        self.assertIn("- a, 1 threads, iree: no such op", new)
        self.assertNotIn("old", new)
        self.assertEqual(report.document(new, ROWS, "a machine", "b.svg"), new)
        with self.assertRaises(ValueError):
            report.document("no marker", ROWS, "", None)


if __name__ == "__main__":
    unittest.main()
