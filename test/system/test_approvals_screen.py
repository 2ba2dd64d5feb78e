#!/usr/bin/env python3
"""
What a person sees of an approval before it is decided: in lists, in full, on a terminal of any width
and on stderr of koine hook. Nothing of what is asked for can be hidden.
"""
import json
import re
import subprocess
import time

from harness import Daemon, PATIENCE, check, main, same
from test_approvals_cli import ask, koine, of, short
from test_chat_cli import KOINE, Terminal
from test_task_cli import resize
from vt import Screen

# Of each kind that a terminal shows nothing of, or that turns what stands beside it around.
HIDDEN = {
    "tag": "\U000e0041", "zero width space": "\u200b", "joiner": "\u200d", "override": "\u202e",
    "isolate": "\u2066", "left-to-right mark": "\u200e", "Arabic letter mark": "\u061c",
    "soft hyphen": "\u00ad", "variation selector": "\ufe0f", "another one": "\U000e0100",
    "word joiner": "\u2060", "byte order mark": "\ufeff", "Hangul filler": "\u3164",
    "half-width filler": "\uffa0", "Khmer vowel": "\u17b4", "Mongolian separator": "\u180e",
    "grapheme joiner": "\u034f", "shorthand": "\U0001bca0", "music": "\U0001d173",
    "interlinear": "\ufff9", "no-break space": "\u00a0", "Braille blank": "\u2800",
    "line separator": "\u2028", "next line": "\u0085", "not assigned": "\U0001ffff",
    "private": "\ue000", "tab's friend": "\v", "carriage return": "\r", "bell": "\a",
}


def escape_of(char):
    c = ord(char)
    if c < 0xa0:
        return "\\x%02x" % c
    return "\\u%04x" % c if c < 0x10000 else "\\u{%x}" % c


def ask_text(c, tool, input):
    """As ask, with an input that no dict can be."""
    text = '{"jsonrpc":"2.0","id":1,"method":"approval.create","params":{"tool":"%s","input":%s}}'
    return json.loads(c.call_text((text % (tool, input)).encode()))["result"]["id"]


class Watched:
    """koine on a terminal whose screen is looked at."""

    def __init__(self, env, *args, columns, rows=24):
        self.t = Terminal(env, *args, columns=columns)
        self.size(rows, columns)

    def __enter__(self):
        self.t.__enter__()
        return self

    def __exit__(self, *exc):
        self.t.__exit__(*exc)

    def size(self, rows, columns):
        self.rows, self.columns = rows, columns
        resize(self.t, rows, columns)

    def screen(self):
        s = Screen(self.rows, self.columns)
        s.feed(self.t.all.decode(errors="ignore"))
        return s.text()

    def until(self, what):
        """The screen, as soon as it is so."""
        end = time.monotonic() + PATIENCE
        while True:
            text = self.screen()
            if what(text):
                return text
            check(self.t.more(end), "it ended: %r", text)

    def leave(self):
        self.t.type("q")
        self.t.leave()


# ---- a full row keeps its last character ----


def test_a_full_row_keeps_its_last_character():
    with Daemon() as d, d.connect() as c:
        id = ask(c, input={"command": "x"})
        with Watched(of(d), "approvals", "-w", columns=61) as w:
            row = next(r for r in w.until(lambda s: any("Bash" in r for r in s)) if "Bash" in r)
            room = 61 - row.index(" x") - 1
            command = "".join(chr(ord("a") + i % 26) for i in range(room))
            ask(c, input={"command": command})
            ask(c, input={"command": command + "!"})
            # A row that is half drawn is none yet.
            text = w.until(lambda s: any("3 pending" in r for r in s) and any("Bash" in r and r.endswith("…") for r in s))
            same([r[-room:] for r in text if "abc" in r], [command, command[:-1] + "…"],
                 "what fits is whole, what does not is marked")
            # Twice drawn, it is still there; and so in the view of all.
            w.t.type("jj")
            text = w.until(lambda s: any(r.startswith("> ") and r.endswith("…") for r in s))
            check(any(r.endswith(command) for r in text), "%r", text)
            w.t.type("v")
            text = w.until(lambda s: any(r.startswith("command: ") for r in s))
            at = next(i for i, r in enumerate(text) if r.startswith("command: "))
            same("".join(text[at:at + 2]), "command: " + command + "!", "all of it")
            w.t.type("q")
            w.until(lambda s: any("3 pending" in r for r in s))
            w.leave()
        check(id, "made")


