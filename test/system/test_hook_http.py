#!/usr/bin/env python3
"""
POST /hook of a real koined, beside `koine hook`: what comes in by either door is decided alike, and
whatever comes, an agent is never stopped by a mistake. What agents send is in ../vectors/hooks.json.
"""
import contextlib
import json
import os
import socket
import subprocess
import sys

from harness import PATIENCE, Client, Daemon, Folder, check, main, same, wait_until
from test_chat_cli import of
from test_hook import (PERMISSION, PLAIN, PRE, VECTORS, Hook, approvals, decide, nested, recalled_ids, remembered, waiting,
                       with_id, withdrawn)

MCP = ("--set", "listen.mcp=http:127.0.0.1:0")


def daemon(*args, **more):
    return Daemon(*MCP, *args, **more)


def token(d):
    with open(os.path.join(d.root, "mcp.token"), encoding="ascii") as f:
        return f.read().strip()


def bytes_of(told):
    return told if isinstance(told, bytes) else json.dumps(told).encode()


class Post:
    """An agent's http hook while it waits."""

    def __init__(self, d, told, **headers):
        headers = dict({"Authorization": "Bearer " + token(d),
                        "Content-Type": "application/json"}, **headers)
        body = bytes_of(told)
        head = "POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n" % len(body)
        head += "".join("%s: %s\r\n" % (k.replace("_", "-"), v) for k, v in headers.items()
                        if v is not None)
        self.client = Client(d.address("http", "mcp"))
        self.client.send(head.encode() + b"\r\n" + body)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()

    def response(self):
        return self.client.read_response()

    def end(self, status=200):
        """What it was told, as JSON; None: nothing."""
        r = self.response()
        same(r.status, status, "status (%r)" % r.body[:200])
        return json.loads(r.body) if r.body else None


def by_command(d, told, timeout=None):
    return Hook(of(d), told, *(("--timeout", str(timeout)) if timeout else ()))


def by_post(d, told, timeout=None):
    return Post(d, told, Koine_Timeout=timeout)


DOORS = (by_command, by_post)


REASONS = ("permissionDecisionReason", "reason", "user_message", "agent_message")


def decided(said):
    """Without the words for it: koine hook is told of a refusal in those of koine's own dialect."""
    if not isinstance(said, dict):
        return said
    return {k: bool(v) if k in REASONS else decided(v) for k, v in said.items()}


def both(d, told):
    """What both doors say to it, which must be the same."""
    said = []
    for door in DOORS:
        with door(d, told) as hook:
            said.append(hook.end())
    same(decided(said[1]), decided(said[0]), "/hook and koine hook on %.200r" % (told,))
    return said[1]


# ---- decisions ----


def test_decisions_reach_agents_in_their_own_form():
    words = {"approved": "approve", "denied": "deny", "responded": "respond"}
    n = 0
    with daemon() as d, d.connect() as c, contextlib.ExitStack() as stack:
        for row in VECTORS:
            if "format" in row:
                continue
            for end, want in row["answers"]:
                if end["status"] not in words or end.get("decided_by") != "human":
                    continue
                hook = stack.enter_context(Post(d, row["stdin"], Koine_Agent=row.get("agent")))
                asked, = waiting(c)
                for key, value in row["request"].items():
                    if key not in ("id", "timeout"):
                        same(asked[key], value, "%s of %s" % (key, row["name"]))
                decide(c, asked["id"], words[end["status"]],
                       **({"comment": end["comment"]} if "comment" in end else {}))
                same(hook.end(), with_id(want, asked["id"]), row["name"])
                n += 1
    check(n > 10, "%d were tried", n)


