"""What search finds: its tables, its goals and the picture of the ladder."""

import chart
import part_report
from quality import BOTH, MODEL, SOCKET, WORDS

TITLE = "Search quality"
INTRO = ["The tables show recall@1, recall@5 and recall@10 in percent, for the original questions and for the same questions with a typo in",
         "each. The names of steps are in italics; a complete search has all of them. Half of the second set was used to tune the",
         "search; the other half is reserved for tests. [How a search works](memory.md#how-a-search-works) explains the steps, and",
         "[test/search](../test/search/README.md) the sets.",
         "",
         "![Recall with each step of the search](memory.svg)"]

GROUPS = {"first": "first set", "second tune": "second set, tuning half",
          "second judge": "second set, test half"}
MEASURES = [f"{form}_{depth}" for form in ("recall", "typo") for depth in (1, 5, 10)]
KINDS = {"plain": "plain BM25", "added": "previous row plus *{}*", "ladder": "complete search", "without": "complete search, *{}* turned off",
         "socket": "complete search, through koined's socket", "words": "complete search with word vectors",
         "model": "complete search with a small embedding model", "both": "complete search with word vectors and the embedding model"}

PLAIN, LADDER = "plain: words", "ladder: all steps"

# What the ladder found before it was tuned on the second set: the six measures.
BEFORE = {"first": (43.33, 67.22, 80.56, 33.33, 56.67, 71.67),
          "second tune": (20.83, 57.58, 65.91, 18.18, 46.97, 57.95),
          "second judge": (22.14, 50.06, 64.44, 20.23, 45.87, 57.19)}
# What is compared: the second has something that the first lacks.
ADDED = [(PLAIN, SOCKET), (SOCKET, WORDS), (SOCKET, MODEL), (WORDS, BOTH)]
GAIN = 5  # points at ten that tuning has to bring


def title_of(row):
    kind, _, name = row.partition(": ")
    return KINDS.get(kind, kind + " {}").format(name)


def _values(found, row, group):
    return [found.median(row, group, measure) for measure in MEASURES]


def _table(found, group):
    run = next(iter(found.rows[PLAIN][group].values()))
    rows = [[f"{GROUPS[group]}: {run['memories']:,} memories, {run['questions']} questions",
             *(f"recall@{depth}{form}" for form in ("", " with typos") for depth in (1, 5, 10))]]
    for row in found.rows:
        if row == LADDER:
            rows.append(["complete search, before tuning", *(f"{v:.1f}" for v in BEFORE[group])])
        values = _values(found, row, group)
        if None not in values:
            rows.append([title_of(row), *(f"{v:.1f}" for v in values)])
    return rows


def tables(found):
    return [_table(found, group) for group in GROUPS if group in found.rows.get(PLAIN, {})]


# ---- goals ----

def _judge_gain(found, group):
    now = found.median(LADDER, group, "recall_10")
    return part_report.verdict(
        f"{GROUPS[group]}: tuning raises recall@10 by at least {GAIN} percentage points",
        now and now - BEFORE[group][MEASURES.index("recall_10")], lambda v: round(v, 1) >= GAIN, "{:.1f}")


def _pair(values):
    return "{:.1f} ({:.1f} with typos)".format(*values)


def _is_worse(before, after):
    return None not in (*before, *after) and any(b < a for a, b in zip(before, after))


def _judge_order(found, group):
    """Whoever has more to search with must not find less, mistyped or not."""
    title = f"{GROUPS[group]}: neither word vectors nor the embedding model reduce recall@10"
    values = {row: [found.median(row, group, m) for m in ("recall_10", "typo_10")]
              for row in (PLAIN, SOCKET, WORDS, MODEL, BOTH)}
    worse = [f"{title_of(b)} {_pair(values[b])} after {_pair(values[a])}" for a, b in ADDED
             if _is_worse(values[a], values[b])]
    n_known = sum(None not in v for v in values.values())
    return title, ", ".join(worse) or f"no decrease among {n_known} variants of the search", not worse


def judge(found):
    return [make(found, group) for group in GROUPS if group in found.rows.get(PLAIN, {})
            for make in (_judge_gain, _judge_order)]


# ---- the picture ----

SHOWN = {"first": "first set", "second judge": "second set, test half"}
WIDTH = 760
LEFT = 200
RIGHT = 90
BAR = 14
STEP = 20
MARK = "#bc4c00"
STEPS = {WORDS: "+ word vectors", MODEL: "+ a small embedding model", BOTH: "+ a small embedding model"}


def _x(percent):
    return LEFT + percent / 100 * (WIDTH - LEFT - RIGHT)


def ladder_rows(found):
    """Each has all that the one before it has."""
    top = BOTH if BOTH in found.rows else MODEL
    return [row for row in found.rows
            if row in (PLAIN, WORDS, top) or row.startswith("added: ")]


def _bar(y, title, value, gain, mistyped):
    """What was found before this step is grey; what it adds has our colour."""
    before = value if gain is None else min(value, value - gain)
    out = [chart.label(LEFT - 8, y + 11, title, "", "end"),
           f'<rect x="{LEFT}" y="{y}" width="{_x(before) - LEFT:.1f}" height="{BAR}" class="bar"/>']
    if gain and gain > 0:
        out.append(f'<rect x="{_x(before):.1f}" y="{y}" width="{_x(value) - _x(before):.1f}" '
                   f'height="{BAR}" class="ours"/>')
    out.append(f'<rect x="{_x(mistyped) - 1.5:.1f}" y="{y - 2}" width="3" height="{BAR + 4}" '
               f'fill="{MARK}"/>')
    words = f"{value:.1f}" if gain is None else f"{value:.1f}  ({round(gain, 1) + 0.0:+.1f})"
    out.append(chart.label(max(_x(value), _x(value - (gain or 0))) + 6, y + 11, words, "tick"))
    return out


def _panel(found, group, y):
    out = [chart.label(16, y + 14, SHOWN[group], "panel")]
    before = None
    top = y = y + 24
    for row in ladder_rows(found):
        value = found.median(row, group, "recall_10")
        if value is None:
            continue
        out += _bar(y + 3, STEPS.get(row) or row.replace("added: ", "+ ").replace(PLAIN, KINDS["plain"]), value,
                    None if before is None else value - before,
                    found.median(row, group, "typo_10"))
        before = value
        y += STEP
    grid = []
    for percent in range(0, 101, 20):
        x = _x(percent)
        grid.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{y}" class="grid"/>')
        grid.append(chart.label(x, y + 13, f"{percent} %", "tick", "middle"))
    return grid + out, y + 28


def picture(found):
    body = [chart.label(16, 26, "What each step of the search adds", "title"),
            chart.label(16, 44, "Recall@10 in percent, as steps are added one after another. "
                        "The mark shows recall with a typo in each question.",
                        "note")]
    y = 60
    for group in SHOWN:
        drawn, y = _panel(found, group, y)
        body += drawn
    return chart.page(WIDTH, y, "Recall@10 as the steps of the search are added", body)