def test_the_last_row_is_whole_too():
    with Daemon() as d, d.connect() as c:
        ask(c, "which", {"msg": "red or blue?"}, kind="human_contact")
        with Watched(of(d), "approvals", "-w", columns=40) as w:
            text = w.until(lambda s: s[0] == "1 pending" and s[-1].startswith("q quit"))
            same(text[-1], "q quit  a approve  d deny  v view  r re…"[:40], "keys")
            w.t.type("d")
            w.until(lambda s: s[-1].startswith("this is a question"))
            w.t.type("r" + "abcdefghij" * 5)
            text = w.until(lambda s: s[-1].endswith("abcdefghij"))
            check(text[-1].startswith("Answer: "), "%r", text[-1])
            w.t.type("\033")
            w.until(lambda s: s[-1].startswith("q quit"))
            w.leave()


def test_a_narrow_terminal_hides_nothing():
    command = "a\u202eb\U000e0041c漢字\U0001f469d" + "é" * 3
    shown = "command:a\\u202eb\\u{e0041}c漢字\U0001f469dééé"
    with Daemon() as d, d.connect() as c:
        ask(c, input={"command": command})
        with Watched(of(d), "approvals", "-w", columns=80, rows=60) as w:
            w.until(lambda s: any("Bash" in r for r in s))
            w.t.type("v")
            w.until(lambda s: any("command" in r for r in s))
            for columns in (12, 7, 4, 3, 2):
                w.t.all = b""
                w.size(200, columns)
                w.until(lambda s: shown in "".join(s).replace(" ", ""))
            w.size(24, 80)
            w.t.type("q")
            w.until(lambda s: any("1 pending" in r for r in s))
            w.leave()


def test_the_view_says_that_there_is_more():
    with Daemon() as d, d.connect() as c:
        ask(c, input={"command": "\n".join("line %d" % i for i in range(40))})
        with Watched(of(d), "approvals", "-w", columns=60, rows=20) as w:
            w.until(lambda s: any("Bash" in r for r in s))
            w.t.type("v")
            w.until(lambda s: re.match(r"… \d+ more rows  q back", s[-1]))
            w.t.type("\033[F")
            text = w.until(lambda s: s[-1].startswith("q back"))
            check("  line 39" in text[-2], "%r", text)
            w.t.type("q")
            w.until(lambda s: any("1 pending" in r for r in s))
            w.leave()


def test_tasks_keep_their_last_character_too():
    with Daemon() as d, d.connect() as c:
        prompt = "".join(chr(ord("a") + i % 26) for i in range(200))
        c.call("task.add", {"prompt": "x", "delay": 3600000})
        with Watched(of(d), "task", "watch", columns=60) as w:
            row = next(r for r in w.until(lambda s: any("queued" in r and "task-" in r for r in s))
                       if "task-" in r)
            room = 60 - row.rindex("x")
            c.call("task.add", {"prompt": prompt[:room], "delay": 3600000})
            c.call("task.add", {"prompt": prompt[:room + 1], "delay": 3600000})
            text = w.until(lambda s: sum("task-" in r for r in s) == 3)
            same({r[-room:] for r in text if "abc" in r}, {prompt[:room], prompt[:room - 1] + "…"},
                 "rows")
            w.leave()


# ---- what is listed is what runs ----


def listed(env, id):
    return next(line for line in koine(env, "approvals").out.splitlines() if line.startswith(short(id)))


def test_line_ends_are_shown():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        id = ask(c, input={"command": "git status # show\nrm -rf ~"})
        check(listed(env, id).endswith("Bash  git status # show⏎rm -rf ~"), "%r", listed(env, id))
        with Watched(env, "approvals", "-w", columns=90) as w:
            w.until(lambda s: any("git status # show⏎rm -rf ~" in r for r in s))
            w.leave()


