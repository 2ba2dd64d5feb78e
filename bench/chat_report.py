"""The chat part of the report: its tables and its goals."""

from chat import RELAYS, STREAMS, TURN_SHAPES
from part_report import format_time, verdict

NAMES = {"straight": "direct connection to the provider, without a relay", "floor": "minimal relay", "koined": "koined",
         "asyncio": "asyncio relay"}
TITLE = "Conversations"
INTRO = ["All cores are available, and koined's store is on a real disk. koined stores every turn; the other relays store nothing. Each",
         "value is the median of all rounds."]


def format_or(form, value):
    return "" if value is None else form(value)


def stream_table(found, row, title, measures):
    """measures: (head, form, measure, is it the relay's own)"""
    rows = [[title, *(head for head, *_ in measures)]]
    for column in ("straight", *RELAYS):
        if found.median(row, column, "rate") is None:
            continue
        rows.append([NAMES[column],
                     *("" if is_own and column == "straight"
                       else format_or(form, found.median(row, column, measure))
                       for _, form, measure, is_own in measures)])
    return rows


def fast_table(found):
    return stream_table(found, "stream fast", f"relay of {STREAMS} streams at full speed", [
        ("tokens/s", "{:,.0f}".format, "rate", False),
        ("CPU time per token", format_time, "server_cpu_ns", True),
        ("duration of a stream, p50", format_time, "ended_p50_ns", False)])


def paced_table(found):
    return stream_table(found, "stream paced", f"relay of {STREAMS} streams, each with 50 tokens/s", [
        ("tokens/s", "{:,.0f}".format, "rate", False),
        ("CPU time per token", format_time, "server_cpu_ns", True),
        ("memory per stream, KiB", "{:.1f}".format, "kib_each", True),
        ("delay of a token from the provider to the client, p50", format_time, "p50_ns", False),
        ("p99", format_time, "p99_ns", False)])


def cancel_table(found):
    rows = [["operation during a turn", "p50", "p99"]]
    for title, column, measures in (
            ("ping", "koined", ("ping_p50_ns", "ping_p99_ns")),
            ("one fdatasync", "disk", ("p50_ns", "p99_ns")),
            ("`cancel`, until the end of the turn is on disk", "koined", ("p50_ns", "p99_ns"))):
        values = [found.median("cancel", column, m) for m in measures]
        if None not in values:
            rows.append([title, *map(format_time, values)])
    return rows


def turn_table(found):
    rows = [["turns of the agent `recall`, stored on disk", "turns/s", "p50", "p99", "CPU time per turn", "fdatasync, p50"]]
    for n in TURN_SHAPES:
        row = f"turn {n}"
        if found.median(row, "koined", "rate") is None:
            continue
        rows.append([f"{n} conversation{'s' if n > 1 else ''}",
                     f"{found.median(row, 'koined', 'rate'):,.0f}",
                     *(format_time(found.median(row, "koined", m))
                       for m in ("p50_ns", "p99_ns", "server_cpu_ns")),
                     format_time(found.median(row, "disk", "p50_ns"))])
    return rows


def tables(found):
    made = [make(found) for make in (fast_table, paced_table, cancel_table, turn_table)]
    return [rows for rows in made if len(rows) > 1]


def judge(found):
    if not found.rows:
        return []
    return [
        verdict(f"koined relays at least 5 times as many tokens per second as the asyncio relay, with {STREAMS} streams at full speed",
                found.ratio(("stream fast", "koined"), ("stream fast", "asyncio"), "rate"),
                lambda v: v >= 5),
        verdict("koined uses at most 0.7 times the CPU time of the asyncio relay per token, with "
                f"{STREAMS} streams at 50 tokens/s",
                found.ratio(("stream paced", "koined"), ("stream paced", "asyncio"),
                            "server_cpu_ns"), lambda v: v <= 0.7),
        verdict("koined uses at most 64 KiB of memory per stream",
                found.median("stream paced", "koined", "kib_each"), lambda v: v <= 64, "{:.1f}"),
    ]
