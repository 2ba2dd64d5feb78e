"""What bench/growth found, as a table and as a picture of its curves."""

import math

import chart
from part_report import as_markdown, as_text, format_time

HEADING = "Performance by store size"
GOAL = 2.0

PANEL = 372  # a panel's width; two stand side by side
PLOT = 150  # the height of its curves
TOP = 2.5  # the ratio at which a curve is cut
LINE = 16  # of the legend
COLOURS = ["#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700", "#59636e", "#0a7ea4"]


def answer_grows(row, sizes):
    return row["bytes"][sizes[-1]] > 1.5 * row["bytes"][sizes[0]]


def is_complete(row, sizes):
    return all(n in row["ns"] for n in sizes)


def ratio(row, sizes, n):
    return row["ns"][n] / row["ns"][sizes[0]]


def per_byte(row, sizes):
    """The same for a call that returns more in a larger store, which has the right to take longer."""
    return ratio(row, sizes, sizes[-1]) * row["bytes"][sizes[0]] / row["bytes"][sizes[-1]]


def is_met(row, sizes):
    return is_complete(row, sizes) and (answer_grows(row, sizes)
                                        or ratio(row, sizes, sizes[-1]) <= GOAL)


def missed(found, sizes):
    """Names of the calls that cost too much in the largest store, or failed in one."""
    return [name for name, row in found.items() if not is_met(row, sizes)]


def _cell(row, sizes, n):
    if n not in row["ns"]:
        return "failed"
    time = format_time(row["ns"][n])
    if n == sizes[0] or sizes[0] not in row["ns"]:
        return time
    return f"{ratio(row, sizes, n):.2f}  {time}"


def _verdict(row, sizes):
    if is_complete(row, sizes) and answer_grows(row, sizes):
        return f"no goal, because the response grows with the store; time per byte grows by a factor of {per_byte(row, sizes):.2f}"
    return "ok" if is_met(row, sizes) else "missed"


def table(found, sizes):
    return [["call", *(f"{n:,}" for n in sizes), ""],
            *([name, *(_cell(row, sizes, n) for n in sizes), _verdict(row, sizes)]
              for name, row in found.items())]


def text(found, sizes):
    return as_text(table(found, sizes))


def section(found, sizes, stores, machine):
    date, cpu = machine["date"], machine["cpu"]
    return f"""The benchmark ran on {date} on this machine: {cpu}, {machine["cores"]} cores. The four stores contain the number of memories in the column
heading, the same number of messages, tasks, events, approvals and session events, and a tenth as many sessions. Each cell
contains two numbers: the ratio of the call's p50 to its p50 with the smallest store, and the p50 itself, measured through the
socket. The size of the largest store is {stores[-1][1] / 1e9:.1f} GB. The goal is a ratio of at most {GOAL:g} with the largest store, unless the
response itself grows. `./dev bench --growth` runs the benchmark.

![Cost by the size of the store](growth.svg)

{as_markdown(table(found, sizes))}
"""


# ---- the picture ----

def _panel_of(name):
    return name.split(":")[0]


def _point(x, y, sizes, n, value):
    span = math.log(sizes[-1]) - math.log(sizes[0])
    left, right = x + 34, x + PANEL - 24
    at = left + (math.log(n) - math.log(sizes[0])) / span * (right - left)
    return at, y + PLOT - min(value, TOP) / TOP * PLOT


def _axes(x, y, sizes):
    out = []
    for value in (0, 0.5, 1, 1.5, 2, 2.5):
        left, height = _point(x, y, sizes, sizes[0], value)
        right, _ = _point(x, y, sizes, sizes[-1], value)
        css = "floor" if value == GOAL else "grid"
        out.append(f'<line x1="{left:.1f}" y1="{height:.1f}" x2="{right:.1f}" y2="{height:.1f}" '
                   f'class="{css}"/>')
        out.append(chart.label(left - 6, height + 4, f"{value:g}", "tick", "end"))
    for n in sizes:
        at, _ = _point(x, y, sizes, n, 0)
        out.append(chart.label(at, y + PLOT + 14, f"{n:,}", "tick", "middle"))
    return out


def _curve(x, y, sizes, row, colour):
    points = [_point(x, y, sizes, n, ratio(row, sizes, n)) for n in sizes]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>' for a, b in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}'


def _legend(x, y, sizes, name, row, colour):
    last = ratio(row, sizes, sizes[-1])
    what = name.split(":", 1)[1].strip()
    return (f'<circle cx="{x + 40}" cy="{y - 4}" r="4" fill="{colour}"/>'
            + chart.label(x + 50, y, what, "tick")
            + chart.label(x + PANEL - 24, y, f"{last:.2f}", "tick", "end"))


def _panel(x, y, title, rows, sizes):
    out = [chart.label(x + 16, y + 14, title, "panel"), *_axes(x, y + 24, sizes)]
    below = y + 24 + PLOT + 34
    for i, (name, row) in enumerate(rows):
        colour = COLOURS[i % len(COLOURS)]
        out.append(_curve(x, y + 24, sizes, row, colour))
        out.append(_legend(x, below + i * LINE, sizes, name, row, colour))
    return out, below + len(rows) * LINE - y


def picture(found, sizes):
    panels = {}
    for name, row in found.items():
        if is_complete(row, sizes) and not answer_grows(row, sizes):
            panels.setdefault(_panel_of(name), []).append((name, row))
    body = [chart.label(16, 26, "What a call costs as the store grows", "title"),
            chart.label(16, 44, f"p50 relative to a store with {sizes[0]:,} objects of each kind; "
                        "the goal is to stay below the dashed line.", "note")]
    y, height = 62, 0
    for i, (title, rows) in enumerate(panels.items()):
        if i % 2 == 0:
            y += height + (12 if i else 0)
            height = 0
        drawn, tall = _panel((i % 2) * PANEL, y, title, rows, sizes)
        body += drawn
        height = max(height, tall)
    return chart.page(2 * PANEL + 16, y + height + 12, "Cost of calls by the size of the store", body)