def test_the_gist_is_by_tool_and_says_what_else_there_is():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        for tool, input, gist in (
                ("write", {"path": ".ssh/authorized_keys", "content": "k", "command": "ls -la"},
                 ".ssh/authorized_keys  +2 more: content, command"),
                ("Write", {"command": "ls -la", "file_path": "/home/u/.ssh/authorized_keys"},
                 "/home/u/.ssh/authorized_keys  +1 more: command"),
                ("Bash", {"command": "make", "description": "ls"}, "make  +1 more: description"),
                ("Bash", {"command": "make"}, "make"),
                ("Bash", {"command": ["make", "x"], "n": 1}, '{"command":["make","x"],"n":1}'),
                ("Edit", {"file_path": "/a", "old_string": "a", "new_string": "b"},
                 "/a  +2 more: old_string, new_string"),
                ("mcp__x__run", {"command": "ls", "script": "rm -rf ~"},
                 '{"command":"ls","script":"rm -rf ~"}'),
                ("mcp__x__run", {"script": "rm -rf ~"}, '{"script":"rm -rf ~"}'),
                ("mcp__x__run", {"command": "rm -rf ~"}, "rm -rf ~"),
                ("Bash", {"command": "ls", "a\u202eb\nc": 1}, "ls  +1 more: a\\u202eb⏎c"),
        ):
            row = listed(env, ask(c, tool, input))
            check(re.search(" %s +%s$" % (re.escape(tool), re.escape(gist)), row), "%r: %r", gist, row)
        twice = ask_text(c, "Bash", '{"command":"rm -rf ~","command":"ls"}')
        check('{"command":"rm -rf ~","command":"ls"}' in listed(env, twice), "%r", listed(env, twice))
        full = koine(env, "approvals", twice).out
        check("command: rm -rf ~\ncommand: ls\n" in full, "%r", full)


def test_all_of_one_leaves_nothing_out():
    with Daemon() as d, d.connect() as c:
        env = of(d)

        def full(tool, text):
            return koine(env, "approvals", ask_text(c, tool, text)).out

        out = full("Edit", '{"old_string":"one","old_string":"two","new_string":"three"}')
        check("one" in out and "two" in out and "three" in out, "%r", out)
        out = full("MultiEdit", '{"edits":[{"old_string":"a","new_string":"b","hook":"evil"}]}')
        check("evil" in out, "%r", out)
        out = full("Write", '{"file_path":"/a","content":"first","content":"second"}')
        check("first" in out and "second" in out, "%r", out)
        out = full("Write", '{"file_path":"/a","content":""}')
        check('content: ""' in out, "%r", out)
        out = full("Patch", '{"patch":"--- a\\nfile_path: /harmless\\n"}')
        check("\n  file_path: /harmless\n" in out, "%r", out)


def test_what_cannot_be_seen_is_escaped():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        for name, char in HIDDEN.items():
            shown = escape_of(char)
            id = ask(c, "Bash", {"command": "l%ss" % char, "k%sy" % char: "v%sw" % char},
                     agent="a%sb" % char, origin="/x%sy" % char)
            full = koine(env, "approvals", id).out
            for text in (listed(env, id), full):
                check(char not in text, "%s is in %r", name, text)
                for wanted in ("l%ss", "k%sy", "a%sb"):
                    check(wanted % shown in text, "%s: %r", name, text)
            check("v%sw" % shown in full and "/x%sy" % shown in full, "%s: %r", name, full)
            id = ask(c, "Ba%ssh" % char)
            check("Ba%ssh " % shown in listed(env, id), "%s: %r", name, listed(env, id))


def test_what_a_hook_says_is_escaped():
    tool = "Ba\u202e\U000e0041\u200b\033[2Jsh\nkoine: approved"
    with Daemon() as d, d.connect() as c:
        c.call("approval.grant", {"tool": "Ba*", "verdict": "deny", "comment": "no"})
        done = subprocess.run(
            [KOINE, "hook"], env=of(d), capture_output=True, check=True, timeout=PATIENCE,
            input=json.dumps({"hook_event_name": "PreToolUse", "tool_name": tool,
                              "tool_input": {"command": "x"}}).encode())
        err = done.stderr.decode()
        same(err, "koine: Ba\\u202e\\u{e0041}\\u200b\\x1b[2Jsh⏎koine: approved: denied\n", "stderr")


if __name__ == "__main__":
    main(globals())
