"""Reports bench/hosts: tables, goals, and a section of doc/bench.md."""

import os
import statistics

import document
import growth_report
import hosts_model
import report
from part_report import as_markdown, as_text, format_time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TITLE = "Several hosts"
JUDGED = "16"  # the row of empty jobs that the goal is about: one by one on both sides
SLEEPS = (0.1, 4)  # seconds of a task, slots of a node


def median(values):
    return statistics.median(values) if values else None


def task_rates(found, form, nodes):
    return median([one["rate"] for one in found["tasks"][form] if one["nodes"] == nodes])


def ratio(a, b):
    return a / b if a and b else None


# ---- tables ----

def adds_table(found):
    adds = {store: median(rates) for store, rates in found["adds"].items()}
    return [["durable adds by 64 clients", "adds/s", "ratio"], ["SQLite", f"{adds['sqlite']:,.0f}", ""],
            ["PostgreSQL with one host", f"{adds['postgresql']:,.0f}", f"{ratio(adds['postgresql'], adds['sqlite']):.2f}"]]


def tasks_table(found):
    costs = hosts_model.Costs(found["costs"]) if "costs" in found else None
    rows = [["hosts", "rate of tasks with `sleep 0.1` and 4 slots per host", "ratio", "simulation", "rate of tasks with `true` and 16 slots per host", "ratio",
             "CPU time per task"]]
    for n in (1, 2, 3):
        sleep, true = task_rates(found, "sleep", n), task_rates(found, "true", n)
        cpu = median([one["cpu"] for one in found["tasks"]["true"] if one["nodes"] == n])
        said = hosts_model.rate(costs, n, *SLEEPS)["rate"] if costs else None
        rows.append([str(n), f"{sleep:.0f}/s", f"{sleep / task_rates(found, 'sleep', 1):.2f}",
                     f"{said:.0f}/s" if said else "", f"{true:.0f}/s", f"{true / task_rates(found, 'true', 1):.2f}",
                     format_time(cpu * 1e9)])
    return rows


def reads_table(found):
    reads = {int(n): median(counts) for n, counts in found["reads"].items()}
    return [["hosts", "SELECT statements per task", "for each further host"],
            *([str(n), f"{x:.2f}", f"{(x - reads[1]) / (n - 1):.2f}" if n > 1 else ""] for n, x in reads.items())]


def search_table(found):
    alone, nodes = (median(x) for x in found["search"].values())
    return [["search by one client among 10,000 memories", "p50", "ratio"], ["SQLite", format_time(alone), ""],
            ["PostgreSQL, with the search on the second of two hosts", format_time(nodes), f"{ratio(nodes, alone):.2f}"]]


