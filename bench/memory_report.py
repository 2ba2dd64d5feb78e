"""The memory part of the report: its tables and its goals."""

from memory import ADD_CLIENTS, LIST_SHAPES, SETS
from part_report import format_time, load, verdict

TITLE = "Memory"
INTRO = ["Clients call koined through its socket. koined runs on all cores, and its store is on a real disk. SQLite's FTS5 runs in the",
         "benchmark's own process. The columns *asyncio* show a server in Python that uses asyncio and SQLite. Each value is the median of",
         "all rounds."]

SYNC_COSTS_NS = 500000  # below that a disk does not keep what it was told to, or hardly waits


def search_table(found):
    rows = [["search for the ten best memories", "koined p50", "p99", "FTS5 p50", "p99", "p50 ratio"]]
    searches = [(f"search {set_.name}{more}", set_.title + title) for set_ in SETS
                for more, title in (("", ""), (" words", ", with word vectors"))]
    for row, title in searches:
        if found.median(row, "koined", "p50_ns") is None:
            continue
        ratio = found.ratio((row, "koined"), (row, "fts5"), "p50_ns")
        rows.append([title,
                     *(format_time(found.median(row, column, measure))
                       for column in ("koined", "fts5") for measure in ("p50_ns", "p99_ns")),
                     f"{ratio:.3f}"])
    return rows


def add_table(found):
    rows = [["durable adds", "adds/s", "p50", "p99", "fdatasync, p50"]]
    for n in ADD_CLIENTS:
        row = f"add {n}"
        if found.median(row, "koined", "rate") is None:
            continue
        rows.append([f"{n} client{'s' if n > 1 else ''}",
                     f"{found.median(row, 'koined', 'rate'):,.0f}",
                     format_time(found.median(row, "koined", "p50_ns")),
                     format_time(found.median(row, "koined", "p99_ns")),
                     format_time(found.median(f"sync {n}", "disk", "p50_ns"))])
    return rows


def list_table(found):
    rows = [["calls of `memory.list`, which returns 5 memories", "koined/s", "asyncio/s", "ratio", "koined CPU",
             "asyncio CPU"]]
    for n in LIST_SHAPES:
        row = f"list {n}"
        ratio = found.ratio((row, "koined"), (row, "asyncio"), "rate")
        if ratio is None:
            continue
        rows.append(["memory.list, " + load(n, 1), f"{found.median(row, 'koined', 'rate'):,.0f}",
                     f"{found.median(row, 'asyncio', 'rate'):,.0f}", f"{ratio:.1f}",
                     format_time(found.median(row, "koined", "server_cpu_ns")),
                     format_time(found.median(row, "asyncio", "server_cpu_ns"))])
    return rows


def index_table(found):
    rows = [["index", "MB", "index bytes per memory", "increase of koined's RAM, MB", "first search", "time to start koined",
             "imports/s"]]
    for set_ in SETS:
        row = f"index {set_.name}"
        size = found.median(row, "koined", "index_bytes")
        if size is None:
            continue
        seconds = {m: found.median(row, "koined", m)
                   for m in ("first_search_s", "ready_s", "fill_s")}
        n_filled = int(set_.made.split(",")[0])
        rows.append([set_.title, f"{size / 1e6:.1f}",
                     f"{size / found.median(row, 'koined', 'memories'):.0f}",
                     f"{found.median(row, 'koined', 'grown_kib') * 1024 / 1e6:.1f}",
                     format_time(seconds["first_search_s"] * 1e9),
                     format_time(seconds["ready_s"] * 1e9),
                     f"{n_filled / seconds['fill_s']:,.0f}"])
    return rows


def again_table(found):
    rows = [["first search after a koined restart", "time with an index file", "time without an index file", "ratio", "file, MB",
             "time to start koined"]]
    for set_ in SETS:
        for column, title in (("one user", set_.title), ("everything", set_.title + ", searched across all users")):
            row = f"again {set_.name}"
            first = found.median(row, column, "first_search_s")
            if first is None:
                continue
            built = found.median(row, column, "built_s")
            rows.append([title, format_time(first * 1e9), format_time(built * 1e9),
                         f"{first / built:.3f}",
                         f"{found.median(row, column, 'file_bytes') / 1e6:.1f}",
                         format_time(found.median(row, column, "ready_s") * 1e9)])
    return rows