def test_rules_decide_alike_by_both_doors():
    rules = ("--set", "policy.a.verdict=deny", "--set", "policy.a.tool=Bash",
             "--set", "policy.a.input=command=rm *", "--set", "policy.a.comment=not here",
             "--set", "policy.b.verdict=allow", "--set", "policy.b.tool=Bash",
             "--set", "policy.b.input=command=ls*", "--set", "policy.c.verdict=allow",
             "--set", "policy.c.agent=gemini", "--set", "policy.c.tool=run_shell_command")
    gemini = {"session_id": "g", "hook_event_name": "BeforeTool", "timestamp": "t",
              "tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
    codex = dict(PRE, turn_id="t1")
    cases = (
        (dict(PRE, tool_input={"command": "ls -l"}), "allow"),
        (dict(PRE, tool_input={"command": "rm x"}), "deny"),
        (dict(PERMISSION, tool_input={"command": "ls"}), "allow"),
        (dict(PERMISSION, tool_input={"command": "rm x"}), "deny"),
        (dict(codex, tool_input={"command": "rm x"}), "deny"),
        (dict(codex, tool_input={"command": "ls"}), None),
        (gemini, "allow"),
        (b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":'
         b'{"command":"rm x","command":"ls"}}', "deny"),
        (b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":'
         b'{"command":"rm # \\ud83d"}}', "deny"),
    )
    with daemon(*rules) as d, d.connect() as c:
        for told, want in cases:
            said = both(d, told)
            check((want is None) == (said is None) and (want is None or
                  '"%s"' % want in json.dumps(said)), "%r: %r", told, said)
        same(approvals(c), [], "nobody waits")


def test_twice_the_same_key_is_not_let_pass():
    allow = ("--set", "policy.a.verdict=allow", "--set", "policy.a.tool=Bash",
             "--set", "policy.a.input=command=ls*")
    with daemon(*allow) as d, d.connect() as c:
        same(both(d, dict(PRE, tool_input={"command": "ls"}))
             ["hookSpecificOutput"]["permissionDecision"], "allow", "as it should be")
        with Post(d, b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":'
                     b'{"command":"rm","command":"ls"}}') as hook:
            asked, = waiting(c)
            decide(c, asked["id"], "deny")
            same(hook.end()["hookSpecificOutput"]["permissionDecision"], "deny", "a human decides")
        for told in (b'{"hook_event_name":"PreToolUse","tool_name":"Read","tool_name":"Bash"}',
                     b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":'
                     b'"ls"},"tool_input":{"command":"rm"}}',
                     b'{"hook_event_name":"PermissionRequest","hook_event_name":"PreToolUse",'
                     b'"tool_name":"Bash","tool_input":{"command":"ls"}}',
                     b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},'
                     b'"hook_event_name":"Stop"}'):
            same(both(d, told)["hookSpecificOutput"]["permissionDecision"], "ask", "%r" % told)


def test_nobody_answers_in_time():
    with daemon() as d, d.connect() as c:
        for door in DOORS:
            with door(d, PRE, 1) as pre, door(d, PERMISSION, 1) as permission:
                same(pre.end()["hookSpecificOutput"]["permissionDecisionReason"],
                     "timed out waiting for an answer", "PreToolUse")
                same(permission.end(), None, "PermissionRequest")
        same(len(approvals(c, "expired")), 4, "expired")


def test_a_time_that_makes_no_sense_is_none():
    with daemon() as d, d.connect() as c:
        for wrong in ("0", "-1", "1e9", "soon", "99999999999999999999", ""):
            with Post(d, PRE, Koine_Timeout=wrong) as hook:
                asked, = waiting(c)
                check(asked["deadline"], "%r: no end", wrong)
                decide(c, asked["id"])
                hook.end()


def test_what_was_allowed_at_the_agents_own_dialog_is_asked_no_more():
    call = {"session_id": "abc", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    with daemon() as d, d.connect() as c:
        for asks in DOORS:
            for tells in DOORS:
                with asks(d, dict(call, hook_event_name="PermissionRequest"), 600) as hook:
                    waiting(c)
                    with tells(d, dict(call, hook_event_name="PostToolUse")) as told:
                        same(told.end(), None, "nothing to say")
                    same(hook.end(), None, "PermissionRequest")


def test_who_hangs_up_withdraws_the_question():
    with daemon() as d, d.connect() as c:
        for leave in (Client.close, Client.reset):
            with Post(d, PRE) as hook:
                asked, = waiting(c)
                leave(hook.client)
                withdrawn(c, asked)
        # Before it was ever kept.
        for _ in range(20):
            with Post(d, PRE):
                pass
        wait_until(lambda: not approvals(c), "none that waits")


def test_a_stop_leaves_nothing_to_decide():
    with daemon() as d:
        with Post(d, PRE) as pre:
            with d.connect() as c:
                asked, = waiting(c)
            same(d.stop(), 0, "exit status")
            r = pre.response()
            same((r.status, r.body), (200, b""), "the agent asks by itself")
        d.start()
        d.wait_ready()
        with d.connect() as c:
            same(c.call("approval.get", {"id": asked["id"]})["status"], "superseded", "status")


AGENT = r"""
import sys
sys.path.insert(0, %r)
from harness import Client
from test_hook_http import PRE, Post
class Where: pass
d = Where()
d.root = sys.argv[1]
d.address = lambda *which: sys.argv[2]
with Post(d, PRE) as hook, Client(sys.argv[3]) as c, open(int(sys.argv[4])) as words:
    print(c.call_text(words.readline().encode()).decode(), flush=True)
    print(hook.response().body.decode(), flush=True)
""" % os.path.dirname(os.path.abspath(__file__))


def test_an_agent_does_not_decide_its_own_request():
    with daemon("--set", "approval.agents_decide=no") as d, d.connect() as c:
        read, write = os.pipe()
        # No pipe at its standard input: what reads from one speaks for who writes there.
        with subprocess.Popen([sys.executable, "-c", AGENT, d.root, d.address("http", "mcp"),
                               d.address("unix"), str(read)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, pass_fds=[read]) as agent, \
                open(write, "w", encoding="utf-8") as words:
            os.close(read)
            asked, = waiting(c)
            print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "approval.decide",
                              "params": {"id": asked["id"], "decision": "approve"}}),
                  file=words, flush=True)
            answer = json.loads(agent.stdout.readline())
            check("an agent that requests approvals" in answer["error"]["message"], "%r", answer)
            decide(c, asked["id"], "deny", comment="mine to say")
            check(b"mine to say" in agent.stdout.readline(), "it was not told")
            same(agent.wait(PATIENCE), 0, "exit code")


