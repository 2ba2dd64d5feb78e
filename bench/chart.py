"""Draws the chart of the README: horizontal bars, by hand, for light and dark pages."""

from xml.sax.saxutils import escape

WIDTH = 760
LEFT = 160  # where bars begin
RIGHT = 120  # room for the numbers behind them
BAR = 18
STEP = 26
LONGEST = 6.0  # ratio at which a bar is cut: the slow ones would flatten the rest

TITLE = "CPU time of the server per ping, as JSON lines over a Unix socket"
NOTE = ("Relative to a minimal server (an epoll loop that sends a fixed response). "
        "Shorter bars are better.")

STYLE = """
  text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif;
         fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .panel { font-weight: 600; }
  .note, .tick { fill: #59636e; font-size: 11px; }
  .bar { fill: #8c959f; }
  .ours { fill: #0969da; }
  .grid { stroke: #d1d9e0; }
  .floor { stroke: #59636e; stroke-dasharray: 3 3; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .note, .tick { fill: #9198a1; }
    .bar { fill: #656c76; }
    .ours { fill: #4493f8; }
    .grid { stroke: #3d444d; }
    .floor { stroke: #9198a1; }
    .page { fill: #0d1117; }
  }
"""


def _x(ratio):
    return LEFT + min(ratio, LONGEST) / LONGEST * (WIDTH - LEFT - RIGHT)


def label(x, y, text, css="", anchor="start"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" class="{css}" text-anchor="{anchor}">'
            f"{escape(text)}</text>")


def page(width, height, about, body):
    """It has a background of its own: a viewer's theme and the one around it need not agree."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(about)}">\n'
            f"<style>{STYLE}</style>\n"
            f'<rect width="{width}" height="{height}" rx="6" class="page"/>\n'
            + "\n".join(body) + "\n</svg>\n")


def _bar(y, name, ratio, time, is_ours):
    end = _x(ratio)
    css = "ours" if is_ours else "bar"
    out = [label(LEFT - 8, y + 13, name, "panel" if is_ours else "", "end"),
           f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{BAR}" rx="2" '
           f'class="{css}"/>']
    if ratio > LONGEST:
        out.append(f'<path d="M{end - 22:.0f} {y - 1} l6 0 l-6 {BAR + 2} l-6 0 z" class="page"/>')
    number = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
    out.append(label(end + 6, y + 13, f"{number} ×  ({time})"))
    return out


def _grid(top, bottom):
    out = []
    for tick in range(1, int(LONGEST) + 1):
        css = "floor" if tick == 1 else "grid"
        x = _x(tick)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" class="{css}"/>')
        out.append(label(x, bottom + 13, f"{tick} ×", "tick", "middle"))
    return out


def draw(panels):
    """An SVG of [(title, [(label, ratio, time, is_ours)])]."""
    body = [label(16, 26, TITLE, "title"), label(16, 44, NOTE, "note")]
    y = 60
    for title, bars in panels:
        body.append(label(16, y + 14, title, "panel"))
        y += 24
        bottom = y + STEP * len(bars)
        body += _grid(y - 2, bottom)
        for bar in bars:
            body += _bar(y + 2, *bar)
            y += STEP
        y = bottom + 28
    return page(WIDTH, y, "CPU time per request relative to a bare epoll floor", body)
