#!/usr/bin/env python3
"""
koine approvals, approve, deny, respond, grants and ask with a real koined: in a pipe, and the live
list on a terminal of its own; and the methods that they call.
"""
import json
import os
import re
import signal
import termios
import uuid

from harness import Daemon, check, main, request, same, shared, wait_until
from test_chat_cli import Running, Terminal, koine, of
from test_task_cli import frame_with, resize

STEERING = "\033]0;owned\007\033[2J\u202e"


def ask(c, tool="Bash", input=None, **more):
    return c.call("approval.create", dict(more, tool=tool, input=input or {"command": "make"}))["id"]


def status(c, id):
    return c.call("approval.get", {"id": id})["status"]


def until(c, id, want):
    wait_until(lambda: status(c, id) == want, "%s to be %s" % (id, want))


def short(id):
    return id.replace("local-", "")[:8]


# ---- the methods ----


def refusal(c, method, params):
    return json.loads(c.call_text(request(method, params)))["error"]


def waiting(c, session, n):
    """So many requests of a session that wait for a decision."""
    return wait_until(lambda: (lambda found: found if len(found) == n else None)(
        c.call("approval.list", {"session_id": session})["approvals"]), "%d approvals" % n)


def test_request_is_answered_when_it_is_decided():
    with shared() as d, d.connect() as c, d.connect() as other:
        asked = {"kind": "function_call", "tool": "Bash", "input": {"command": "ls"}, "session_id": "s1", "run_id": "r1",
                 "agent": "claude", "origin": "/src", "tool_use_id": "t1"}
        c.send(request("approval.request", dict(asked, timeout=600), 1) + b"\n" +
               request("approval.request", {"tool": "Edit", "session_id": "s1"}, 2) + b"\n")
        # The second one is read when the first is answered.
        a, = waiting(other, "s1", 1)
        same({name: a[name] for name in asked}, asked, "what is shown")
        check(a["deadline"] and not a["decided_by"], "%r", a)
        decided = other.call("approval.decide", {"id": a["id"], "decision": "deny", "comment": "not now"})
        same((decided["status"], decided["comment"], decided["decided_by"]), ("denied", "not now", "human"), "decided")
        same(json.loads(c.read_line()), {"jsonrpc": "2.0", "result": decided, "id": 1}, "its answer")
        error = refusal(other, "approval.decide", {"id": a["id"], "decision": "approve"})
        same((error["code"], error["data"]["approval"]), (-32002, decided), "the second decision")
        waiting(other, "s1", 1)
        c.send(request("rpc.cancel", {"id": 2}, 3) + b"\n")
        same(json.loads(c.read_line())["error"], {"code": -32800, "message": "Cancelled"}, "what was cancelled")
        same(json.loads(c.read_line())["result"], {"cancelled": True}, "the cancelling")


def test_call_that_waits_ends_with_its_connection():
    with shared() as d, d.connect() as c:
        with d.connect() as gone:
            gone.send(request("approval.request", {"tool": "A", "session_id": "s2"}) + b"\n")
            a, = waiting(c, "s2", 1)
        wait_until(lambda: d.status()["calls_in_flight"] == 0, "the call to end")
        # What asked still runs, and may ask again.
        same(status(c, a["id"]), "pending", "what it asked")
        c.call("approval.withdraw", {"id": a["id"]})


def test_stop_ends_calls_that_wait_with_a_code_of_its_own():
    with Daemon() as d, d.connect() as c, d.connect() as other:
        c.send(request("approval.request", {"tool": "A", "session_id": "s2"}) + b"\n")
        waiting(other, "s2", 1)
        d.signal(signal.SIGTERM)
        same(json.loads(c.read_line())["error"], {"code": -32008, "message": "koined is stopping"}, "what a stop says")