def tables(found):
    made = [make(found)
            for make in (search_table, add_table, list_table, index_table, again_table)]
    return [rows for rows in made if len(rows) > 1]


def judge_searches(found):
    verdicts = []
    for name, title, most in (("100k", "100,000 memories of one user", 0.05),
                              ("100k words", "100,000 memories of one user, with word vectors", 0.08),
                              ("1M", "1,000,000 memories of one user", 0.03)):
        row = f"search {name}"
        if name != "100k" and row not in found.rows:
            continue
        verdicts.append(verdict(
            f"{title}: the p50 of a search through the socket is at most {most} times the p50 of FTS5",
            found.ratio((row, "koined"), (row, "fts5"), "p50_ns"), lambda v, m=most: v <= m))
    # What else runs only ever adds to a p99: the calmest round says what is ours.
    tails = [(set_.title, min(run["p99_ns"] / run["p50_ns"] for run in rounds.values()))
             for set_ in SETS
             for rounds in [found.rows.get(f"search {set_.name}", {}).get("koined")] if rounds]
    title = "the p99 of a search is at most 2.5 times its p50, in the best round"
    if not tails:
        return [*verdicts, (title, "not measured", None)]
    worst = max(tails, key=lambda t: t[1])
    return [*verdicts, (title, f"ratio {worst[1]:.1f} with {worst[0]}", worst[1] <= 2.5)]


def judge_adds(found):
    title = "on a slow disk, koined completes at least 20 times as many durable adds per second for 64 clients as for 1 client"
    ratio = found.ratio(("add 64", "koined"), ("add 1", "koined"), "rate")
    sync = found.median("sync 1", "disk", "p50_ns")
    if ratio is None or sync is None:
        return title, "not measured", None
    kind = next(iter(found.rows["sync 1"]["disk"].values()))["file_system"]
    disk = f"fdatasync takes {format_time(sync)} on {kind}"
    if sync < SYNC_COSTS_NS:
        return title, f"ratio {ratio:.1f}; the disk is too fast for this goal: {disk}", True
    return title, f"ratio {ratio:.1f}; {disk}", ratio >= 20


def judge_list(found):
    return verdict("koined serves at least 6 times as many `memory.list` calls per second as the asyncio server, with " + load(64, 1),
                   found.ratio(("list 64", "koined"), ("list 64", "asyncio"), "rate"),
                   lambda v: v >= 6)


def judge_index(found):
    name, n = ("1M", 1e6) if "index 1M" in found.rows else ("100k", 1e5)
    size = found.median(f"index {name}", "koined", "index_bytes")
    title = "the index of a million short memories is at most 150 MB"
    if n < 1e6:
        title += f" (extrapolated from {n:,.0f} memories)"
    return verdict(title, size and size / n, lambda v: v <= 150, "{:.0f}")


def judge_again(found):
    """What else runs only ever adds to a time: the calmest round says what is ours."""
    verdicts = []
    for name, title, most_ms in (("100k", "100,000", 30), ("1M", "1,000,000", 300)):
        people = {"one user": "one user", "everything": "all users"}
        for column in people:
            runs = found.rows.get(f"again {name}", {}).get(column)
            if not runs:
                continue
            ms = min(run["first_search_s"] for run in runs.values()) * 1e3
            verdicts.append(verdict(
                f"the first search for {people[column]} after a restart, with {title} memories, takes at most {most_ms} ms in"
                " the best round", ms, lambda v, m=most_ms: v <= m, "{:.1f} ms"))
    return verdicts


def judge(found):
    if not found.rows:
        return []
    return [*judge_searches(found), judge_adds(found), judge_list(found), judge_index(found),
            *judge_again(found)]
