#!/usr/bin/env python3
"""
koine top and the other live views as a person has them: in tmux, on a small screen and on a large one,
with real agents under them.
"""
import os
import re
import subprocess
import time

from harness import KOINE, PATIENCE, SOURCE, Daemon, Folder, check, installed, main, same, wait_until
from test_approvals_cli import ask, short, status, until
from test_approvals_screen import HIDDEN, escape_of
from test_chat_cli import of
from test_task_cli import UNTIL, World

STATIC = os.environ.get("KOINE_STATIC", "")
AGENT = os.path.join(SOURCE, "examples", "agent.sh")
KEYS = "q quit  a approve  d deny  v view  r respond  g grant for session  j k move"
SIZES = ((80, 24), (200, 50))
HOSTILE = "a\033]0;owned\007\033[2J\u202e\u200b\u061cb漢字e\u0301" + "\U0001f469"


class Tmux:
    """A program in a terminal of tmux's."""

    def __init__(self, env, *args, size=(80, 24), program=KOINE, term=None):
        installed("tmux")
        self.env = dict(env, LC_ALL="C.UTF-8")
        self.size = size
        self.command = [program, *args]
        if term:
            self.command = ["env", "TERM=" + term, *self.command]

    def __enter__(self):
        self.folder = Folder()
        self.folder.__enter__()
        # A shell outlives the program, and keeps its exit status.
        with open(self.folder("run"), "w") as f:
            f.write('"$@"\necho "status $?"\nexec sleep 1000000\n')
        columns, rows = self.size
        self("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", self.folder("run"), *self.command)
        self("set", "status", "off")
        return self

    def __exit__(self, *exc):
        subprocess.run(self.words("kill-server"), env=self.env, capture_output=True, check=False)
        self.folder.__exit__(*exc)

    def words(self, *args):
        return ["tmux", "-u", "-S", self.folder("tmux"), "-f", "/dev/null", *args]

    def __call__(self, *args):
        return subprocess.run(self.words(*args), env=self.env, check=True, capture_output=True,
                              timeout=PATIENCE).stdout.decode()

    def rows(self):
        return [r.rstrip() for r in self("capture-pane", "-p").split("\n")][:self.size[1]]

    def until(self, *texts, without=()):
        """The screen, as soon as it has these and not those."""
        seen = []

        def look():
            seen[:] = self.rows()
            screen = "\n".join(seen)
            return has_all(screen, texts) and not any(t in screen for t in without)

        try:
            wait_until(look, "%r" % (texts,))
        except Exception as e:
            raise type(e)("%s; the screen:\n%s" % (e, "\n".join(seen))) from e
        return list(seen)

    def type(self, text):
        self("send-keys", "-l", "--", text)

    def key(self, name):
        self("send-keys", name)

    def resize(self, columns, rows):
        self.size = columns, rows
        self("resize-window", "-x", str(columns), "-y", str(rows))

    def leave(self):
        self.key("q")
        self.until("status 0")


def has_all(screen, texts):
    return all(t.search(screen) if isinstance(t, re.Pattern) else t in screen for t in texts)


def compare(rows, wanted):
    """Each row fits its pattern; those that are missing are empty."""
    wanted = wanted + [""] * (len(rows) - len(wanted) - 1) + [re.escape(KEYS)]
    for row, pattern in zip(rows, wanted):
        check(re.fullmatch(pattern, row), "%r is not %r in\n%s", row, pattern, "\n".join(rows))
    same(len(rows), len(wanted), "rows")


# ---- the screen ----