def test_a_session_that_koined_runs_is_named_by_its_id():
    with daemon() as d, d.connect() as c:
        with Post(d, PRE, Koine_Session="sess-1", Koine_Run="run-1") as hook:
            asked, = waiting(c)
            same((asked["session_id"], asked["run_id"]), ("sess-1", "run-1"))
            decide(c, asked["id"])
            hook.end()
        with Post(d, PRE, Koine_Session="", Koine_Run="") as hook:
            asked, = waiting(c)
            same((asked["session_id"], asked["run_id"]), ("abc", None), "none that koined runs")
            decide(c, asked["id"])
            hook.end()


# ---- the gate ----


def test_it_wants_the_token():
    with daemon() as d:
        right = "Bearer " + token(d)
        for headers, status in (({"Authorization": None}, 401), ({"Authorization": "Bearer x"}, 401),
                                ({"Origin": "http://evil.example"}, 403),
                                ({"Sec_Fetch_Site": "cross-site"}, 403)):
            with Post(d, dict(PRE, hook_event_name="Stop"), **headers) as hook:
                same(hook.response().status, status, "%r" % headers)
        with Client(d.address("http", "mcp")) as c:
            c.send(b"GET /hook HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n" %
                   right.encode())
            r = c.read_response()
            same((r.status, r.header("Allow")), (405, "POST"), "GET")


# ---- what is no hook's JSON ----

BAD = (
    b"", b"{", b"[]", b"{}", b"null", b"\xff", b"\0\0", b'{"hook_event_name":"PreToo',
    b'{"hook_event_name":"Permission', b'{"hook_event_name":7,"tool_name":"Bash"}',
    b'{"hook_event_name":"PermissionRequest","tool_name":["Bash"]}',
    b'{"hook_event_name":"PermissionRequest","tool_name":null,"tool_input":{}}',
    b'{"hook_event_name":"PermissionRequest"}', b'{"conversation_id":"c","tool_name":"',
    b'{"toolName":"', b'{"toolName":""}', b'{"hook_event_name":"BeforeTool","x":"', b'"PreToolUse"',
    b'["PreToolUse"]', b'{"turn_id":"t","hook_event_name":"PreToolUse","tool_name":"',
    b'{"hook_event_name":"PermissionRequest","tool_name":"a\0b"}', b"[" * 100000,
    b'{"a":' * 2000 + b"1" + b"}" * 2000, b'{"hook_event_name":"PermissionRequest","tool_name":"' +
    b"x" * 300 + b'"}',
)


def test_bad_input_stops_nobody():
    with daemon() as d, d.connect() as c:
        for told in BAD:
            said = both(d, told)
            check(said is None or said == {} or "deny" in json.dumps(said) or
                  "ask" in json.dumps(said), "%.80r: %r", told, said)
        # What Claude Code wants to do, and cannot be read, its user must see.
        for told in (b'{"hook_event_name":"PreToolUse","tool_name":"Ba', dict(PRE, tool_name=5),
                     dict(PRE, tool_input={"x": "y" * (2 << 20)}), dict(PRE, tool_input=nested(900)),
                     dict(PRE, tool_name="B" * 300), dict(PRE, tool_use_id="\0"),
                     b'{"hook_event_name":"PreToolUse","tool_name":"Bash",\0}'):
            said = both(d, told)
            same(said["hookSpecificOutput"]["permissionDecision"], "ask", "%.80r" % (told,))
        same(both(d, dict(PERMISSION, tool_input={"x": "y" * (2 << 20)})), None, "2 MiB")
        same(approvals(c, "any"), [], "asked")
        same([line for line in d.log().split(b"\n") if b"invalid hook input" in line and
              b"not an object" in line and b"connection=" in line] == [], False, "posted")
        check(any(b"invalid hook input" in line and b"connection=" not in line
                  for line in d.log().split(b"\n")), "koine hook has not told of it")