SECONDS = "timeout must be between 0 and 316224000 seconds, not "
BAD = (
    ("request", {}, "tool", "tool is required"),
    ("request", {"tool": "a", "kind": "x"}, "kind", "kind must be function_call or human_contact, not 'x'"),
    ("create", {"tool": "a", "timeout": -1}, "timeout", SECONDS + "-1"),
    ("create", {"tool": "a", "timeout": 1e300}, "timeout", SECONDS + "1e+300"),
    ("decide", {"id": "a", "decision": "maybe"}, "decision", "decision must be approve, deny or respond, not 'maybe'"),
    ("decide", {"id": "a", "decision": "respond"}, "comment", "comment is required: pass the answer as comment"),
    ("decide", {"id": "a", "decision": "respond", "comment": "b", "grant": {}}, "grant",
     "a question cannot have a grant"),
    ("decide", {"id": "a", "decision": "approve", "grant": {"scope": "world"}}, "grant",
     "grant.scope must be session or all, not 'world'"),
    ("decide", {"id": "a", "decision": "approve", "grant": {"scope": "all", "uses": 0}}, "grant",
     "grant.uses must be an integer greater than 0"),
    ("decide", {"id": "a", "decision": "approve", "grant": {"scope": "all", "for": "x"}}, "grant",
     "grant.for must be a number of seconds greater than 0"),
    ("decide", {"id": "a", "decision": "approve", "grant": {"scope": "all", "for": 1e300}}, "grant",
     "grant.for must be between 0 and 316224000 seconds, not 1e+300"),
    ("list", {"limit": 0}, "limit", "limit must be between 1 and 1000, not 0"),
    ("list", {"status": "resolved"}, "status",
     "status must be any, pending, approved, denied, responded, expired or superseded, not 'resolved'"),
    ("grant", {"tool": ""}, "tool", "tool must not be empty; use * for any tool"),
    ("grant", {"tool": "a", "verdict": "ask"}, "verdict", "verdict must be allow or deny, not 'ask'"),
    ("grant", {"tool": "a", "uses": -1}, "uses", "uses must be at least 0, not -1"),
)


def test_bad_parameters_are_named():
    with shared() as d, d.connect() as c:
        for method, params, field, words in BAD:
            same(refusal(c, "approval." + method, params),
                 {"code": -32602, "message": "Invalid params: " + words, "data": {"field": field}}, "%s %r" % (method, params))
        same(refusal(c, "approval.decide", {"id": "x", "decision": "approve"}),
             {"code": -32001, "message": "approval not found: x"}, "unknown")


def test_large_input_is_left_out_of_lists_alone():
    with shared() as d, d.connect() as c:
        input = {"k": "x" * 100000}
        id = ask(c, input=input, session_id="s3")
        a, = waiting(c, "s3", 1)
        same((a["input"], a["input_omitted"]), (None, True), "in a list")
        a = c.call("approval.get", {"id": short(id)})
        same((a["input"], "input_omitted" in a), (input, False), "alone")
        same(c.call("approval.withdraw", {"id": id})["status"], "superseded", "withdrawn")


def test_grants_come_and_go():
    with shared() as d, d.connect() as c:
        c.call("approval.decide", {"id": ask(c, session_id="s4"), "decision": "deny",
                                   "grant": {"scope": "session", "for": 60, "uses": 5}})
        by_decision, = c.call("approval.grants")["grants"]
        same((by_decision["verdict"], by_decision["session_id"], by_decision["uses"], bool(by_decision["expires_at"])),
             ("deny", "s4", 5, True), "by a decision")
        for n in range(17):
            c.call("approval.grant", {"tool": "Edit", "verdict": "allow"})
        rows = c.call("approval.grants")["grants"]
        row = dict(rows[-1], id=None, created_at=None)
        same(row, {"id": None, "verdict": "allow", "tool": "Edit", "pattern": None, "session_id": None, "agent": None,
                   "comment": None, "created_at": None, "expires_at": None, "uses": None}, "a grant")
        # Of 18 ids in hexadecimal two begin alike.
        begins = [g["id"][0] for g in rows]
        same(refusal(c, "approval.revoke", {"id": max(begins, key=begins.count)})["code"], -32002, "a beginning of several")
        same(refusal(c, "approval.revoke", {"id": "z"}), {"code": -32001, "message": "grant not found: z"}, "unknown")
        for g in rows:
            same(c.call("approval.revoke", {"id": g["id"]}), {"id": g["id"], "revoked": True}, "revoked")
        same(c.call("approval.grants")["grants"], [], "what is left")


