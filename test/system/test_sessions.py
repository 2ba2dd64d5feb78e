#!/usr/bin/env python3
"""Sessions that say what nobody expects, and are changed, continued and killed while they run."""
import json
import os
import subprocess

from harness import (KOINE, PATIENCE, SOURCE, Client, Daemon, Folder, check, clean_environment, main, request, same,
                     wait_until)

AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
ENDS = ("completed", "failed", "interrupted")


def served(*settings, **more):
    """What still runs is not waited for."""
    words = ["session.program=" + AGENT, "limits.stop_time=0", *settings]
    return Daemon(*(w for s in words for w in ("--set", s)), **more)


def launch(c, query, **more):
    return c.call("session.launch", dict(query=query, **more))["id"]


def get(c, session):
    return c.call("session.get", {"id": session})


def ended(c, session):
    return wait_until(lambda: (lambda s: s if s["status"] in ENDS else None)(get(c, session)),
                      "the end of " + session)


def said(c, session, **more):
    return c.call("session.events", dict(id=session, **more))["events"]


def has_said(c, session, text):
    wait_until(lambda: any(e.get("content") == text for e in said(c, session)), repr(text))


# ---- changed while it runs ----


def test_what_people_change_of_a_session_that_runs_stays_changed():
    with Folder() as f, served() as d, d.connect() as c:
        s = launch(c, "say one\nwait %s\nsay two" % f("go"), title="first")
        has_said(c, s, "one")
        c.call("session.archive", {"id": s})
        c.call("session.rename", {"id": s, "title": "second"})
        with open(f("go"), "w"):
            pass
        got = ended(c, s)
        same((got["status"], got["archived"], got["title"]), ("completed", True, "second"))


# ---- before a stop ----


def test_a_drain_waits_for_sessions_and_starts_none():
    with Folder() as f, served() as d, d.connect() as c:
        runs = launch(c, "say one\nwait %s" % f("go"))
        has_said(c, runs, "one")
        old = ended(c, launch(c, "say two"))["id"]
        with d.connect() as k:
            same(k.call("daemon.drain", {"time": 1}), {"tasks": 0, "sessions": 1, "rules": 0}, "what still runs")
            for method, params in (("session.launch", {"query": "say three"}),
                                   ("session.continue", {"id": old, "query": "say four"})):
                error = json.loads(c.call_text(request(method, params)))["error"]
                same((error["code"], error["message"]),
                     (-32005, "koined is draining and accepts no new sessions"), method)
            k.send(request("daemon.drain") + b"\n")
            with open(f("go"), "w"):
                pass
            same(json.loads(k.read_line())["result"], {"tasks": 0, "sessions": 0, "rules": 0}, "when none runs")
        wait_until(lambda: not c.call("daemon.status")["tasks"]["draining"], "the end of it")
        same(ended(c, launch(c, "say five"))["status"], "completed", "later")


def test_a_stop_says_how_many_sessions_run():
    with Folder() as f, served() as d, d.connect() as c:
        has_said(c, launch(c, "say one\nwait %s" % f("go")), "one")
        done = subprocess.run([KOINE, "-s", d.socket_path, "daemon", "stop"], capture_output=True,
                              timeout=PATIENCE, env=clean_environment())
        same((done.returncode, done.stdout, done.stderr), (0, b"koined has stopped\n", b"1 session is running\n"))
        same(d.wait_exit(), 0, "exit status")


# ---- who runs it ----

NOBODY = ("no agent is configured: install claude, or name one in koine.conf "
          "([session] runner, [chat] agent)")


def test_a_session_that_nobody_can_run_fails():
    with Daemon(env={"PATH": "/usr/bin:/bin"}, announced=["could not start session"]) as d, \
            d.connect() as c:
        answer = json.loads(c.call_text(request("session.launch", {"query": "hello"})))
        check(NOBODY in answer["error"]["message"], "%r", answer)
        found = c.call("session.list", {})["sessions"]
        same([(s["status"], s["error"]) for s in found], [("failed", NOBODY)], "what is kept")
        named = ended(c, launch(c, "hello", agent="recall"))
        same((named["status"], named["agent"]), ("completed", "recall"), "who names recall")
    with Daemon("--set", "session.runner=recall", env={"PATH": "/usr/bin:/bin"}) as d, \
            d.connect() as c:
        first = ended(c, launch(c, "hello"))
        same((first["status"], first["agent"]), ("completed", "recall"), "by the settings")
        second = c.call("session.continue", {"id": first["id"], "query": "and now"})["id"]
        same(ended(c, second)["agent"], "recall", "who goes on with it")


# ---- what it says ----


def block(**members):
    return {"type": "assistant", "message": {"role": "assistant", "content": [members]}}


LONG = "x" * 300000

