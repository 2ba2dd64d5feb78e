#!/usr/bin/env python3
"""
Sessions that said more than an answer holds: the last of it comes, and is told to be cut; whoever
wants all of it reads pages. They are put into the store's file while nobody has it open.
"""
import contextlib
import json
import os
import sqlite3
import subprocess
import time

from harness import KOINE, PATIENCE, Client, Daemon, Folder, check, clean_environment, main, note, \
    only_in_a_file, peak_rss, request, rss, same

MESSAGE, RAW = 0, 4
ANSWER = 16 << 20


class Long:
    """A daemon over a store that has had no sessions; fill(db) puts some in."""

    def __init__(self, fill, *args):
        self.fill = fill
        self.args = args

    def __enter__(self):
        only_in_a_file("it fills the store")
        with contextlib.ExitStack() as stack:
            self.root = stack.enter_context(Folder()).path
            with Daemon(root=self.root):
                pass
            with contextlib.closing(sqlite3.connect(os.path.join(self.root, "koine.db"))) as db:
                self.fill(db)
                db.commit()
            self.daemon = stack.enter_context(Daemon(*self.args, root=self.root))
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def hld(self, **params):
        with Client(self.daemon.address("unix", "hld")) as c:
            answer = c.call_text(request("getConversation", params))
        check(len(answer) <= ANSWER, "an answer of %d bytes", len(answer))
        return json.loads(answer)["result"]

    def log(self, *args, **popen):
        env = dict(clean_environment(), KOINE_SOCKET=os.path.join(self.root, "koine.sock"))
        return subprocess.Popen([KOINE, "session", "log", *args], env=env, stdout=subprocess.PIPE,
                                **popen)


def session(db, id, parent=None, agent_session="claude"):
    now = int(time.time() * 1000)
    return db.execute(
        "INSERT INTO session (id, run, status, archived, created_ms, active_ms, ended_ms, cost_usd,"
        " input_tokens, output_tokens, duration_ms, turns, parent, agent_session, runner,"
        " working_dir, summary) VALUES (?, ?, 4, 0, ?, ?, ?, 0, 0, 0, 0, 1, ?, ?, 'claude', '/', '')",
        (id, "run-" + id, now, now, now, parent, agent_session)).lastrowid


def say(db, seq, contents, agent_session="claude", type=MESSAGE):
    """contents: an iterable of texts."""
    db.executemany(
        "INSERT INTO session_event (session, sequence, type, created_ms, completed, approval,"
        " agent_session, role, content) VALUES (?, ?, ?, 1, 0, 0, ?, 'assistant', ?)",
        ((seq, i, type, agent_session, text.encode()) for i, text in enumerate(contents, 1)))


def numbered(n, size=0):
    return (("line %d" % i).ljust(size, ".") for i in range(1, n + 1))


def numbers(events):
    return [int(e["content"].split(".")[0].split()[1]) for e in events]


def last_of(answer, n):
    """They are the last of n, in order, and more than nothing; how many."""
    got = numbers(answer["events"])
    same(got, list(range(n + 1 - len(got), n + 1)), "the last, in order")
    check(len(got) > 0, "nothing")
    return len(got)


# ---- hld ----


def test_a_conversation_over_the_limit_is_its_last_events_and_is_told_to_be_cut():
    def fill(db):
        say(db, session(db, "long"), numbered(3001, 60000))

    with Long(fill) as w:
        for params in ({"session_id": "long"}, {"claude_session_id": "claude"}):
            answer = w.hld(**params)
            n = last_of(answer, 3001)
            check(1000 <= n < 3001, "%d events", n)
            same(answer.get("truncated"), True, "told to be cut")
            same(answer["events"][0]["truncated"], True, "a text")


def test_as_many_events_come_as_there_is_room_for():
    def fill(db):
        say(db, session(db, "long"), numbered(3001))

    for size in (16, 64, 256):
        with Long(fill, "--set", "limits.reply_bytes=%dk" % size) as w:
            answer = w.hld(session_id="long")
            n = last_of(answer, 3001)
            same(answer.get("truncated"), True, "told to be cut")
            one = len(json.dumps(answer["events"][-1], separators=(",", ":"))) + 1
            room = (size << 10) - 1024 - (size << 10) // 64
            check(n * one > room - one, "%d events of %d bytes in %d KiB", n, one, size)


def test_what_fits_is_whole_and_not_told_to_be_cut():
    def fill(db):
        say(db, session(db, "long"), numbered(20000))
        say(db, session(db, "short", agent_session="s"), numbered(3), agent_session="s")

    with Long(fill) as w:
        for id, n in (("long", 20000), ("short", 3)):
            answer = w.hld(session_id=id)
            same(last_of(answer, n), n, "events")
            same(list(answer), ["events"], "members")


def test_150000_small_events_are_read_without_the_memory_for_all_of_them():
    def fill(db):
        say(db, session(db, "long"), numbered(150000))

    with Long(fill) as w:
        before = rss(w.daemon.pid)
        for params in ({"session_id": "long"}, {"claude_session_id": "claude"}):
            answer = w.hld(**params)
            check(last_of(answer, 150000) > 50000, "%d events", len(answer["events"]))
            same(answer.get("truncated"), True, "told to be cut")
        more = peak_rss(w.daemon.pid) - before
        note("%d MiB more for the last events of 150,000" % (more >> 20))
        check(more < 4 * ANSWER, "%d bytes more", more)
        shown = 0
        with w.log("long") as log:
            for i, line in enumerate(log.stdout, 1):
                check(line == b"line %d\n" % i, "line %d is %r", i, line)
                shown = i
                if i == 100000:
                    note("koine session log: %d MiB" % (peak_rss(log.pid) >> 20))
                    check(peak_rss(log.pid) < 64 << 20, "koine has %d bytes", peak_rss(log.pid))
        same((log.returncode, shown), (0, 150000), "the log")