# ---- a pipe ----


def test_what_waits_is_listed():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        done = koine(env, "approvals")
        same((done.out, done.err), ("", "no pending approvals\n"), "none")
        same(json.loads(koine(env, "approvals", "--json").out), [], "none as JSON")
        one = ask(c, agent="claude", input={"command": "rm -rf /tmp/x\nls" + STEERING})
        two = ask(c, "Edit", {"file_path": "/a.c", "old_string": "a", "new_string": "b"},
                  session_id="s2")
        three = ask(c, "Odd", {"n": 1})
        out = koine(env, "approvals").out
        check("\033" not in out and "\u202e" not in out, "%r", out)
        lines = out.splitlines()
        check(re.fullmatch(short(one) + r" +\d+s  claude  -        Bash  rm -rf /tmp/x⏎ls\\x1b.*", lines[1]),
              "%r", lines)
        check(re.fullmatch(short(two) + r" +\d+s  -       s2       Edit  /a.c  \+2 more: old_string, new_string",
                           lines[2]), "%r", lines)
        check(lines[3].endswith('Odd   {"n":1}'), "%r", lines)
        same([a["id"] for a in json.loads(koine(env, "approvals", "--json").out)],
             [one, two, three], "oldest first")
        same(len(koine(env, "approvals", "-n", "2").out.splitlines()), 3, "lines")
        koine(env, "approve", three)
        same(len(koine(env, "approvals").out.splitlines()), 3, "those that wait")
        check(re.search(short(three) + " +approved ", koine(env, "approvals", "--all").out), "all")
        koine(env, "approvals", "a", "b", code=64)


def test_all_of_one_and_an_edit_as_a_difference():
    with Daemon() as d, d.connect() as c:
        id = ask(c, "Edit", {"file_path": "/a.c", "old_string": "one\ntwo\n" + STEERING,
                             "new_string": "one\n2\n" + STEERING}, agent="claude", origin="/home/w")
        out = koine(of(d), "approvals", short(id)).out
        check("where      /home/w\n" in out and "tool       Edit\n" in out, "%r", out)
        check("file_path: /a.c\n  one\n- two\n+ 2\n  \\x1b]0;owned\\x07" in out, "%r", out)
        shown = koine(of(d), "approvals", id, "--color", "always").out
        check("\033[31m- two\033[0m\n\033[32m+ 2\033[0m\n" in shown, "%r", shown)
        same(json.loads(koine(of(d), "approvals", id, "--json").out)["id"], id, "as JSON")
        check("not found" in koine(of(d), "approvals", "nothing", code=1).err, "none")
        koine(of(d), "deny", id, "-c", "no")
        check(re.search(r"\ndecided    \d{4}-.*\ndecided by human\ncomment    no\n",
                        koine(of(d), "approvals", id).out), "how it ended")
        line = koine(of(d), "events", "--type", "approval.resolved").out
        check("decision=denied" in line and "run_id=" not in line, "%r", line)


def test_the_first_answer_counts():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        one, two, three = ask(c), ask(c), ask(c)
        same(koine(env, "approve", short(one), "--comment", "go").out, short(one) + " approved\n", "says")
        got = c.call("approval.get", {"id": one})
        same((got["status"], got["comment"], got["decided_by"]), ("approved", "go", "human"), "kept")
        late = koine(env, "deny", one, "-c", "too late", code=1)
        same(late.err, "koine: already decided: approved by human: go\n", "told")
        same(status(c, one), "approved", "still")
        check("requires --comment" in koine(env, "deny", two, code=64).err, "without a comment")
        same(status(c, two), "pending", "still")
        same(json.loads(koine(env, "deny", two, "-c", "no", "--json").out)["status"], "denied", "JSON")
        with Terminal(env, "deny", three) as t:
            t.expect("Why? ")
            t.line("not on a Friday")
            t.expect(short(three) + " denied")
            t.leave()
        same(c.call("approval.get", {"id": three})["comment"], "not on a Friday", "comment")
        check("not found" in koine(env, "approve", "nothing", code=1).err, "none")
        koine(env, "approve", code=64)
        koine(env, "approve", one, "--uses", "3", code=64)


