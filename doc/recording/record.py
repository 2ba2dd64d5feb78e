"""
Records doc/recording.svg: two terminals and a real koined, as a user would see them.

Everything in it happens: tmux is the terminal, a scene is a table of what is typed where and of
what must then be on the screen. The picture has one text for each row of a screen and each time
that it stood there; times in which nothing happens are cut short. Run it by `./dev record`.
"""
import html
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "test", "system"))
import test_guide as guide  # noqa: E402: a machine that looks new

COLUMNS, ROWS = 92, 11
CELL, LINE, SIZE = 7.83, 17, 13
STILL = 1.4  # seconds at most that a picture stands when nothing happens
TMUX = ["tmux", "-L", "recording", "-f", "/dev/null"]

# Terminal, keys, what is on its screen afterwards (or on the other's, with its name).
SCENE = [
    ("agent", "koine session add --follow ship the release\n", "waits for approval"),
    ("you", "koine approval watch\n", "deploy"),
    ("you", "a", None),
    ("agent", "", "deployed to production"),
    ("you", "q", r"\$$"),
    ("you", "\f", None),
    ("you", "koine memory add 'Staging is deployed from the branch next'\n", "Memory added"),
    ("agent", "\f", None),
    ("agent", "curl localhost:8765 -s -d '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"send\","
     " \"params\": {\"content\": \"Which branch is staging deployed from?\"}}'\n", "branch next"),
    ("agent", "", None),
]
TITLES = {"agent": "an agent's terminal", "you": "your terminal"}
COLOURS = {30: "#6e7681", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff",
           36: "#76e3ea", 37: "#e6edf3", 90: "#8b949e"}


def tmux(*words):
    return subprocess.run(TMUX + list(words), check=True, stdout=subprocess.PIPE).stdout.decode()


class Camera:
    """Looks at both terminals, and keeps what changed."""

    def __init__(self):
        self.frames = []  # (time, {terminal: rows})
        self.begin = time.monotonic()

    def look(self):
        screens = {name: tmux("capture-pane", "-p", "-e", "-t", name).split("\n")[:ROWS]
                   for name in TITLES}
        if not self.frames or self.frames[-1][1] != screens:
            self.frames.append((time.monotonic() - self.begin, screens))
        return screens

    def wait(self, name, pattern, seconds=30):
        end = time.monotonic() + seconds
        while True:
            text = "\n".join(guide.ESCAPES.sub("", row) for row in self.look()[name]).rstrip()
            if re.search(pattern, text):
                return
            if time.monotonic() > end:
                raise SystemExit("%r never came:\n%s" % (pattern, text))
            time.sleep(0.05)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.05)

    def type(self, name, keys):
        """Three characters at a time: each picture costs room."""
        for i in range(0, len(keys), 3):
            piece = keys[i:i + 3]
            # tmux takes a word's last semicolon for the end of its command.
            tmux("send-keys", "-t", name, "-l", "--", re.sub(";$", r"\\;", piece))
            time.sleep(0.03)
            self.look()


def play(camera):
    for name, keys, found in SCENE:
        text = keys.rstrip("\n\f")
        camera.type(name, text)
        if keys != text:
            tmux("send-keys", "-t", name, "Enter" if keys.endswith("\n") else "C-l")
        if found:
            camera.wait(name, found)
        camera.rest(STILL)


def record():
    guide.furnish()
    os.environ.update(HOME=guide.HOME, XDG_RUNTIME_DIR="/run/user/1000", TERM="xterm-256color",
                      PATH="/mnt/bin:/usr/bin:/bin", LC_ALL="C.UTF-8")
    os.environ.pop("TMUX", None)
    os.chdir(guide.PLACE)
    daemon = guide.Terminal("koined --set session.program=$PWD/examples/agent.sh"
                            " --set agent.recall.word_delay=25")
    daemon.until(lambda: "koined: ready" in daemon.text, "koined: ready")
    shell = "setpriv --reuid=1000 --regid=1000 --clear-groups env 'PS1=$ ' bash --norc --noprofile"
    for name in TITLES:
        tmux("new-session", "-d", "-s", name, "-x", str(COLUMNS), "-y", str(ROWS), shell)
        tmux("set", "-t", name, "status", "off")
    camera = Camera()
    for name in TITLES:
        camera.wait(name, r"\$")
    # Said once, so that the picture shows the answer alone.
    subprocess.run(["curl", "-s", "localhost:8765", "-d",
                    '{"jsonrpc":"2.0","id":1,"method":"send","params":{"content":"Hello"}}'],
                   stdout=subprocess.DEVNULL, check=True)
    camera.frames.clear()
    camera.begin = time.monotonic()
    play(camera)
    tmux("kill-server")
    return camera.frames


