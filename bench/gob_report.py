"""The gob part of the report: its tables and its goals."""

from gob import CODEC, GO_SHAPES, METHODS, SHAPES
from part_report import format_time, load, verdict

TITLE = "Go's net/rpc"
INTRO = ["All cores are available. The Go server returns constant replies. koined stores every chat, with two commits for each turn. Each",
         "value is the median of all rounds."]


def call_table(found):
    rows = [["net/rpc call", "koined/s", "go/s", "ratio", "koined p50", "go p50", "ratio", "koined CPU",
             "go CPU"]]
    for method in METHODS:
        for shapes, by, title in ((SHAPES, "", ""), (GO_SHAPES, " by go", ", with Go's own client")):
            for n, m in shapes:
                row = f"{method} {n}×{m}{by}"
                ours, theirs = (row, "koined"), (row, "go")
                if found.ratio(ours, theirs, "rate") is None:
                    continue
                rows.append([f"{method}, {load(n, m)}{title}",
                             *(f"{found.median(*at, 'rate'):,.0f}" for at in (ours, theirs)),
                             f"{found.ratio(ours, theirs, 'rate'):.2f}",
                             *(format_time(found.median(*at, "p50_ns")) for at in (ours, theirs)),
                             f"{found.ratio(ours, theirs, 'p50_ns'):.2f}",
                             *("" if by else format_time(found.median(*at, "server_cpu_ns"))
                               for at in (ours, theirs))])
    return rows


def codec_table(found):
    rows = [["time to encode or decode one message (header and body)", "koine", "encoding/gob", "ratio"]]
    for row in CODEC:
        ratio = found.ratio((row, "koine"), (row, "go"), "ns")
        if ratio is not None:
            rows.append([row, *(f"{found.median(row, c, 'ns'):.0f} ns" for c in ("koine", "go")),
                         f"{ratio:.2f}"])
    return rows


def tables(found):
    return [rows for rows in (call_table(found), codec_table(found)) if len(rows) > 1]


def judge_calls(found, n, m, least):
    """By calls per second, as other servers' calls are; with what the server's CPU time says."""
    row = f"Stats {n}×{m}"
    title = f"koined serves at least {least} times as many net/rpc Stats calls per second as Go's server, with {load(n, m)}"
    rate = found.ratio((row, "koined"), (row, "go"), "rate")
    cpu = found.ratio((row, "go"), (row, "koined"), "server_cpu_ns")
    if rate is None:
        return title, "not measured", None
    return title, f"ratio of calls per second: {rate:.3g}; ratio of CPU times: {cpu:.3g}", rate >= least


def judge(found):
    if not found.rows:
        return []
    verdicts = [judge_calls(found, 8, 32, 10), judge_calls(found, 64, 1, 2)]
    verdicts.append(verdict(
        "koined's p50 for net/rpc Stats calls is at most 0.7 times the p50 of Go's server, with " + load(1, 1),
        found.ratio(("Stats 1×1", "koined"), ("Stats 1×1", "go"), "p50_ns"), lambda v: v <= 0.7))
    return verdicts
