"""The page in a real Chromium, with what is too long, what pretends to be something else, and other pages."""
import contextlib
import json
import os
import re
import socket
import sqlite3

from harness import MIB, SERVER, Skip, check, main, same
from page_world import EVIL, PageWorld
from test_approvals_screen import HIDDEN
from test_notify import Hooked, sets


def test_what_is_long_or_evil_harms_nobody():
    """A diff of a megabyte, lines of 10 MiB, and markup and escapes in every field that takes a text."""
    old = "".join("line %d of the old one\n" % n for n in range(18000))
    with PageWorld("--set", "approval.agents_decide=yes") as w, w.daemon.connect() as c:
        for tool, given in (("Edit", {"file_path": EVIL, "old_string": old, "new_string": old.replace("old", "new")}),
                            (EVIL, {EVIL: EVIL, "command": EVIL})):
            c.call("approval.create", {"tool": tool, "input": given})
        long = [c.call("task.add", {"prompt": "head -c %d /dev/zero | tr '\\0' %s" % (10 * MIB, what),
                                    "group": "<b>group</b>"})["id"] for what in ("x", "'<'")]
        for id in long:
            c.call("task.wait", {"id": id})
        c.call("task.add", {"prompt": "printf '%%s' '%s'; exit 1" % EVIL, "label": "<i>label</i>\u202e",
                            "agent": EVIL, "metadata": {EVIL: EVIL}})
        c.call("task.add", {"prompt": EVIL, "stash": True, "group": "<img src=x>"})
        c.call("memory.add", {"content": EVIL, "source": EVIL, "metadata": {EVIL: EVIL}})
        c.call("session.launch", {"query": EVIL, "title": EVIL})
        c.call("agent.note", {"what": "tool", "agent": "<b>a</b>", "session_id": EVIL, "tool": EVIL, "text": EVIL})
        found = w.browse("hostile", {"KOINE_LONG": json.dumps(long)})
        check(found["diff"]["nodes"] < 5000 and found["diff"]["text"] < 200000, "%r", found)
        check(max(found["output"]) < 300000, "%r", found)
        same((found["evil"], found["escapes"]), (0, 0), "nothing of it is read")


class Twice(dict):
    """An object as json writes it, with names that stand there twice."""

    def __init__(self, *pairs):
        super().__init__(pairs)
        self.pairs = pairs

    def items(self):
        return list(self.pairs)


# What is asked, and what must be seen of it.
TRICKS = [
    ({"command": "ls", "cmd": "rm -rf /"}, ["ls", "cmd: ", "rm -rf /"]),
    ({"command": ["rm", "-rf", "a b", "it's"]}, ["rm -rf 'a b' 'it'\\''s'"]),
    ({"command": "ls", "file_path": "/etc/shadow", "run_in_background": True},
     ["file_path: ", "/etc/shadow", "run_in_background: true"]),
    ({"file_path": "/a/one", "path": "/b/two", "old_string": "x\ny\nz\n", "new_string": "x\n1\n2\nz\n",
      "edits": [{"old_string": "third", "new_string": "fourth", "replace_all": True}]},
     ["/a/one", "path: ", "/b/two", "edits: ", "third", "fourth", "replace_all: true"]),
    ({"filePath": "/c/three", "edits": [{"oldString": "five", "newString": "six", "replaceAll": True}]},
     ["/c/three", "five", "six", "replaceAll: true"]),
    ({"file_path": "/d/four", "content": "text", "mode": "0777", "path": {"deep": {"er": ["down", "there"]}}},
     ["/d/four", "writes 4 B", "mode: ", '"0777"', "deep: ", "down", "there"]),
    ({"msg": "a question", "secret": "another"}, ["a question", "secret: ", "another"]),
    # A browser would keep the last of two, and round a number.
    (Twice(("command", "rm -rf ~"), ("command", "ls")), ['"command":"rm -rf ~"', '"command":"ls"', "Exact text of the input"]),
    ({"command": "ls", "deep": [Twice(("a", "one\u202e"), ("b", 2), ("A", "three"))]},
     ['"command":"ls"', '"a":"one\u27e8U+202E\u27e9"', '"A":"three"', "Exact text of the input"]),
    ({"pay": 12345678901234567891}, ["12345678901234567891", "Exact text of the input"]),
]