def test_everything_is_on_one_screen():
    for size in SIZES:
        with World("--set", "session.program=" + AGENT) as w, w.daemon.connect() as c:
            w.add("-g", "night", "echo first; echo working on it; " + UNTIL % w.path("go"))
            w.add("--delay", "1h", "true later")
            c.call("memory.add", {"content": "a cat", "user_id": "ann", "chat_id": "1"})
            session = c.call("session.launch", {"query": "ship the release"})["id"]
            with Tmux(w.env, "top", size=size) as t:
                rows = t.until("1 pending", "deploy", re.compile("^    working on it$", re.M), "true later", "sessions 1 running",
                               "memories 1", "queue: 1", re.compile(r"\d calls/s"),
                               re.compile(r"%s +waits" % session[:8]), re.compile("memory [1-9]"))
                place = " .*" if size[0] >= 100 else ""
                compare(rows, [
                    r"koined \d+\.\d+\.\d+  up \d+s  healthy  \d+ connected",
                    r"tasks 1 running, 1 queued   sessions 1 running   memories 1",
                    r"rates \d+\.\d calls/s, \d\.\d tokens/s   memory \d+ MB   cost today \$0\.00",
                    r"agents recall \(default\)",
                    "",
                    "1 pending",
                    r"> \w{8} \d+s +.*deploy +.*production.*",
                    "",
                    "running",
                    r"%s  waits     \d+s +%sship the release" % (session[:8], place),
                    r"    deploy .*production.*",
                    r"task-0000 running   \d+s +%secho first; echo working on it; .*" % place,
                    "    working on it",
                    "",
                    "queue: 1",
                    r"task-0001 queued    \d+s +%strue later" % place,
                ])
                # It is answered here, and the agent goes on.
                t.key("a")
                t.until("no pending approvals", "approved by human", "sessions 0 running",
                        without=[session[:8]])
                wait_until(lambda: c.call("session.get", {"id": session})["status"] == "completed", "its end")
                w.touch("go")
                t.until("tasks 0 running, 1 queued", "nothing is running")
                t.leave()
            w("cancel", "1")


def test_what_a_session_costs_counts_today():
    script = """#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"x"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":1.25}'
"""
    with Folder() as place:
        with open(place("agent"), "w") as f:
            f.write(script)
        os.chmod(place("agent"), 0o755)
        with Daemon("--set", "session.program=" + place("agent")) as d, d.connect() as c:
            for _ in range(2):
                id = c.call("session.launch", {"query": "x"})["id"]
                wait_until(lambda: c.call("session.get", {"id": id})["status"] == "completed", "its end")
            with Tmux(of(d), "top") as t:
                t.until("cost today $2.50")
                t.leave()


def test_a_long_screen_says_what_it_leaves_out():
    with World() as w, w.daemon.connect() as c:
        ids = [ask(c, input={"command": "command %02d" % i}) for i in range(30)]
        for i in range(3):
            w.add("echo line %02d; %s" % (i, UNTIL % w.path("go")))
        for i in range(12):
            w.add("--delay", "1h", "true %02d" % i)
        with Tmux(w.env, "top") as t:
            rows = t.until("30 pending", re.compile(r"… and \d+ more"), "queue: 12", "tasks 3 running")
            listed = sum("command " in r for r in rows)
            check(listed >= 3, "%d approvals in\n%s", listed, "\n".join(rows))
            shown = sum(" running " in r and r.startswith("task-") for r in rows)
            hidden = [int(re.search(r"and (\d+) more", r).group(1)) for r in rows if "… and" in r]
            same((len(hidden), hidden[0] + shown), (2, 3), "what runs (%s)" % "\n".join(rows))
            check(any(re.fullmatch("task-0003 queued .* true 00", r) for r in rows), "the next one of %r", rows)
            # The list follows who goes down it.
            t.key("End")
            t.until(re.compile("> %s .*command 29" % short(ids[-1])))
            t.resize(200, 50)
            t.until("30 pending", "> " + short(ids[-1]), re.compile("\n%s\\Z" % re.escape(KEYS)))
            t.leave()
        w.touch("go")


# ---- answering ----


def test_approvals_are_answered_there():
    with Daemon() as d, d.connect() as c:
        command = " ".join("word%03d" % i for i in range(60))
        one, two, three = (ask(c, input={"command": text}) for text in (command, "two", "three"))
        with Tmux(of(d), "top") as t:
            rows = t.until("3 pending", "> " + short(one), "  " + short(three))
            row = next(r for r in rows if short(one) in r)
            check(row.endswith("…") and len(row) == 80, "cut without a mark: %r", row)
            t.key("v")
            rows = t.until("tool       Bash", "word059", "q back")
            all = "".join(rows)
            check("command: " + command in all, "%r", all)
            # Decided from the view, with a comment.
            t.type("d")
            t.until("Why?")
            t.type("no, not thís")
            t.until("Why? no, not thís")
            t.key("Enter")
            t.until("2 pending", "> " + short(two), "denied by human: no, not thís")
            same(c.call("approval.get", {"id": one})["comment"], "no, not thís", "comment")
            # What is answered elsewhere goes by itself, and nothing else is selected for it.
            c.call("approval.decide", {"id": two, "decision": "approve"})
            t.until("1 pending", "Bash was approved by human", without=["> " + short(three)])
            t.key("a")
            t.until("no request selected")
            same(status(c, three), "pending", "still")
            t.key("j")
            t.until("> " + short(three))
            t.key("a")
            t.until("no pending approvals")
            until(c, three, "approved")
            t.leave()


