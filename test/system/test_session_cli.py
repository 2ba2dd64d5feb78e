#!/usr/bin/env python3
"""
koine session, with a real koined whose claude is session_agent.py: a query is what it does. And
the methods behind it, where a command line cannot go.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys

from harness import (KOINE, PATIENCE, SOURCE, Daemon, Folder, check, main, only_in_a_file, request,
                     same, wait_until)
from test_chat_cli import Done, Running, Terminal, of
from test_locked_store import locked

AGENT = os.path.join(SOURCE, "test", "system", "session_agent.py")
UNKNOWN = "00000000-0000-4000-8000-000000000000"


class World:
    """A daemon, a folder, and koine in it."""

    def __init__(self, *args, **opts):
        self.args = args
        self.opts = opts

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(Folder())
        self.daemon = self.stack.enter_context(
            Daemon("--set", "session.program=%s %s" % (sys.executable, AGENT), *self.args,
                   **self.opts))
        self.env = of(self.daemon)
        self.socket = os.path.join(self.daemon.root, "koine.sock")
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def touch(self, name):
        with open(self.folder(name), "w"):
            pass

    def koine(self, *args, stdin=b"", code=0):
        done = subprocess.run([KOINE, *args], input=stdin, capture_output=True, timeout=PATIENCE,
                              env=self.env, cwd=self.folder.path)
        result = Done(done.returncode, done.stdout, done.stderr)
        same(result.code, code, "exit code of %r (%r, %r)" % (args, result.out, result.err))
        return result

    def __call__(self, *args, **opts):
        return self.koine("session", *args, **opts)

    def json(self, *args, **opts):
        return json.loads(self("--json", *args, **opts).out)

    def run(self, *steps, options=()):
        """Runs it to its end; its id."""
        done = self("run", "-f", *options, "--", "\n".join(steps))
        return done.err.split()[2]

    def start(self, *steps, options=()):
        return self("run", *options, "--", "\n".join(steps)).out.strip()

    def until(self, id, status):
        wait_until(lambda: self.json("show", id)["status"] == status, "it is %s" % status)


def send(c, *args, **opts):
    c.send(request(*args, **opts) + b"\n")


# ---- following ----


def test_what_is_said_is_folded_and_followed_to_its_end():
    steps = ("say I look.", 'call Bash {"command": "ls -la"}', "result total 0", "call Odd", "say Done.")
    with World() as w:
        done = w("add", "-f", "--", "\n".join(steps))
        same(done.out.splitlines(),
             ["> " + s for s in steps] + ["I look.", "* Bash ls -la", "  = 7 bytes: total 0",
                                          "* Odd ", "Done."], "stdout")
        id = done.err.split()[2]
        same(done.err, "koine: session %s\n" % id, "stderr")
        same(w("log", id).out, done.out, "the log afterwards")
        same(w("log", "-f", id[:6]).out, done.out, "followed after its end")
        full = w("log", "--full", id).out
        check('"command": "ls -la"' in full and "\ntotal 0\n" in full, "%r", full)
        events = [json.loads(line) for line in w("log", "--json", id).out.splitlines()]
        same([e["event_type"] for e in events],
             ["message", "message", "tool_call", "tool_result", "tool_call", "message"], "types")
        same(events[2]["tool_input"], {"command": "ls -la"}, "input")
        same(events[3]["tool_result_for_id"], events[2]["tool_id"], "its result")


def test_the_exit_status_follows_the_session():
    with World() as w:
        done = w("add", "-f", "say a\nexit 3", code=1)
        check("koine: the session failed: " in done.err and "3" in done.err, "%r", done.err)
        done = w("add", "-f", "--dir", "/", "--json", "say a")
        same(json.loads(done.out.splitlines()[-1])["status"], "completed", "the last line")
        with Running(w.env, "session", "add", "-f", "say here\nhang") as r:
            r.expect("here")
            id = w.json("list")[0]["id"]
            same(w.json("cancel", id), {"id": id, "status": "completing"}, "interrupt")
            done = r.finish()
        same(done.code, 130, "interrupted")
        check("koine: the session was interrupted" in done.err, "%r", done.err)
        done = w("cancel", id, code=1)
        check("cannot interrupt session with status interrupted" in done.err, "%r", done.err)


def test_an_approval_is_told_with_the_way_to_decide_it():
    with World() as w:
        steps = "via koine %s\nask Bash {\"command\": \"make install\"}\nsay Done." % w.socket
        with Running(w.env, "session", "add", "-f", steps) as r:
            r.expect(" --comment TEXT\n")
            line = r.out.decode().splitlines()[-1]
            check(line.startswith("? Bash waits for approval: koine approve "), "%r", line)
            approval = line.split()[7].rstrip(",")
            shown = w("list").out.split("\n")[1].split()
            w.until(shown[0], "waiting_input")
            check(line in w("log", shown[0]).out, "not in the log")
            check(line in w("show", shown[0]).out, "not shown")
            w.koine("approve", approval)
            done = r.finish()
        same(done.code, 0, "exit code")
        lines = done.out.splitlines()
        check(any(x.startswith("* Bash make install") for x in lines), "%r", lines)
        same(lines.count(line), 1, "told once")
        same(lines[-3:], ["? Bash was approved by human", "  = 8 bytes: approved", "Done."], "after")


def test_an_approval_is_told_after_what_was_said_before_it():
    only_in_a_file("the disk is the server's")
    not_kept = "could not store sessions, retrying"
    with World(announced=[not_kept]) as w:
        steps = "say Here.\nwait %s\ncall Bash\nhang" % w.folder("go")
        with Running(w.env, "session", "add", "-f", steps) as r, w.daemon.connect() as c:
            r.expect("Here.\n")
            id = w.json("list")[0]["id"]
            with locked(w.daemon):
                w.touch("go")
                wait_until(lambda: not_kept.encode() in w.daemon.log(), "the write to fail")
            # Its call is tried again in a while. What is asked is in the store at once.
            send(c, "approval.request", {"session_id": id, "tool": "Bash", "input": {}})
            r.expect(" --comment TEXT\n")
            check(b"\n* Bash" in r.out.partition(b"? Bash waits")[0], "%r", r.out)


def test_a_question_is_told_with_the_way_to_answer_it():
    with World() as w:
        with Running(w.env, "session", "add", "-f", "question red or blue?") as r:
            r.expect(" TEXT\n")
            asked, way = r.out.decode().splitlines()[-2:]
            check(asked.endswith(" asks: red or blue?"), "%r", asked)
            check(way.startswith("  to answer:  koine respond "), "%r", way)
            w.koine("respond", way.split()[4], "blue")
            done = r.finish()
        same((done.code, "blue" in done.out.splitlines()[-1]), (0, True), "the answer")


def test_what_a_policy_denies_is_told():
    policy = ("--set", "policy.no.verdict=deny", "--set", "policy.no.comment=never")
    with World(*policy) as w:
        done = w("add", "-f", "--", "ask Bash\nsay Done.")
        check("? Bash was denied by policy:no: never\n" in done.out, "%r", done.out)


def test_none_and_long_ones_on_a_terminal():
    with World() as w:
        for command in ("list", "tree"):
            with Terminal(w.env, "session", command) as t:
                t.expect("no sessions (koine session add starts a session")
                t.leave()
        query = "say " + "long " * 20
        id = w.run(query)
        with Terminal(w.env, "session", "list", columns=200) as t:
            t.expect(query.strip())
            t.leave()
        check(query.strip() in w("list").out, "in a pipe, all of it")
        check("the query is empty" in w("add", "-", code=65).err, "nothing to do")
        w("continue", id, "", code=65)
        w("continue", id, code=64)


def test_ctrl_c_leaves_and_the_session_goes_on():
    with World() as w:
        with Terminal(w.env, "session", "add", "-f", "--color", "always",
                      "say here\nwait %s\nsay Done." % w.folder("go")) as t:
            t.expect("\x1b[1m> say here\x1b[0m")
            t.expect("\nhere")
            id = w.json("list")[0]["id"]
            t.type("\x03")
            t.expect("koine session log -f %s" % id[:8])
            t.expect("koine session cancel %s" % id[:8])
            t.leave(130)
        same(w.json("show", id)["status"], "running", "status")
        w.touch("go")
        check(w("log", "-f", id).out.endswith("here\nDone.\n"), "it went on")


def test_a_daemon_that_comes_back_is_waited_for():
    with World("--set", "limits.stop_time=0") as w, \
            Running(w.env, "session", "add", "-f", "say here\nhang") as r:
        r.expect("here\n")
        w.daemon.stop()
        w.daemon.start()
        w.daemon.wait_ready()
        done = r.finish()
    same(done.code, 1, "exit code")
    check(done.err.splitlines()[-3:] ==
          ["koine: lost connection to koined; reconnecting", "koine: reconnected to koined",
           "koine: the session failed: the daemon stopped while the session was active"],
          "%r", done.err)


# ---- the others ----


def test_sessions_are_found_named_and_put_away():
    with World() as w:
        first = w.run("tell cwd", options=("--title", "first \x1b[31mtitle", "--model", "opus"))
        check(json.dumps(w.folder.path) in w("log", first).out, "it runs where we stand")
        second = w("continue", first[:8], "-f", "say more").err.split()[2]
        third = w("continue", second, "say\x1b[31m red").out.strip()
        w.until(third, "completed")
        shown = w.json("show", third)
        same((shown["parent_session_id"], shown["model"], shown["working_dir"]),
             (second, "opus", w.folder.path), "inherited")
        check("\x1b" not in w("log", third).out, "a text steers the terminal")
        rows = [line.split() for line in w("list").out.splitlines()[1:]]
        same([r[0] for r in rows], [third[:8], second[:8], first[:8]], "the last active first")
        check("\x1b" not in w("list").out, "a title steers the terminal")

        w("rename", second, "the", "second")
        w("archive", third)
        same([s["id"] for s in w.json("list")], [second, first], "without the archived")
        same([s["id"] for s in w.json("list", "--all", "--state", "completed")],
             [third, second, first], "with it")
        tree = w("tree", second).out.splitlines()
        same([t[:tree[i].index("completed")].rstrip() for i, t in enumerate(tree)],
             [first[:8], "└─ " + second[:8], "   └─ " + third[:8]], "tree")
        check(tree[1].endswith("the second"), "%r", tree)
        same(len(w("tree").out.splitlines()), 2, "tree without the archived")
        w("unarchive", third)
        same(len(w.json("list")), 3, "back")
        check("more" in w("log", "--chain", third).out, "the chain")

        for command in ("show", "log", "cancel", "archive", "tree"):
            done = w(command, UNKNOWN, code=1)
            check("session not found: " + UNKNOWN in done.err, "%s: %r", command, done.err)
        for word, ours in (("stop", "cancel"), ("resume", "continue"), ("start", "add")):
            check("did you mean 'session %s'?" % ours in w(word, first, code=64).err, "%s", word)
        check("'task show'" in w.koine("task", "view", "1", code=64).err, "the same of tasks")
        done = w("add", "--dir", w.folder("nowhere"), "say a", code=66)
        check("nowhere" in done.err, "%r", done.err)


# ---- the methods ----


def test_pages_and_what_is_told_meet_without_a_gap():
    with World() as w, w.daemon.connect() as c:
        id = c.call("session.launch", {"query": "wait %s\nlines 300" % w.folder("go")})["id"]
        c.call("event.subscribe", {"session_id": id, "types": ["session.*"]})
        w.touch("go")
        seen, told, after, done = [], [], 0, False
        while True:
            send(c, "session.events", {"id": id[:9], "after": after, "limit": 7}, id=5)
            answer = None
            while answer is None:
                message = json.loads(c.read_line())
                if "id" in message:
                    answer = message["result"]
                else:
                    told.append(message["params"])
            seen += [e["id"] for e in answer["events"]]
            check(len(answer["events"]) <= 7, "too long a page")
            same(answer["last"], seen[-1] if seen else 0, "last")
            after = answer["last"]
            done = done or any(t["data"].get("new_status") == "completed" for t in told)
            if not answer["more"] and len(seen) >= 150:
                break
        while not done:
            message = json.loads(c.read_line())["params"]
            told.append(message)
            done = message["data"].get("new_status") == "completed"
        seen += [t["data"]["id"] for t in told
                 if t["type"] == "session.event" and t["data"]["id"] > after]
        same(len(seen), 301, "all that was said")
        same(seen, sorted(set(seen)), "in order, and once")
        whole = c.call("session.events", {"id": id, "limit": 1000})
        same([e["id"] for e in whole["events"]], seen, "the whole")
        same(whole["more"], False, "more")


def test_a_launch_that_cannot_be_names_its_session():
    with World(announced=["could not start session"]) as w, w.daemon.connect() as c:
        send(c, "session.launch", {"query": "say a", "working_dir": "/nowhere/at/all"})
        error = json.loads(c.read_line())["error"]
        same(error["code"], -32005, "code")
        check("/nowhere/at/all" in error["message"], "%r", error)
        same(c.call("session.get", {"id": error["data"]["session"]["id"]})["status"], "failed", "it")
        for method, params, field in (
                ("session.launch", {"query": "a", "max_turns": -1}, "max_turns"),
                ("session.launch", {"query": "a", "allowed_tools": [1]}, "allowed_tools"),
                ("session.launch", {"query": ""}, "query"),
                ("session.list", {"archived": "maybe"}, "archived"),
                ("session.list", {"status": "asleep"}, "status"),
                ("session.list", {"limit": 1001}, "limit"),
                ("session.events", {"id": "a", "after": -1}, "after"),
                ("session.rename", {"id": "a", "title": "x" * 1001}, "title"),
                ("session.paths", {"limit": 0}, "limit")):
            send(c, method, params)
            error = json.loads(c.read_line())["error"]
            same((error["code"], error.get("data")), (-32602, {"field": field}), method)
        c.call("session.launch", {"query": "say a", "working_dir": w.folder.path, "mcp_config": {
            "mcpServers": {"m": {"command": "true", "env": {"KEY": "secret"}}}}})
        session = c.call("session.list")["sessions"][0]
        text = json.dumps(c.call("session.get", {"id": session["id"]}))
        check("KEY" in text and "secret" not in text, "%s", text)
        same(c.call("session.paths")["paths"][0]["path"], w.folder.path, "paths")


def test_a_text_that_is_too_long_for_a_page_is_cut():
    with World() as w, w.daemon.connect() as c:
        id = w.run("lines 2 600000", "lines 1 3000000", "say Done.")
        page = c.call("session.events", {"id": id})
        same([e.get("truncated") for e in page["events"]], [None, None, None], "a page of a MiB")
        same(page["more"], True, "more")
        events = []
        while page["more"]:
            page = c.call("session.events", {"id": id, "after": page["last"]})
            events += page["events"]
        same([e.get("truncated") for e in events], [True, None], "the long one")
        same(len(events[0]["content"]), 1 << 20, "as much of it as there may be")


def ask(c, id):
    send(c, "approval.request", {"id": id, "tool": "Bash", "input": {"command": "ls"}}, id=9)


def test_who_was_cut_off_asks_again_and_gets_the_answer():
    with World() as w, w.daemon.connect() as human:
        def pending():
            return [a["id"] for a in human.call("approval.list")["approvals"]]

        with w.daemon.connect() as c:
            ask(c, "one")
            wait_until(lambda: pending() == ["one"], "it is in the inbox")
        wait_until(lambda: w.daemon.status()["calls_in_flight"] == 0, "nobody waits for it")
        same(pending(), ["one"], "it stays")
        w.daemon.clients.clear()
        human.close()
        w.daemon.stop()
        w.daemon.start()
        w.daemon.wait_ready()
        human = w.daemon.connect()
        with w.daemon.connect() as c:
            ask(c, "one")
            wait_until(lambda: w.daemon.status()["calls_in_flight"] == 1, "it waits")
            same(pending(), ["one"], "the same one")
            told = human.call("approval.decide", {"id": "on", "decision": "deny", "comment": "no"})
            same((told["status"], told["decided_by"]), ("denied", "human"), "decided")
            same(json.loads(c.read_line())["result"], told, "who waited")
            ask(c, "one")
            same(json.loads(c.read_line())["result"], told, "asked once more")
        send(human, "approval.decide", {"id": "one", "decision": "approve"})
        error = json.loads(human.read_line())["error"]
        same((error["code"], error["data"]["approval"]), (-32002, told), "the second decision")


def test_who_waits_does_not_hold_up_the_end_of_the_daemon():
    with World() as w:
        c = w.daemon.connect()
        ask(c, "one")
        wait_until(lambda: w.daemon.status()["calls_in_flight"] == 1, "it waits")
        w.daemon.signal(signal.SIGTERM)
        same(json.loads(c.read_line())["error"]["code"], -32008, "ask again")


if __name__ == "__main__":
    main(globals())