def test_events_that_nobody_knows():
    with daemon() as d, d.connect() as c:
        for told, want in ((dict(PRE, hook_event_name="Notification"), None),
                           (dict(PRE, hook_event_name="SomethingNew", turn_id="t"), None),
                           (dict(PRE, hook_event_name="AfterModel"), {}),
                           ({"conversation_id": "c", "hook_event_name": "stop"}, {}),
                           (dict(PRE, hook_event_name=""), None)):
            same(both(d, told), want, "%r" % told)
        same(approvals(c, "any"), [], "asked")


def test_koines_own_tools_do_not_wait_in_its_own_inbox():
    deny = ("--set", "policy.no.verdict=deny", "--set", "policy.no.tool=mcp__koine__task_*")
    ask = dict(PERMISSION, tool_name="mcp__koine__ask_human", tool_input={"question": "?"})
    pre = dict(ask, hook_event_name="PreToolUse", permission_mode="default")
    with daemon(*deny) as d, d.connect() as c:
        for told in (ask, dict(ask, turn_id="t"), pre, dict(pre, permission_mode="plan"),
                     dict(pre, permission_mode="acceptEdits"), dict(pre, turn_id="t")):
            same(both(d, told), None, "%r" % told)
        # Policies count, whoever's tool it is.
        for told in (ask, pre):
            check('"deny"' in json.dumps(both(d, dict(told, tool_name="mcp__koine__task_add"))),
                  "%r was not denied", told)
        same(approvals(c), [], "that wait")
        # But no name lets a tool pass where the agent itself would not ask.
        for told in (dict(pre, permission_mode="bypassPermissions"), dict(pre, permission_mode="dontAsk"),
                     dict(pre, permission_mode=["default"]), dict(PRE, tool_name=ask["tool_name"]),
                     json.dumps(dict(pre, permission_mode="bypassPermissions"))[:-1].encode() +
                     b',"permission_mode":"default"}', dict(ask, tool_name="mcp__koine_x__ask"),
                     dict(ask, tool_name="mcp__koine__")):
            for door in DOORS:
                with door(d, told) as hook:
                    asked, = waiting(c)
                    decide(c, asked["id"], "deny")
                    check('"deny"' in json.dumps(hook.end()), "%r", told)


