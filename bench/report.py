# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compare.py's rows say, as text, as a Markdown table and as a picture. Standard library only."""
import math
import sys
from xml.sax.saxutils import escape

MARKER = "<!-- Everything below is written by bench/compare.py. -->"
COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#9c755f", "#e15759"]  # readable on white and on black
INK = "#808080"
BAR, GAP, TOP, LEFT, WIDTH, RIGHT = 11, 10, 46, 190, 420, 60  # pixels


def model_files(program, paths):
    """The models meant by `paths`: files, and the ONNX files of folders. Ends the program where there is none."""
    found = []
    for path in paths:
        files = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
        if not files or not files[0].exists():
            sys.exit(f"{program}: {path} {'holds no .onnx files' if path.is_dir() else 'does not exist'}")
        found += files
    return found


def measured(rows):
    return [row for row in rows if row.get("ratio")]


def groups(rows):
    """{(threads, peer): its measured rows}, in the order of rows."""
    found = {}
    for row in measured(rows):
        found.setdefault((row["threads"], row["peer"]), []).append(row)
    return found


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows):
    """One line per number of threads and peer."""
    lines = []
    for (threads, peer), group in groups(rows).items():
        least = min(group, key=lambda row: row["ratio"])
        lines.append(f"{threads} threads, {peer}: geometric mean of ratios "
                     f"{geometric_mean([row['ratio'] for row in group]):.3f} over {len(group)} models, "
                     f"least {least['ratio']:.3f} ({least['model']})")
    return lines


def table(rows):
    """Markdown: a line per model and number of threads; per peer the best milliseconds and the ratio."""
    peers = list(dict.fromkeys(row["peer"] for row in rows))
    lines = ["| model | threads | tgc ms | " + " | ".join(f"{peer} ms | ratio" for peer in peers) + " |",
             "|---|--:|--:|" + "--:|--:|" * len(peers)]
    cells = {}
    for row in rows:
        cells.setdefault((row["model"], row["threads"]), {})[row["peer"]] = row
    for (model, threads), found in cells.items():
        ours = [row["tgc_ms"] for row in found.values() if row.get("tgc_ms")]
        line = [model, str(threads), f"{min(ours):.2f}" if ours else "-"]
        for peer in peers:
            row = found.get(peer, {})
            if row.get("ratio"):
                line += [f"{row['peer_ms']:.2f}", f"{row['ratio']:.2f}" + ("" if row["agree"] else " (differs)")]
            else:
                line += ["-", "-"]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def picture(rows, caption):
    """SVG: per model and number of threads a bar of each peer's ratio, on a logarithmic scale with a line at 1."""
    shown = measured(rows)
    peers = list(dict.fromkeys(row["peer"] for row in shown))
    bars = {}
    for row in shown:
        bars.setdefault((row["model"], row["threads"]), []).append(row)
    low = math.floor(math.log2(min([0.5] + [row["ratio"] for row in shown])))
    high = math.ceil(math.log2(max([2] + [row["ratio"] for row in shown])))

    def x(ratio):
        return LEFT + WIDTH * (math.log2(ratio) - low) / (high - low)

    height = TOP + sum(BAR * len(group) + GAP for group in bars.values()) + 22
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
           f'font-family="sans-serif" font-size="10" fill="{INK}">', f"<title>{escape(caption)}</title>",
           '<text x="4" y="14" font-size="12">time of peer / time of tgc: right of 1, tgc is faster</text>']
    for i, peer in enumerate(peers):
        out.append(f'<rect x="{LEFT + 90 * i}" y="22" width="10" height="10" fill="{COLORS[i % len(COLORS)]}"/>'
                   f'<text x="{LEFT + 90 * i + 14}" y="31">{escape(peer)}</text>')
    for power in range(low, high + 1):
        at, strong = x(2.0**power), power == 0
        out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 6}" y2="{height - 18}" stroke="{INK}" '
                   f'stroke-width="{1.5 if strong else 0.5}" stroke-opacity="{1 if strong else 0.4}"/>'
                   f'<text x="{at:.1f}" y="{height - 6}" text-anchor="middle">{2.0**power:g}</text>')
    y = TOP
    for (model, threads), group in bars.items():
        middle = y + BAR * len(group) / 2 + 3.5
        out.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(model)}, {threads} thr</text>')
        for row in group:
            start, end = sorted((x(1), x(row["ratio"])))
            out.append(f'<rect x="{start:.1f}" y="{y}" width="{max(end - start, 0.5):.1f}" height="{BAR - 2}" '
                       f'fill="{COLORS[peers.index(row["peer"]) % len(COLORS)]}"/>'
                       f'<text x="{max(x(1), end) + 3:.1f}" y="{y + BAR - 3}">{row["ratio"]:.2f}</text>')
            y += BAR
        y += GAP
    return "\n".join(out + ["</svg>", ""])


def document(text, rows, caption, image):
    """`text`, a Markdown page, with everything after MARKER replaced by table, skipped peers and picture."""
    head, marker, _ = text.partition(MARKER)
    if not marker:
        raise ValueError(f"there is no line {MARKER}")
    skipped = [f"- {row['model']}, {row['threads']} threads, {row['peer']}: {row['skipped']}"
               for row in rows if row.get("skipped")]
    parts = [head + MARKER, caption, table(rows), "\n".join(f"- {line}" for line in summary(rows))]
    if skipped:
        parts.append("Skipped:\n\n" + "\n".join(skipped))
    if image:
        parts.append(f"![ratios]({image})")
    return "\n\n".join(parts) + "\n"
