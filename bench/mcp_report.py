"""The MCP part of the report: its table and its goals."""

from mcp import ENTRIES, PACKAGE
from part_report import format_time, verdict

TITLE = "MCP"
INTRO = [f"The table compares `memory_search` of `koine mcp` with `search_nodes` of npm's `{PACKAGE}`.",
         f"Both servers have the same {ENTRIES:,} entries, and the client makes one call at a time over standard input and output.",
         "server-memory reads its file at each call; koined searches its index. The resident memory of koined is not included, because",
         "all clients share koined. Each value is the median of all rounds."]

MOST = 0.1  # of the package's time
MOST_MB = 3

ROWS = (("search, p50", "call", "p50_ns"), ("search, p99", "call", "p99_ns"),
        ("time from the start of the server to its first response", "start", "p50_ns"))


def tables(found):
    rows = [[f"measurement with {ENTRIES:,} entries", "koine mcp", "server-memory", "ratio"]]
    for title, row, measure in ROWS:
        ratio = found.ratio((row, "koine"), (row, "server-memory"), measure)
        if ratio is not None:
            rows.append([title, *(format_time(found.median(row, column, measure))
                                  for column in ("koine", "server-memory")), f"{ratio:.3f}"])
    kib = [found.median("resident", column, "kib") for column in ("koine", "server-memory")]
    if None not in kib:
        rows.append(["resident memory of the server process", *(f"{k * 1024 / 1e6:.1f} MB" for k in kib),
                     f"{kib[0] / kib[1]:.3f}"])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    kib = found.median("resident", "koine", "kib")
    goals = [verdict(f"koine mcp takes at most {MOST} times as long as {PACKAGE} {title}",
                     found.ratio((row, "koine"), (row, "server-memory"), "p50_ns"),
                     lambda value: value <= MOST)
             for title, row in (("for a search over stdio", "call"),
                                ("from its start to its first response", "start"))]
    return [*goals, verdict(f"koine mcp uses at most {MOST_MB} MB of resident memory",
                            kib and kib * 1024 / 1e6, lambda value: value <= MOST_MB, "{:.2f} MB")]