ODD = (
    block(type="tool_use", id="a", name=LONG, input={}),
    block(type="tool_use", id=LONG, name="a", input={}),
    block(type="tool_result", tool_use_id=LONG, content=LONG),
    block(type="tool_use", id="a\0b", name="c\0d", input={"e\0": "f\0"}),
    {"type": "user", "message": {"role": LONG, "content": "x"}},
    {"type": "assistant", "session_id": LONG, "message": {"content": "x"}},
    {"type": "system", "subtype": LONG},
    {"type": LONG},
)


def test_long_names_and_odd_texts_end_nobody():
    with served() as d, d.connect() as c, Client(d.address("unix", "hld")) as h:
        for line in ODD:
            s = launch(c, "raw " + json.dumps(line))
            same(ended(c, s)["status"], "completed", "after %.80r" % line)
            check(said(c, s, raw=True), "it has said nothing: %.80r", line)
            h.call("getConversation", {"session_id": s})


def test_of_several_results_the_last_counts():
    with served() as d, d.connect() as c:
        bad = {"type": "result", "is_error": True, "error": "oh", "result": ""}
        got = ended(c, launch(c, "raw %s\nsay fine" % json.dumps(bad)))
        same((got["status"], got["error"], got["result"]), ("completed", None, "fine"))


# ---- more than an answer holds ----


def test_a_conversation_that_is_too_long_for_an_answer_is_shown_with_less_of_each_text():
    with served("limits.reply_bytes=64k") as d, d.connect() as c:
        s = launch(c, "lines 30 4000\ncall Edit %s\nsay <end>" % json.dumps({"text": "<" * 9000}))
        ended(c, s)
        with Client(d.address("unix", "hld")) as h:
            events = h.call("getConversation", {"session_id": s})["events"]
        same([e["sequence"] for e in events], list(range(1, 34)), "sequences")
        same(events[5]["truncated"], True, "a long one")
        check(events[5]["content"].startswith("line 5..."), "%r", events[5])
        check("tool_input_json" not in events[31] and events[31]["truncated"], "%r", events[31])
        same((events[32]["content"], "truncated" in events[32]), ("<end>", False), "a short one")


def test_many_events_are_shown_as_far_as_they_fit_the_last_of_them():
    with served("limits.reply_bytes=16k") as d, d.connect() as c:
        s = launch(c, "lines 300")
        ended(c, s)
        with Client(d.address("unix", "hld")) as h:
            events = h.call("getConversation", {"session_id": s})["events"]
        check(20 < len(events) < 300, "%d events", len(events))
        same(events[-1]["content"], "line 300", "the last")


def test_lists_of_much_are_shown_as_far_as_they_fit():
    with served("limits.reply_bytes=64k") as d, d.connect() as c:
        for i in range(6):
            launch(c, "say %s\nsay %d" % ("<" * 9000, i))
            c.call("approval.create", {"id": "a%d" % i, "tool": "Edit", "input": {"a": "&" * 3000}})
        with Client(d.address("unix", "hld")) as h:
            same(len(h.call("listSessions")["sessions"]), 6, "sessions")
            check("truncated" not in h.call("listSessions"), "all of them are there")
            same(len(h.call("getSessionLeaves")["sessions"]), 6, "leaves")
            answer = h.call("fetchApprovals")
            same(answer.get("truncated"), True, "told to be cut")
            shown = [a["id"] for a in answer["approvals"]]
            check(1 <= len(shown) < 6, "%r", shown)
            same(shown, ["a%d" % i for i in range(len(shown))], "the oldest")


def test_lists_of_the_command_line_say_what_their_limit_hides():
    with served() as d, d.connect() as c:
        for i in range(3):
            ended(c, launch(c, "say %d" % i))
            c.call("approval.create", {"tool": "Edit"})
        for command in ("session", "list"), ("approvals",):
            for args, rows, said in ((("-n", "2"), 2, "showing the first 2 (-n N for more)\n"), (("-n", "3"), 3, ""), ((), 3, ""),
                                     (("-n", "2", "--json"), 2, "")):
                done = subprocess.run([KOINE, "-s", d.socket_path, *command, *args], capture_output=True, check=True,
                                      timeout=PATIENCE, env=clean_environment())
                shown = done.stdout.decode()
                n = len(json.loads(shown)) if "--json" in args else shown.count("\n") - 1
                same((n, done.stderr.decode()), (rows, said), "%s %s" % (command, args))


def test_a_list_of_too_many_sessions_says_that_it_is_cut():
    with served("limits.reply_bytes=16k") as d, d.connect() as c:
        last = [launch(c, "say %d" % i) for i in range(40)][-1]
        ended(c, last)
        with Client(d.address("unix", "hld")) as h:
            answer = h.call("listSessions")
        check(10 < len(answer["sessions"]) < 40, "%d sessions", len(answer["sessions"]))
        same(answer.get("truncated"), True, "told to be cut")


if __name__ == "__main__":
    main(globals())
