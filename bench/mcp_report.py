"""The MCP part of the report: its table and its goals."""

from mcp import ENTRIES, PACKAGE
from part_report import format_time, verdict

TITLE = "MCP"
INTRO = [f"`memory_search` through `koine mcp` beside `search_nodes` of npm's `{PACKAGE}`, over",
         f"standard input and output, with the same {ENTRIES:,} entries; one call at a time. The",
         "package reads its file anew at each call and matches text; koined answers from its index.",
         "koined's own memory, which all clients share, is not in the figure. Medians of the rounds."]

MOST = 0.1  # of the package's time
MOST_MB = 3

ROWS = (("a search, p50", "call", "p50_ns"), ("a search, p99", "call", "p99_ns"),
        ("from a start to the first answer", "start", "p50_ns"))


def tables(found):
    rows = [[f"over stdio, {ENTRIES:,} entries", "koine mcp", "server-memory", "ratio"]]
    for title, row, measure in ROWS:
        ratio = found.ratio((row, "koine"), (row, "server-memory"), measure)
        if ratio is not None:
            rows.append([title, *(format_time(found.median(row, column, measure))
                                  for column in ("koine", "server-memory")), f"{ratio:.3f}"])
    kib = [found.median("resident", column, "kib") for column in ("koine", "server-memory")]
    if None not in kib:
        rows.append(["resident in its process", *(f"{k * 1024 / 1e6:.1f} MB" for k in kib),
                     f"{kib[0] / kib[1]:.3f}"])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    kib = found.median("resident", "koine", "kib")
    goals = [verdict(f"MCP: {title}, over {PACKAGE}'s: at most {MOST}",
                     found.ratio((row, "koine"), (row, "server-memory"), "p50_ns"),
                     lambda value: value <= MOST)
             for title, row in (("a search over stdio", "call"),
                                ("from a start to the first answer", "start"))]
    return [*goals, verdict(f"MCP: resident memory of koine mcp: at most {MOST_MB} MB",
                            kib and kib * 1024 / 1e6, lambda value: value <= MOST_MB, "{:.2f} MB")]