# ---- the picture ----


def cut_short(frames):
    """The same pictures, without long waits."""
    out, now, before = [], 0.0, None
    for when, screens in frames:
        now += min(when - before, STILL) if before is not None else 0
        before = when
        out.append((now, screens))
    return out, now + 2 * STILL


def spans(row):
    """A row with tmux's colours as SVG text."""
    out, style = [], {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", row.rstrip()):
        if not part.startswith("\x1b"):
            if part:
                words = html.escape(part, quote=False)
                attributes = "".join(' %s="%s"' % pair for pair in style.items())
                out.append("<tspan%s>%s</tspan>" % (attributes, words) if attributes else words)
            continue
        for code in (int(c or 0) for c in part[2:-1].split(";")):
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 7:
                style["fill"] = "#79c0ff"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
    return "".join(out)


def stays(frames, end):
    """(terminal, row, text, from, to) for each text and each time that it stood there."""
    for name in TITLES:
        for row in range(ROWS):
            since, text = 0.0, ""
            for when, screens in frames + [(end, None)]:
                now = spans(screens[name][row]) if screens and row < len(screens[name]) else None
                if now == text:
                    continue
                if text:
                    yield name, row, text, since, when
                since, text = when, now
    return


def draw(frames, end):
    height = (ROWS + 1) * LINE + 22
    width = int(COLUMNS * CELL) + 24
    style, body = [], []
    for top, name in enumerate(TITLES):
        y = top * (height + 10)
        body.append('<rect class="w" x="0" y="%d" width="%d" height="%d" rx="8"/>'
                    '<text class="n" x="%d" y="%d" text-anchor="middle">%s</text>'
                    % (y, width, height, width // 2, y + 17, TITLES[name]))
    for i, (name, row, text, since, to) in enumerate(stays(frames, end)):
        a, b = 100 * since / end, 100 * to / end
        hide = "" if b > 99.9 else "%.2f%%{opacity:0}" % b
        style.append("@keyframes k%d{0%%{opacity:%d}%.2f%%{opacity:1}%s}#k%d{animation-name:k%d}"
                     % (i, a == 0, a, hide, i, i))
        y = list(TITLES).index(name) * (height + 10) + 22 + (row + 1) * LINE
        last = ' class="z"' if b > 99.9 else ""
        body.append('<text id="k%d"%s x="12" y="%d">%s</text>' % (i, last, y, text))
    total = 2 * height + 10
    return """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="In one terminal an agent asks before it deploys, in the other a human approves; then what one remembered is found by another client">
<style>.w{fill:#0d1117;stroke:#30363d}text{font:%dpx ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}.n{fill:#8b949e;font-size:11px}
text[id]{opacity:0;animation:%.1fs step-end infinite}
@media (prefers-reduced-motion){text[id]{animation:none}text.z{opacity:1}}
%s</style>
%s
</svg>
""" % (width, total, SIZE, end, "".join(style), "\n".join(body))


if __name__ == "__main__":
    if sys.argv[1:] != ["--inside"]:
        os.execvp("unshare", ["unshare", "-mnpf", "--kill-child", "--mount-proc", sys.executable,
                              os.path.abspath(__file__), "--inside"])
    # Opened before: the machine that looks new may have its own folders where this one is.
    with open(os.path.join(SOURCE, "doc", "recording.svg"), "r+", encoding="utf-8") as f:
        taken, length = cut_short(record())
        picture = draw(taken, length)
        f.write(picture)
        f.truncate()
    print("doc/recording.svg: %d pictures, %.0f s, %d KB" % (len(taken), length, len(picture) // 1024))