def test_what_has_just_come_is_not_approved_by_a_key_meant_for_another():
    """Neither by a key that is pressed twice, nor by one that is held. Whoever is slow has had time to look."""
    with Daemon() as d, d.connect() as c:
        ids = [ask(c, input={"command": "command %d" % n}) for n in range(20)]
        with Tmux(of(d), "top", size=(80, 50)) as t:
            t.until("20 pending", "> " + short(ids[0]))
            for one, two in zip(ids[::2], ids[1::2]):
                before = time.monotonic()
                t.type("a")
                t.until("> " + short(two))
                t.type("a")
                took = wait_until(lambda n=two: status(c, n) != "pending" and time.monotonic() - before or
                                  "this request just arrived" in "\n".join(t.rows()), "the second key's end")
                same(status(c, one), "approved", "the first")
                if took is not True:
                    check(took >= 0.4, "approved %f s after the one before it was", took)
                    continue
                # Once somebody has chosen it, it counts.
                same(status(c, two), "pending", "the second")
                t.type("k")
                t.until("> " + short(two), without=["request just arrived"])
                t.type("a")
                until(c, two, "approved")
                break
            t.leave()


def test_it_goes_on_when_koined_restarts():
    with World() as w:
        with Tmux(w.env, "top") as t:
            t.until("healthy", "no pending approvals", "nothing is running")
            w.daemon.stop()
            t.until("lost connection to koined; reconnecting")
            w.daemon.start()
            w.daemon.wait_ready()
            with w.daemon.connect() as c:
                id = ask(c)
                w.add("echo again; " + UNTIL % w.path("go"))
                t.until("healthy", "> " + short(id), "task-0000 running", "again", without=["away"])
                t.type("ja")
                until(c, id, "approved")
            w.touch("go")
            t.until("nothing is running")
            t.leave()


# ---- any terminal ----


def test_it_follows_the_size():
    with Daemon() as d, d.connect() as c:
        id = ask(c, input={"command": "make"})
        with Tmux(of(d), "top", size=(200, 50)) as t:
            t.until("1 pending", "nothing is running", KEYS)
            for columns, rows in ((20, 5), (100, 12), (40, 3), (10, 2), (80, 24)):
                t.resize(columns, rows)
                keys = KEYS if columns >= len(KEYS) else KEYS[:columns - 1] + "…"
                seen = t.until(re.compile("^%s$" % re.escape(keys), re.M))
                same((len(seen), seen[-1]), (rows, keys), "the last row")
                check(all(len(r) <= columns for r in seen), "%r", seen)
            t.until("koined ", "> " + short(id), "nothing is running")
            t.leave()


def test_what_others_write_is_shown_and_steers_nothing():
    shown = "a\\x1b]0;owned\\x07\\x1b[2J\\u202e\\u200b\\u061cb漢字e\u0301\U0001f469"
    with World() as w, w.daemon.connect() as c:
        with open(w.path("text"), "w") as f:
            f.write("begin " + HOSTILE + " end\n")
        ask(c, "Ba\u202esh", {"command": HOSTILE + " end"}, agent="x\033[2J")
        c.call("task.add", {"prompt": "cat %s; %s # %s end" % (w.path("text"), UNTIL % w.path("go"), HOSTILE),
                            "project": ""})
        for program, term in ((KOINE, None), (KOINE, "unknown-terminal"), (STATIC, None)):
            if not program:
                continue
            with Tmux(w.env, "top", size=(200, 50), program=program, term=term) as t:
                t.until("begin " + shown + " end", shown + " end", "Ba\\u202esh", "x\\x1b[2J")
                t.leave()
        w.touch("go")


def drawn(rows):
    """Without what differs from one look to the next: ages, rates, memory, and how wide they are. None: only a
    part of it is there yet."""
    for number, rest in re.findall(r"echo (\d+) (.*)", "\n".join(rows)):
        if not rest.endswith("…") and rest.count("x") != 3 * int(number):
            return None
    if not any(re.match("> .* echo 4 ", r) for r in rows):
        return None
    return [re.sub(r"\d+", "0", re.sub(r" +(\d+[smhd])+ +", " AGE ", r)) for r in rows[5:]]