def test_a_question_is_answered():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        one = ask(c, "which", {"msg": "red or blue?"}, kind="human_contact")
        two = ask(c, "which", {"msg": "red or blue?"}, kind="human_contact")
        check("red or blue?" in koine(env, "approvals").out, "the question")
        for words in (["approve", one], ["deny", one, "-c", "no"]):
            check("a question; answer it with koine respond" in koine(env, *words, code=1).err, "%r", words)
        other = koine(env, "respond", ask(c), "blue", code=1).err
        check("not a question; use koine approve or koine deny" in other, "%r", other)
        koine(env, "respond", one, "rather", "blue")
        same(c.call("approval.get", {"id": one})["comment"], "rather blue", "answer")
        koine(env, "respond", two, "-", stdin="grün".encode())
        same(c.call("approval.get", {"id": two})["comment"], "grün", "answer from stdin")
        koine(env, "respond", one, code=64)


def test_a_beginning_of_an_id_is_enough():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        session = c.call("session.launch", {"query": "hello", "agent": "recall"})["id"]
        one, two = ask(c, session_id=session), ask(c, session_id="another")
        for typed, id in ((session[:8], one), (session, one), ("another", two)):
            found = json.loads(koine(env, "approvals", "--all", "--session", typed, "--json").out)
            same([a["id"] for a in found], [id], "those of " + typed)
        check(" %s " % session[:8] in koine(env, "approvals", "--all").out, "whose it is")
        rule = ask(c, id="rule-%s" % uuid.uuid4())
        check("\n" + rule[5:13] + " " in koine(env, "approvals").out, "an id of a rule")
        same(koine(env, "deny", rule[5:13], "-c", "no").out, rule[5:13] + " denied\n", "says")
        same(status(c, rule), "denied", "a rule's")


def test_an_id_that_begins_another_is_refused_with_both_shown():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        one, two = ask(c, id="6f1c2b0e"), ask(c, id="6f1c2b0e-more")
        for words in (("approve",), ("deny", "-c", "no"), ("approvals",)):
            err = koine(env, words[0], "6f1c2b0e", *words[1:], code=1).err
            check("6f1c2b0e and 6f1c2b0e-more" in err, "%r", err)
        same((status(c, two), c.call("approval.get", {"id": one, "exact": True})["status"]),
             ("pending", "pending"), "nothing was decided")
        same(koine(env, "approve", "--exact", "6f1c2b0e").out, "6f1c2b0e approved\n", "by --exact")
        same(status(c, two), "pending", "the other one")
        # What is shown without its first word is no other one's whole id.
        made = ask(c)
        like = ask(c, id=short(made))
        same(koine(env, "approvals").out.count(short(made)), 2, "shown")
        err = koine(env, "approve", short(made), code=1).err
        check(like in err and made in err, "%r", err)
        same(koine(env, "approve", made).code, 0, "by its whole id")
        twin = ask(c)
        ask(c, id=twin.replace("local-", ""))
        check(twin in koine(env, "approvals").out, "what looks alike is shown whole")


def test_grants_are_shown_and_ended():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        koine(env, "approve", ask(c), "--grant", "always", "--for", "1h", "--uses", "2")
        again = ask(c)
        same(status(c, again), "approved", "the same again")
        grant, = json.loads(koine(env, "grants", "--json").out)
        same((grant["verdict"], grant["tool"], grant["uses"]), ("allow", "Bash", 1), "grant")
        check(re.search(r"(?m)^%s  allow +- +- +\d{4}-.* 1  Bash" % grant["id"][:8],
                        koine(env, "grants").out), "%r", koine(env, "grants").out)
        koine(env, "grant", "delete", grant["id"])
        same(json.loads(koine(env, "grants", "--json").out), [], "ended")
        same(status(c, ask(c)), "pending", "and asked again")
        koine(env, "grants", "end", code=64)