def test_all_that_is_asked_is_shown():
    with PageWorld("--set", "approval.agents_decide=yes") as w, w.daemon.connect() as c:
        asked = TRICKS + [({"command": "l%ss" % char, "k%sy" % char: "v%sw" % char, "file_path": "/x%sy" % char}, [])
                          for char in HIDDEN.values()]
        for given, _ in asked[:len(TRICKS)]:
            c.call("approval.create", {"tool": "Bash", "agent": "claude", "input": given})
        for (given, _), char in zip(asked[len(TRICKS):], HIDDEN.values()):
            c.call("approval.create", {"tool": "B%ssh" % char, "agent": "cl%sde" % char, "origin": "/o%sg" % char,
                                       "session_id": "s%ss" % char, "input": given})
        big = c.call("approval.create", {"tool": "Write", "input": {"file_path": "/big", "content": "x" * 400000}})["id"]
        found = w.browse("shown", {"KOINE_CARDS": str(len(asked) + 1), "KOINE_BIG": big})
        for text, (given, wanted) in zip(found["cards"], asked):
            for words in wanted:
                check(words in text, "%r is not in %r", words, text)
        for text, (name, char) in zip(found["cards"][len(TRICKS):], HIDDEN.items()):
            shown = chr(0x2400 + ord(char)) if char < " " else "\u27e8U+%04X\u27e9" % ord(char)
            check(char not in text and "l%ss" % shown in text, "%s: %r", name, text)
            for words in ("cl%sde", "B%ssh", "Allow B%ssh for", "/o%sg", "session s%ss"):
                check(words % shown in text, "%s: %r is not in %r", name, words % shown, text)
            shown = shown if char > " " else json.dumps(char)[1:-1]
            check(all(w % (shown,) in text for w in ("v%sw",)), "%s: %r", name, text)
        same(found["diff"], ["y", "1", "2"], "on a phone the old lines stand above the new ones")
        same((found["chosen"], found["waits"]), ("Write", "pending"), "what was not read yet")
        same(c.call("approval.get", {"id": big})["status"], "approved", "what was")


def test_nothing_hides_and_nothing_is_decided_by_accident():
    below = "ls" + "\n" * 300 + "rm -rf ~"
    with PageWorld("--set", "approval.agents_decide=yes") as w, w.daemon.connect() as c:
        for given in ({"command": "make"}, {"command": "make again"}, {"command": below}, {"msg": "why?", "more": {"deep": below}},
                      {"file_path": "/big", "content": "x" * 400000}):
            c.call("approval.create", {"tool": "Bash", "agent": "claude", "input": given})
        found = w.browse("traps")
        same(found["scrolling"], [[False, False, True, True, True]] * 2, "boxes that scroll, and say so")
        same(found["quick"], [1, 0], "cards that are chosen, and those that a key in the same moment decides")
        same(found["held"], [4, 0], "cards, and those being decided, while a key is held")
        same([a["status"] for a in c.call("approval.list", {"status": "any"})["approvals"]].count("approved"), 2, "approved")


def test_a_page_of_another_origin_can_do_nothing():
    """In a browser that was let in, and that sends our cookie to every port of this machine."""
    with Hooked() as server, PageWorld(*sets("home", kind="webhook", url=server.url), "--set",
                                       "listen.page=on") as w, w.daemon.connect() as c:
        w.ask("Bash", {"command": "ls"}, c)
        found = w.browse("foreign", {"KOINE_ANSWER": json.loads(server.arrived(1))["approval.approve_url"]})
        same((found["heard"], found["taken"]), (0, []), "what was taken, or told")
        check(found["cookie"], "our cookie did not come along: %r", found)
        refused = re.search(r'koine_http_requests_refused_total\{dialect="page",reason="origin"\} (\d+)',
                            c.call("daemon.metrics")["text"])
        check(refused and int(refused.group(1)) >= 10, "refused: %r", refused)
        same(c.call("memory.list"), [], "what was changed")
        same(c.call("approval.list")["pending"], 1, "what waits")


