"""What the reports of the parts share: what was found, and tables of text and of Markdown."""

import statistics


def format_time(ns):
    if ns >= 1e9:
        return f"{ns / 1e9:.3g} s"
    return f"{ns / 1e6:.3g} ms" if ns >= 1e6 else f"{ns / 1e3:.3g} µs"


class Found:
    """found[row][column][round] is what one run said."""

    def __init__(self, runs):
        self.rows = {}
        for run in runs:
            by_column = self.rows.setdefault(run["row"], {})
            by_column.setdefault(run["column"], {})[run["round"]] = run

    def median(self, row, column, measure):
        values = [run[measure] for run in self.rows.get(row, {}).get(column, {}).values()]
        return statistics.median(values) if values else None

    def ratio(self, ours, theirs, measure):
        """Of two (row, column), within each round; the median."""
        a = self.rows.get(ours[0], {}).get(ours[1], {})
        b = self.rows.get(theirs[0], {}).get(theirs[1], {})
        ratios = [a[n][measure] / b[n][measure] for n in a if n in b and b[n][measure]]
        return statistics.median(ratios) if ratios else None


def load(connections, inflight):
    return f"{connections} connection{'s' * (connections != 1)} × {inflight} request{'s' * (inflight != 1)}"


def verdict(title, value, is_met, form="{:.3g}"):
    if value is None:
        return title, "not measured", None
    return title, form.format(value), is_met(value)


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    out = ["  ".join([row[0].ljust(widths[0]),
                      *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
           for row in rows]
    out.insert(1, "-" * max(len(line) for line in out))
    return "\n".join(out)


def as_markdown(rows):
    return "\n".join(["| " + " | ".join(rows[0]) + " |",
                      "|---|" + "---:|" * (len(rows[0]) - 1),
                      *("| " + " | ".join(row) + " |" for row in rows[1:])])