def test_lines_as_they_come():
    with Daemon() as d, d.connect() as c:
        one = ask(c)
        with Running(of(d), "approvals", "-w") as text, Running(of(d), "approvals", "-w", "--json") as k:
            text.expect(short(one) + " pending ")
            k.expect('"status":"pending"')
            two = ask(c, "Other", {"command": "two"})
            text.expect(short(two) + " pending    -      Other  two\n")
            c.call("approval.decide", {"id": one, "decision": "deny", "comment": "no"})
            text.expect(short(one) + " denied     -      Bash   make -- no\n")
            k.expect('"status":"denied"')
            rows = [json.loads(line) for line in k.out.decode().splitlines()]
            same([(r["id"], r["status"]) for r in rows],
                 [(one, "pending"), (two, "pending"), (one, "denied")], "objects")
            d.stop()
            d.start()
            d.wait_ready()
            with d.connect() as again:
                three = ask(again, "Later")
                text.expect(short(three) + " pending ")


# ---- the live list ----


def test_live_decisions():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        with Terminal(env, "approvals", "-w", columns=90) as t:
            frame_with(t, "no pending approvals", "a approve")
            one = ask(c, agent="claude", input={"command": "one" + STEERING})
            frame = frame_with(t, "1 pending", "> " + short(one), "claude", "one\\x1b]0;owned")
            check("\033]0;" not in frame and "\u202e" not in frame, "%r", frame)
            t.type("ja")
            frame_with(t, "no pending approvals", "approved by human")
            until(c, one, "approved")
            two, three = ask(c, input={"command": "two"}), ask(c, input={"command": "three"})
            frame_with(t, "2 pending", "> " + short(two), "  " + short(three))
            t.type("\033[B")
            frame_with(t, "> " + short(three))
            t.type("d")
            frame_with(t, "Why?")
            t.type("nö\x7fo, not thís")
            frame_with(t, "Why? no, not thís")
            t.type("\r")
            frame_with(t, "1 pending", "> " + short(two), "denied by human: no, not thís")
            same(c.call("approval.get", {"id": three})["comment"], "no, not thís", "comment")
            t.type("d\033")
            frame_with(t, "a approve")
            t.type("r")
            frame_with(t, "this is not a question")
            t.type("g")
            frame_with(t, "this request belongs to no session")
            same(status(c, two), "pending", "still")
            four = ask(c, "which", {"msg": "red or blue?"}, kind="human_contact")
            frame_with(t, "2 pending", "red or blue?")
            t.type("ja")
            frame_with(t, "this is a question")
            t.type("rblue\r")
            frame_with(t, "responded by human: blue")
            until(c, four, "responded")
            t.type("q")
            rest = t.leave()
        check("\033[?1049l" in rest and "\033[?25h" in rest, "the terminal is as it was: %r", rest)


def test_live_view_of_an_edit():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        env.pop("NO_COLOR")
        id = ask(c, "Edit", {"file_path": "/a.c", "old_string": "one\ntwo", "new_string": "one\n2",
                             "more": "\n".join("line %d" % i for i in range(100))}, session_id="s")
        with Terminal(env, "approvals", "-w", columns=90) as t:
            frame_with(t, "> " + short(id))
            t.type("v")
            frame_with(t, "tool       Edit", "- two", "+ 2", "q back")
            check(b"\033[31m- two" in t.all and b"\033[32m+ 2" in t.all, "%r", t.all)
            t.type("\033[F")
            frame_with(t, "line 99")
            resize(t, 8, 20)
            frame_with(t, "line 80", "…")
            t.type("\033[F")
            frame = frame_with(t, "line 99")
            same([len(r) <= 20 for r in frame.split("\n")], [True] * 8, "rows")
            t.type("k" * 3)
            # Whole, with its last row: it is drawn row by row.
            frame = frame_with(t, "line 90", "3 more rows")
            check("line 97" not in frame, "%r", frame)
            t.type("\033")
            frame_with(t, "1 pending")
            t.type("\ra")
            frame_with(t, "no pending approvals")
            until(c, id, "approved")
            t.type("\x03")
            t.leave()