def jobs_table(found):
    rows = [["number of empty jobs in flight", "koine/s", "pg-boss/s", "ratio"]]
    for row, columns in found["jobs"].items():
        ours, theirs = median(columns["koine"]), median(columns["pg-boss"])
        rows.append([row if row.isdigit() else f"a batch of {row.split()[0]} jobs", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio(ours, theirs):.2f}"])
    return rows


def costs_table(found):
    names = {"claim": "claim one task of a batch", "end": "complete one task of a batch", "commit": "commit one event",
             "commit_many": f"commit {found['costs']['many']:.0f} events", "beat": "renew a host's lease", "tell": "send a NOTIFY",
             "wake": "send a NOTIFY and wait until another host receives it", "page": "read a page that contains one event",
             "page_many": f"read a page that contains {found['costs']['page_events']:,.0f} events",
             "around": "overhead of one task, if tasks run one at a time"}
    return [["operation", "p50"], *([words, format_time(found["costs"][name])] for name, words in names.items())]


TABLES = {"adds": adds_table, "tasks": tasks_table, "reads": reads_table, "search": search_table, "jobs": jobs_table, "costs": costs_table}


def tables(found):
    return [table(found) for part, table in TABLES.items() if part in found]


# ---- goals ----

def goals(found):
    adds = {store: median(rates) for store, rates in found.get("adds", {}).items()}
    search = [median(x) for x in found.get("search", {}).values()]
    jobs = {column: median(x) for column, x in found.get("jobs", {}).get(JUDGED, {}).items()}
    scale = {n: ratio(task_rates(found, "sleep", n), task_rates(found, "sleep", 1)) if "tasks" in found else None
             for n in (2, 3)}
    reads = reads_table(found)[-1] if "reads" in found else None
    rows = [("koined completes at least 0.5 times as many durable adds per second with PostgreSQL as with SQLite",
             ratio(adds.get("postgresql"), adds.get("sqlite")), lambda x: x >= 0.5),
            ("two hosts complete at least 1.7 times as many tasks per second as one host", scale[2], lambda x: x >= 1.7),
            ("three hosts complete at least 2.3 times as many tasks per second as one host", scale[3], lambda x: x >= 2.3),
            ("each further of three hosts executes at most 2 SELECT statements per task", float(reads[2]) if reads else None,
             lambda x: x <= 2),
            ("the p50 of a search with two hosts on PostgreSQL is at most 1.2 times the p50 with SQLite", ratio(*search[::-1]) if search else None,
             lambda x: x <= 1.2),
            ("koine completes at least 3 times as many empty jobs per second as pg-boss, with 16 jobs in flight", ratio(jobs.get("koine"), jobs.get("pg-boss")),
             lambda x: x >= 3)]
    return [(title, "not measured" if x is None else f"{x:.2f}", None if x is None else met(x))
            for title, x, met in rows]


def tell(found):
    print("\n\n".join(as_text(rows) for rows in tables(found)))
    if "costs" in found:
        print("\n" + as_text(hosts_model.table(hosts_model.Costs(found["costs"]))))
    verdicts = goals(found)
    print("\n" + as_text([["goal", "result", ""], *([t, f, report.WORDS[v]] for t, f, v in verdicts)]))
    return verdicts


# ---- documents ----

def bench_section(found):
    m = report.machine()
    parts = "\n\n".join(as_markdown(rows) for rows in tables(found))
    return f"""The benchmark ran on {m["date"]} on this machine: {m["cpu"]}, {m["cores"]} cores. The PostgreSQL server, all hosts, their programs and the clients
share the cores. The rounds of all variants are interleaved. The tables show medians, except the table of single operations,
which shows the best round. Other work on the machine affects all values: compare
ratios, not absolute values. The tested version of pg-boss is 12.35.0, on Node.js 22. `./dev bench --hosts` runs the benchmark;
[bench/README.md](../bench/README.md#several-hosts) describes each row.

{parts}

{scaling(found)}
"""


def job_ratios(found):
    loads = [f"{float(cells[-1]):.1f} with {cells[0]}" + ("" if "batch" in cells[0] else f" job{'s' * (cells[0] != '1')} in flight")
             for cells in jobs_table(found)[1:]]
    return ", ".join(loads[:-1]) + ", and " + loads[-1]


def scaling(found):
    costs = hosts_model.Costs(found["costs"])
    adds = {store: median(rates) for store, rates in found["adds"].items()}
    search = [median(x) for x in found["search"].values()]
    return f"""- **PostgreSQL compared with SQLite**: durable adds by 64 clients take {1 / ratio(adds['postgresql'], adds['sqlite']):.1f} times as long, and a search takes {ratio(search[1], search[0]):.1f} times as long.
- **Tasks that mostly wait**, such as agents: two hosts complete {task_rates(found, 'sleep', 2) / task_rates(found, 'sleep', 1):.1f} times as many tasks as one host, and three hosts complete {task_rates(found, 'sleep', 3) / task_rates(found, 'sleep', 1):.1f} times as many.
  The number of cores, which all hosts share in this benchmark, limits CPU-bound tasks.
- **Empty jobs**: koine's jobs per second, relative to pg-boss: {job_ratios(found)}.
  Both programs poll without a pause; pg-boss has `batchSize` 1 unless stated otherwise. koine batches concurrent jobs
  automatically and writes two events for each job; pg-boss writes no events.

The next table shows a simulation ([bench/hosts_model.py](../bench/hosts_model.py)). The simulation uses the measured costs of
the operations. The simulated PostgreSQL server has {hosts_model.SERVER_CORES} cores, each as fast as a core of the test machine, and a disk as fast as
the test machine's disk. The simulated hosts do not share cores, so their rates exceed the measured rates. The table shows which
limit a system reaches first; do not rely on its absolute values.

![Limits of hosts over one PostgreSQL](hosts-model.svg)

{as_markdown(hosts_model.table(costs))}"""


def publish(found):
    if missing := [part for part in TABLES if part not in found]:
        print("not published: these parts are not measured yet: " + ", ".join(missing))
        return
    page = document.Document(os.path.join(ROOT, "doc", "bench.md"))
    page.put(TITLE, bench_section(found), [growth_report.HEADING, document.GOALS])
    page.put_goals([f"| {t} | {f} | {report.WORDS[v]} |" for t, f, v in goals(found)])
    page.write()
    with open(os.path.join(ROOT, "doc", "hosts-model.svg"), "w") as f:
        f.write(hosts_model.picture(hosts_model.Costs(found["costs"])))