def test_it_is_the_same_without_ncurses():
    with World("--set", "session.program=" + AGENT) as w, w.daemon.connect() as c:
        for i in range(40):
            ask(c, input={"command": "echo %d 漢字 e\u0301 %s" % (i, "x" * 3 * i)})
        w.add("--delay", "1h", "true later")
        first = None
        for program, term in ((KOINE, None), (KOINE, "unknown-terminal"), (STATIC, None)):
            if not program:
                continue
            with Tmux(w.env, "top", size=(90, 30), program=program, term=term) as t:
                t.until("40 pending", "queue: 1", re.compile("memory [1-9]"))
                t.type("jjjjkj")
                seen = wait_until(lambda t=t: drawn(t.rows()), "the whole screen")
                first = first or seen
                wait_until(lambda t=t: drawn(t.rows()) == first, "%r instead of %r" % (first, seen))
                t.key("v")
                t.until("q back", "echo 4")
                t.key("q")
                t.until("40 pending")
                t.leave()
        w("cancel", "0")


def test_hidden_characters_are_seen_in_the_other_views_too():
    with Daemon() as d, d.connect() as c:
        for name, char in list(HIDDEN.items())[:12]:
            ask(c, "Bash", {"command": "l%ss end of %s" % (char, name)})
        with Tmux(of(d), "approvals", "-w", size=(120, 24)) as t:
            t.until("12 pending", *("l%ss end of %s" % (escape_of(char), name)
                                 for name, char in list(HIDDEN.items())[:12]))
            t.leave()


def test_the_other_views_on_both_sizes():
    """koine approval watch and koine task watch: each row, and a mark wherever something is cut."""
    long = " ".join("word%03d" % i for i in range(60))
    for columns, rows in SIZES:
        with World() as w, w.daemon.connect() as c:
            ids = [ask(c, input={"command": text}) for text in ("make", long)]
            with Tmux(w.env, "approvals", "-w", size=(columns, rows)) as t:
                seen = t.until("2 pending", short(ids[1]), KEYS)
                compare(seen, [
                    "2 pending",
                    r"> %s \d+s +.*Bash +make" % short(ids[0]),
                    r"  %s \d+s +.*Bash +word000 .*…" % short(ids[1]),
                ])
                same(len(seen[2]), columns, "the cut row")
                t.key("j")
                t.key("v")
                all = "".join(t.until("tool       Bash", "word059", "q back"))
                check("command: " + long in all, "%r", all)
                t.key("q")
                t.until("2 pending")
                t.leave()
            w.add("-g", "night", "echo first; echo working on it; " + UNTIL % w.path("go"))
            w.add("--after", "0", "true " + long)
            with Tmux(w.env, "task", "watch", size=(columns, rows)) as t:
                seen = t.until("1 running", "1 queued", re.compile("^    working on it$", re.M), "after task-0000")
                compare(seen[:-1] + [KEYS], [
                    "1 running  1 queued  0 completed  0 failed  0 cancelled",
                    "",
                    r"task-0000 running   \d+s +night +echo first; echo working on it; .*",
                    "    working on it",
                    r"task-0001 queued    \d+s +true word000 .*…",
                    "    after task-0000",
                ])
                same((seen[-1], len(seen[4])), ("q quit", columns), "the last row, the cut one")
                w.touch("go")
                t.until("2 completed")
                t.leave()


def test_a_stopped_view_gives_the_terminal_back():
    with Daemon() as d, d.connect() as c:
        with Tmux(of(d), "-c", "PS1='% '; export PS1; exec bash --norc --noprofile -i", program="sh") as t:
            t.until("%")
            t.type("%s top\n" % KOINE)
            t.until("healthy", KEYS)
            t.key("C-z")
            t.until("Stopped", without=[KEYS])
            id = ask(c)
            t.type("fg\n")
            t.until("healthy", "> " + short(id), KEYS)
            t.key("q")
            t.until("Stopped", without=[KEYS])
            t.type("stty -a; echo done\n")
            t.until(re.compile(" icanon .* echo ", re.S), "done")


def test_it_needs_a_terminal_and_a_daemon():
    with Daemon() as d:
        done = subprocess.run([KOINE, "top"], env=of(d), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE, check=False)
        same((done.returncode, done.stderr), (64, b"koine: top requires a terminal; use koine status instead\n"),
             "without a terminal")
        d.stop()
        with Tmux(of(d), "top") as t:
            t.until("koined is not running: no answer at", "status 69")


if __name__ == "__main__":
    main(globals())