def test_lines_that_were_not_understood_cost_a_conversation_nothing():
    def fill(db):
        seq = session(db, "odd")
        say(db, seq, numbered(5))
        say(db, seq, numbered(100000), type=RAW)

    with Long(fill) as w:
        same(numbers(w.hld(session_id="odd")["events"]), [1, 2, 3, 4, 5])
        with w.daemon.connect() as c:
            page = c.call("session.events", {"id": "odd", "newest": True, "limit": 2})
            same((numbers(page["events"]), page["more"]), ([4, 5], True), "the last")


def test_a_chain_of_many_sessions_is_read_from_its_end():
    def fill(db):
        for i in range(1200):
            seq = session(db, "s%d" % i, parent="s%d" % (i - 1) if i else None)
            say(db, seq, ("line %d" % (3 * i + j) for j in (1, 2, 3)))

    with Long(fill) as w, w.daemon.connect() as c:
        answer = w.hld(session_id="s1199")
        same(last_of(answer, 3600), 3000, "of 1000 sessions")
        same(answer.get("truncated"), True, "told to be cut")
        page = c.call("session.events", {"id": "s1199", "chain": True, "newest": True, "limit": 10})
        same(numbers(page["events"]), list(range(3591, 3601)), "the last")
        page = c.call("session.events", {"id": "s1199", "chain": True, "after": page["first"] - 2,
                                         "limit": 4})
        same(numbers(page["events"]), [3590, 3591, 3592, 3593], "from there on")
        for args, cut in ((), True), (("--last", "9999"), True), (("--last", "10"), False):
            with w.log("--chain", *args, "s1199", stderr=subprocess.PIPE) as log:
                shown = log.stdout.read().splitlines()
                told = log.stderr.read()
            same((shown[-1], len(shown)), (b"line 3600", 3000 if cut else 10), "the log")
            same(told.count(b"too many earlier sessions"), cut, "told once")
        same(w.hld(session_id="s5"), {"events": w.hld(session_id="s5")["events"]}, "a short one")
        same(last_of(w.hld(session_id="s5"), 18), 18, "all of it")


# ---- pages ----


def pages(c, newest, id, **more):
    """All events, page by page, in either direction."""
    out, at = [], 0
    while True:
        where = {"newest": True, "before": at} if newest else {"after": at}
        page = c.call("session.events", dict(id=id, **where, **more))
        same((page["first"], page["last"]), (page["events"][0]["id"], page["events"][-1]["id"]), "ids")
        out = page["events"] + out if newest else out + page["events"]
        if not page["more"]:
            return numbers(out)
        at = page["first" if newest else "last"]


def test_pages_go_in_both_directions():
    def fill(db):
        one, two = session(db, "one"), session(db, "two", parent="one")
        say(db, one, numbered(700))
        say(db, one, ["odd"], type=RAW)
        say(db, two, ("line %d" % i for i in range(701, 1001)))
        say(db, session(db, "large"), numbered(20, 300000))
        session(db, "mute")

    with Long(fill) as w, w.daemon.connect() as c:
        for newest in (False, True):
            same(pages(c, newest, "one", limit=7), list(range(1, 701)), "one")
            same(pages(c, newest, "two", limit=7), list(range(701, 1001)), "two")
            same(pages(c, newest, "two", limit=150, chain=True), list(range(1, 1001)), "the chain")
            same(pages(c, newest, "large"), list(range(1, 21)), "large ones")
            page = c.call("session.events", {"id": "mute", "after": 5, "before": 9, "newest": newest})
            at = 9 if newest else 5
            same(page, {"events": [], "more": False, "first": at, "last": at}, "nothing")
        page = c.call("session.events", {"id": "one", "after": 10, "before": 14})
        same([e["id"] for e in page["events"]], [11, 12, 13], "between")
        answer = json.loads(c.call_text(request("session.events", {"id": "one", "before": -1})))
        same(answer["error"]["data"], {"field": "before"}, "a wrong one")


# ---- koine session log ----


def test_the_log_begins_where_it_is_told_to():
    def fill(db):
        say(db, session(db, "one"), numbered(2500))
        say(db, session(db, "two", parent="one"), ["line 2501", "line 2502"])

    with Long(fill) as w:
        for n, args in ((1, ()), (2, ()), (3, ()), (3, ("--chain",)), (2000, ("--chain",)),
                        (9999, ("--chain",))):
            with w.log("--last", str(n), *args, "two") as log:
                shown = log.stdout.read().splitlines()
            first = max(2501 if not args else 1, 2503 - n)
            same((log.wait(PATIENCE), shown),
                 (0, [b"line %d" % i for i in range(first, 2503)]), "the last %d" % n)
        with w.log("--last", "0", "two", stderr=subprocess.DEVNULL) as log:
            log.stdout.read()
        same(log.returncode, 64, "none")


if __name__ == "__main__":
    main(globals(), plain=(
        "150000_small_events_are_read_without_the_memory_for_all_of_them",))