def test_what_was_left_at_our_port_sees_no_link_and_is_not_used():
    """Another user listened there while koined was away, and left workers and cached files."""
    ports = []
    for _ in range(2):
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
            ports.append(s.getsockname()[1])
    evil = {"KOINE_EVIL": json.dumps(dict(zip(("port", "collector"), ports)))}
    with PageWorld("--listen", "page=http:127.0.0.1:%d" % ports[0], "--listen", "koine=on") as w:
        w.daemon.stop()
        same(w.browse("prepare", evil, "http://127.0.0.1:%d/" % ports[0]), {"workers": 2}, "what is left there")
        w.daemon.start()
        w.daemon.wait_ready()
        found = w.browse("prepared", evil)
        same(found["first"], [], "what the worker saw of the link")
        same((found["title"], found["worker"], found["used"]), ("evil", True, ["/used?403"]), "at its own name")
        same((found["called"], found["poisoned"]), (401, False), "what it could do")
        same(found["workers"], 0, "workers, once koined has answered there")


def test_a_card_that_has_just_moved_or_come_takes_no_click():
    with PageWorld("--set", "approval.agents_decide=yes") as w, w.daemon.connect() as c:
        for given in ("one", "two"):
            c.call("approval.create", {"tool": "Bash", "input": {"command": given}})
        found = w.browse("moved")
        same((found["hit"], found["busy"], found["waits"]), ("Approve", 0, 1), "the one that moved")
        same(found["left"], 0, "a click that came later")
        same(found["fresh"], 0, "the one that came")


TALKER = """#!/bin/sh
printf '{"type":"system","subtype":"init","session_id":"shell-%%s"}\\n' $$
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%%s"}]}}\\n' "$1"; }
say begun
until [ -e %s ]; do sleep 0.05; done
i=0; while [ $i -lt 2500 ]; do i=$((i + 1)); say "line $i"; done
printf '{"type":"result","subtype":"success","is_error":false,"result":"ended"}\\n'
"""
MANY = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO session_event (session, sequence, type, created_ms, completed, approval, role, content)
    SELECT seq, 100 + i, 0, created_ms, 1, 0, 'assistant', CAST('words ' || i AS BLOB) FROM n, session WHERE id = ?"""


def test_a_session_without_end():
    """200,000 events of one that has ended, and 2,500 of one that runs: the page has the last of them."""
    if SERVER:
        raise Skip("its rows are put into a file")
    with PageWorld() as w:
        with open(w("talker"), "w", encoding="utf-8") as f:
            f.write(TALKER % w("go"))
        os.chmod(w("talker"), 0o755)
        with w.daemon.connect() as c:
            long = c.call("session.launch", {"query": '{"tool_name":"x","tool_input":{}}'})["id"]
        w.daemon.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(w.daemon.root, "koine.db"))) as db, db:
            db.execute(MANY, (long,))
        w.daemon.args += ["--set", "session.program=" + w("talker")]
        w.daemon.start()
        w.daemon.wait_ready()
        with w.daemon.connect() as c:
            lively = c.call("session.launch", {"query": "talk"})["id"]
        found = w.browse("endless", {"KOINE_SESSIONS": json.dumps({"long": long, "lively": lively, "go": w("go")})})
        check(found["first"][0] <= 200 and found["first"][1] < 2000, "%r", found)
        check(found["second"] <= 400 and found["followed"] <= 1000 and found["end"] < 5, "%r", found)


if __name__ == "__main__":
    main(globals())