def test_what_somebody_else_decides_is_not_selected_any_more():
    with Daemon() as d, d.connect() as c:
        one, two = ask(c, input={"command": "one"}), ask(c, input={"command": "two"})
        with Terminal(of(d), "approvals", "-w", columns=90) as t:
            frame_with(t, "> " + short(one))
            c.call("approval.decide", {"id": one, "decision": "deny", "comment": "no"})
            frame = frame_with(t, "1 pending", "Bash was denied by human: no")
            check("> " + short(two) not in frame, "%r", frame)
            t.type("a")
            frame_with(t, "no request selected")
            same(status(c, two), "pending", "still")
            t.type("j")
            frame_with(t, "> " + short(two))
            # It goes while its comment is typed.
            t.type("dwhy")
            frame_with(t, "Why? why")
            c.call("approval.decide", {"id": two, "decision": "approve"})
            frame_with(t, "no pending approvals", "Why? why")
            t.type("\r")
            frame_with(t, "already decided: approved by human")
            same(status(c, two), "approved", "the first counts")
            t.type("q")
            t.leave()


def test_what_is_pasted_decides_nothing():
    with Daemon() as d, d.connect() as c:
        one, two, three = (ask(c, input={"command": n}) for n in ("one", "two", "three"))
        with Terminal(of(d), "approvals", "-w", columns=90) as t:
            frame_with(t, "> " + short(one))
            t.type("\033[200~a\ng\rd\033[201~")
            t.type("d\033[200~no,\nabs\033[Aolutely\x07\033[201~ not")
            frame_with(t, "Why? no, absolutely not")
            t.type("\r")
            until(c, one, "denied")
            frame_with(t, "> " + short(two))
            # A terminal that does not mark it: what follows the first line is forgotten.
            t.type("dno\raaaa")
            until(c, two, "denied")
            frame_with(t, "> " + short(three))
            t.type("q")
            t.leave()
            check(b"\033[?2004l" in t.all, "%r", t.all[-200:])
        same(status(c, three), "pending", "the last")
        same(c.call("approval.get", {"id": one})["comment"], "no, absolutely not", "comment")


def test_live_outlives_the_daemon_and_gives_the_terminal_back():
    with Daemon() as d:
        with Terminal(of(d), "approvals", "-w") as t:
            frame_with(t, "no pending approvals")
            check(not termios.tcgetattr(t.fd)[3] & termios.ICANON, "keys without Enter")
            d.stop()
            frame_with(t, "lost connection to koined")
            d.start()
            d.wait_ready()
            with d.connect() as c:
                id = ask(c)
                frame_with(t, "1 pending", "> " + short(id))
            os.kill(t.pid, signal.SIGTERM)
            check("\033[?1049l" in t.leave(), "the other screen is gone")
        d.stop()
        with Terminal(of(d), "approvals", "-w") as t:
            check("koined is not running: no answer at" in t.leave(code=69), "told")


# ---- koine ask ----


def asked(c):
    """The one question that waits."""
    def one():
        rows = c.call("approval.list")["approvals"]
        return rows[0] if len(rows) == 1 else None

    return wait_until(one, "the question")