def test_a_body_in_pieces_and_one_that_never_comes():
    with daemon("--set", "policy.a.verdict=allow", "--set", "policy.a.tool=Bash") as d:
        body = bytes_of(PRE)
        head = ("POST /hook HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                % token(d)).encode()
        with Client(d.address("http", "mcp")) as c:
            c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            c.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
            for i in range(0, len(body), 7):
                part = body[i:i + 7]
                c.send(b"%x\r\n%s\r\n" % (len(part), part))
            c.send(b"0\r\n\r\n")
            check(b'"allow"' in c.read_response().body, "chunked")
            # The connection stays for the next one.
            c.send(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            check(b'"allow"' in c.read_response().body, "the second")
        with Client(d.address("http", "mcp")) as c:
            c.send(head + b"Content-Length: %d\r\n\r\n%s" % (len(body) + 10, body))
            c.close()
        d.alive()


# ---- what koined is told ----


def test_an_agent_is_told_what_is_remembered():
    with daemon() as d, d.connect() as c, Folder() as f:
        def told(event, **more):
            return both(d, dict({"session_id": "abc", "cwd": f.path, "hook_event_name": event},
                                **more))

        same(told("SessionStart", source="startup"), None, "nothing is remembered")
        here = os.path.realpath(f.path)
        c.call("memory.add", {"content": "deploy with make ship", "project": here})
        c.call("memory.add", {"content": "the team deploys on Tuesdays"})
        c.call("memory.add", {"content": "deploy with fabric", "project": "/elsewhere"})
        c.call("memory.add", {"content": "anna's secret deploy key", "user_id": "anna"})
        start = told("SessionStart", source="startup")["hookSpecificOutput"]
        same(remembered(start), ["deploy with make ship", "the team deploys on Tuesdays"],
             "of this project")
        same(recalled_ids(start), sorted(m["id"][:8] for m in c.call("memory.list", {})
                                         if m["content"] in remembered(start)), "their ids")
        asked = told("UserPromptSubmit", prompt="how do we deploy?")["hookSpecificOutput"]
        same(asked["hookEventName"], "UserPromptSubmit")
        check("make ship" in asked["additionalContext"] and "fabric" not in
              asked["additionalContext"], "%r", asked)
        for folder in ("/nowhere", "relative", "", 5, "/a\0b"):
            said = both(d, {"session_id": "abc", "cwd": folder, "hook_event_name": "SessionStart"})
            check(said is None or "make ship" not in json.dumps(said), "%r: %r", folder, said)
        c.call("memory.add", {"content": "x" * 5000 + "\nand more", "project": here})
        long = told("SessionStart", source="resume")["hookSpecificOutput"]["additionalContext"]
        check(len(long) < 9000, "%d bytes", len(long))


def test_what_an_agent_does_becomes_events():
    with daemon() as d, d.connect() as c:
        for event, more in (("UserPromptSubmit", {"prompt": "how?" + "x" * 5000}),
                            ("PostToolUse", {"tool_name": "Bash", "tool_input": {},
                                             "tool_use_id": "toolu_1", "tool_response": {}}),
                            ("Stop", {"last_assistant_message": "done"}),
                            ("SessionEnd", {"reason": "other"})):
            with Post(d, dict(more, session_id="s-http", cwd="/w", hook_event_name=event)) as hook:
                same(hook.end(), None, event)
        events = c.call("event.list", {"types": ["agent.*"], "session_id": "s-http"})["events"]
        same([e["type"] for e in events],
             ["agent.asked", "agent.tool", "agent.stopped", "agent.ended"], "events")
        same(events[1]["data"], {"agent": "claude", "session_id": "s-http", "folder": "/w",
                                 "tool": "Bash", "tool_use_id": "toolu_1"})
        same(len(events[0]["data"]["text"]), 4096, "it is cut")


CODEX = {"session_id": "s", "turn_id": "t", "cwd": "/w", "hook_event_name": "PreToolUse",
         "tool_name": "Bash", "tool_use_id": "u"}


def test_codex_gate_denies_what_koine_refuses_to_judge():
    with daemon("--set", "limits.json_values=5000") as d:
        told = dict(CODEX, tool_input={"command": "ls", "more": [0] * 6000})
        for door in DOORS:
            with door(d, told) as hook:
                said = hook.end()["hookSpecificOutput"]
                same((said["hookEventName"], said["permissionDecision"]), ("PreToolUse", "deny"))
                check(said["permissionDecisionReason"], "no reason: %r", said)
        # Too large for both endpoints. Another agent's mark in the input does not change which agent it is.
        told = dict(CODEX, tool_input={"description": "conversation_id", "command": "x" * (5 << 20)})
        with by_command(d, told) as hook:
            said = hook.end()["hookSpecificOutput"]
            same(said["permissionDecision"], "deny", said)
        # Nobody decides about other events.
        with by_command(d, dict(CODEX, hook_event_name="Stop")) as hook:
            same(hook.end(), None)


def test_copilot_is_not_asked_about_koines_own_tools():
    told = {"sessionId": "s", "timestamp": 1, "cwd": "/w", "toolArgs": {"content": "x"}}
    with daemon() as d, d.connect() as c:
        for door in DOORS:
            with door(d, dict(told, toolName="koine-memory_add")) as hook:
                same(hook.end(), {}, "no opinion")
            # A tool of another server.
            with door(d, dict(told, toolName="koine-x-memory_add")) as hook:
                [asked] = waiting(c)
                decide(c, asked["id"], "deny", comment="no")
                same(hook.end()["permissionDecision"], "deny")


def test_oversized_body_is_answered_in_the_agents_words():
    with daemon() as d:
        with Post(d, dict(PRE, tool_input={"command": "x" * (70 << 20)})) as post:
            said = post.end()["hookSpecificOutput"]
            same(said["permissionDecision"], "ask", said)
            check("too large" in said["permissionDecisionReason"], "%r", said)
        with Client(d.address("http", "mcp")) as c:
            c.send(("POST /hook?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                    "Content-Length: 99999999999\r\n\r\n{" % token(d)).encode())
            r = c.read_response()
            same(r.status, 200, r.body)
            same(json.loads(r.body)["hookSpecificOutput"]["permissionDecision"], "ask")
        with Client(d.address("http", "mcp")) as c:
            c.send(("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                    "Content-Length: 99999999999\r\n\r\n{" % token(d)).encode())
            same(c.read_response().status, 413)


if __name__ == "__main__":
    main(globals())