def test_ask_exits_as_it_was_decided():
    with Daemon() as d, d.connect() as c:
        for decision, code in (("approve", 0), ("deny", 1)):
            with Running(of(d), "ask", "Deploy to", "production?") as k:
                row = asked(c)
                same((row["kind"], row["tool"], row["input"]),
                     ("function_call", "ask", {"question": "Deploy to production?"}), "what is asked")
                check("ask   Deploy to production?" in koine(of(d), "approvals").out, "the list")
                koine(of(d), decision, short(row["id"]), "--comment", "as I say" + STEERING)
                done = k.finish()
                same((done.code, done.out), (code, ""), decision)
                check("by human: as I say" in done.err and "\033" not in done.err, "%r", done.err)
        with Running(of(d), "ask", "-") as k:
            k.process.stdin.write(b"Really?\n")
            k.process.stdin.close()
            k.process.stdin = open(os.devnull, "rb")
            row = asked(c)
            same(row["input"], {"question": "Really?"}, "from stdin")
            koine(of(d), "approve", short(row["id"]))
            same((k.finish().code, k.out), (0, b""), "approved without a comment")
        koine(of(d), "ask", code=64)
        koine(of(d), "ask", "  ", code=65)


def test_ask_without_an_answer_is_neither_yes_nor_no():
    with Daemon() as d, d.connect() as c:
        same(koine(of(d), "ask", "x", "--timeout", "1", code=75).out, "", "late")
        same(c.call("approval.list", {"status": "expired"})["pending"], 0, "those that wait")
        with Running(of(d), "ask", "x") as k:
            c.call("approval.withdraw", {"id": asked(c)["id"]})
            same(k.finish().code, 75, "withdrawn")
        env = of(d)
        d.stop()
        check("koined" in koine(env, "ask", "x", code=69).err, "no daemon")
    with Daemon("--set", "policy.no.verdict=deny") as d:
        check("denied by policy:no" in koine(of(d), "ask", "x", code=1).err, "a policy decides")


def test_ask_is_withdrawn_by_ctrl_c():
    with Daemon() as d, d.connect() as c:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            with Running(of(d), "ask", "x") as k:
                id = asked(c)["id"]
                k.process.send_signal(number)
                same(k.finish().code, code, "exit code after %d" % number)
                until(c, id, "superseded")
        with Terminal(of(d), "ask", "x") as t:
            id = asked(c)["id"]
            t.expect("waiting for approval: koine approve " + short(id))
            t.type("\x03")
            t.leave(code=130)
            until(c, id, "superseded")


def test_ask_that_is_killed_asks_no_more():
    with Daemon() as d, d.connect() as c:
        for more in [], ["--timeout", "100"], ["--choices", "a,b"]:
            with Running(of(d), "ask", "x", *more) as k:
                id = asked(c)["id"]
                k.process.kill()
                until(c, id, "superseded")
                k.process.wait()


def test_ask_prints_the_choice():
    with Daemon() as d, d.connect() as c:
        for answer, code, out in (("green", 0, "green\n"), (" Blue ", 0, "blue\n"),
                                  ("/decline", 1, ""), ("purple", 1, "")):
            with Running(of(d), "ask", "--choices", "blue, green", "Which colour?") as k:
                row = asked(c)
                same((row["kind"], row["input"]), ("human_contact", {
                    "msg": "Which colour?", "choices": ["blue", "green"]}), "what is asked")
                check("Which colour?  [blue, green]" in koine(of(d), "approvals").out, "the list")
                koine(of(d), "respond", short(row["id"]), answer)
                done = k.finish()
                same((done.code, done.out), (code, out), answer)
                check(code == 0 or answer in done.err, "%r", done.err)
        koine(of(d), "ask", "--choices", "a,,b", "x", code=64)


def test_ask_goes_on_after_a_restart():
    with Daemon() as d:
        with Running(of(d), "ask", "--json", "x") as k:
            with d.connect() as c:
                id = asked(c)["id"]
            d.signal(signal.SIGKILL)
            d.wait_exit()
            d.start()
            d.wait_ready()
            with d.connect() as c:
                same(asked(c)["id"], id, "the same question")
                koine(of(d), "approve", short(id), "--comment", "go")
            done = k.finish()
            same((done.code, json.loads(done.out)["comment"]), (0, "go"), "the answer")


if __name__ == "__main__":
    main(globals())
