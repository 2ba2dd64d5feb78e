#!/usr/bin/env python3
"""
koine hook with a real koined: up, down, restarted while it waits; decided, late, killed. What
agents send and want to read is in ../vectors/hooks.json.
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

from harness import (KOINE, PATIENCE, SANITIZER, SOURCE, Client, Daemon, Folder, Skip, check, main,
                     request, same, wait_until)
from test_chat_cli import Terminal, environment, koine, of

with open(os.path.join(SOURCE, "test", "vectors", "hooks.json"), encoding="utf-8") as vectors:
    VECTORS = [row for row in json.load(vectors) if not row.get("refused")]

PRE = {"session_id": "abc", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Bash",
       "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}
PERMISSION = dict(PRE, hook_event_name="PermissionRequest")
PLAIN = {"tool_name": "deploy", "tool_input": {"to": "production"}}


class Hook:
    """koine hook while it waits."""

    def __init__(self, env, told, *args):
        self.process = subprocess.Popen([KOINE, "hook", *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(told if isinstance(told, bytes) else json.dumps(told).encode())
            self.process.stdin.close()
        self.process.stdin = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdout, self.process.stderr):
            f.close()

    def end(self, code=0):
        """What it printed, as JSON; None: nothing."""
        out, err = self.process.communicate(timeout=PATIENCE)
        self.err = err.decode()
        check(not SANITIZER.search(err), "sanitizer report: %s", self.err[:2000])
        same(self.process.returncode, code, "exit code (%r, %r)" % (out, err))
        return json.loads(out) if out else None


def approvals(c, status="pending"):
    return c.call("approval.list", {"status": status})["approvals"]


def waiting(c, n=1):
    return wait_until(lambda: (lambda a: a if len(a) == n else None)(approvals(c)),
                      "%d that wait" % n)


def decide(c, id, decision="approve", **more):
    return c.call("approval.decide", dict(more, id=id, decision=decision))


def with_id(want, id):
    return json.loads(json.dumps(want).replace('"ID"', json.dumps(id)))


def options(row):
    return [arg for name in ("format", "agent") if name in row for arg in ("--" + name, row[name])]


def test_decisions_reach_agents_in_their_own_form():
    words = {"approved": "approve", "denied": "deny", "responded": "respond"}
    with Daemon() as d, d.connect() as c, contextlib.ExitStack() as stack:
        for row in VECTORS:
            env = of(d, **{name: row[key] for name, key in (("KOINE_SESSION_ID", "session"),
                                                            ("KOINE_RUN_ID", "run")) if key in row})
            for end, want in row["answers"]:
                if end["status"] not in words or end.get("decided_by") != "human":
                    continue
                hook = stack.enter_context(Hook(env, row["stdin"], *options(row)))
                asked, = waiting(c)
                for key, value in row["request"].items():
                    if key not in ("id", "timeout", "session_id", "run_id"):
                        same(asked[key], value, "%s of %s" % (key, row["name"]))
                decide(c, asked["id"], words[end["status"]],
                       **({"comment": end["comment"]} if "comment" in end else {}))
                same(hook.end(), with_id(want, asked["id"]), row["name"])


def test_nobody_answers_in_time():
    with Daemon() as d, d.connect() as c, contextlib.ExitStack() as stack:
        pre, permission, plain = [stack.enter_context(Hook(of(d), told, "--timeout", "0.2"))
                                  for told in (PRE, PERMISSION, PLAIN)]
        same(pre.end()["hookSpecificOutput"],
             {"hookEventName": "PreToolUse", "permissionDecision": "ask",
              "permissionDecisionReason": "timed out waiting for an answer"}, "PreToolUse")
        same(permission.end(), None, "PermissionRequest")
        same(plain.end()["decision"], "expired", "plain")
        same(len(approvals(c, "expired")), 3, "expired")
        same(approvals(c, "denied"), [], "and none is denied")


def test_rules_answer_at_once():
    with Daemon("--set", "policy.a.verdict=deny", "--set", "policy.a.agent=claude",
                "--set", "policy.a.comment=not here") as d:
        with Hook(of(d), PERMISSION) as hook:
            same(hook.end()["hookSpecificOutput"]["decision"],
                 {"behavior": "deny", "message": "not here"}, "decision")


# What each agent must read where koined does not decide: koined is away or lost, nobody decides in time,
# koined refuses the question, or the input is larger than what a hook takes. None is no output.
def specific(decision):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
                                   "permissionDecisionReason": True}}


BASH = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
CURSOR_ASKS = {"permission": "ask", "user_message": True, "agent_message": True}
COPILOT_ASKS = {"permissionDecision": "ask", "permissionDecisionReason": True}
GEMINI_DENIES = {"decision": "deny", "reason": True}
UNDECIDED = [
    # what it says, what it reads: lost, late, refused, too large
    (PRE, None, specific("ask"), specific("ask"), specific("ask")),
    (PERMISSION, None, None, None, None),
    (dict({"turn_id": "t"}, **PRE), None, None, specific("deny"), specific("deny")),
    (dict({"turn_id": "t"}, **PERMISSION), None, None, None, specific("deny")),
    (dict({"hook_event_name": "BeforeTool"}, **BASH), {}, GEMINI_DENIES, GEMINI_DENIES, GEMINI_DENIES),
    (dict({"conversation_id": "c", "hook_event_name": "preToolUse"}, **BASH), {}, CURSOR_ASKS, CURSOR_ASKS, CURSOR_ASKS),
    ({"toolName": "bash", "toolArgs": {"command": "ls"}}, {}, COPILOT_ASKS, COPILOT_ASKS, COPILOT_ASKS),
    (PLAIN, {"decision": "unavailable", "comment": ""}, {"decision": "expired", "comment": ""},
     {"decision": "unavailable", "comment": True}, None),
]


def without_words(said):
    """Reasons as True, since only their presence counts, and without the approval's id."""
    words = ("permissionDecisionReason", "reason", "user_message", "agent_message", "comment")
    if not isinstance(said, dict):
        return said
    return {k: bool(v) or v if k in words else without_words(v) for k, v in said.items() if k != "approval_id"}


def reads(hook, want, stage, told):
    same(without_words(hook.end()), want, "%s: %.80r" % (stage, told))


class BrokenServer:
    """In koined's place: each connection is handled by `serve`, which gets its request."""

    def __init__(self, path, serve):
        self.serve, self.requests = serve, []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(64)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.socket.accept()
                with c, c.makefile("rwb") as f, contextlib.suppress(OSError):
                    self.serve(self, f)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()

    def take(self, f):
        """The request, without those of a withdrawal."""
        asked = json.loads(f.readline())
        if asked["method"] == "hook.run":
            self.requests.append(asked)
        return asked

    def answer(self, f, **members):
        asked = self.take(f)
        f.write(json.dumps(dict(members, jsonrpc="2.0", id=asked["id"])).encode() + b"\n")


def reset(s, f):
    pass


def read_and_leave(s, f):
    s.take(f)


def answer_half(s, f):
    asked = s.take(f)
    f.write(b'{"jsonrpc":"2.0","id":%d,"result":{"output":{"hookSpecificOutput":{"hookEventName":"PreToolUse",'
            b'"permissionDecision":"allow"' % asked["id"])


def answer_garbage(s, f):
    s.take(f)
    f.write(b"allow\n")


def test_every_agent_reads_what_it_must_when_koined_is_lost_at_any_stage():
    for stage in reset, read_and_leave, answer_half, answer_garbage:
        with Folder() as f, BrokenServer(f("koine.sock"), stage) as s, contextlib.ExitStack() as stack:
            env = environment(KOINE_SOCKET=f("koine.sock"))
            for told, lost, _, _, _ in UNDECIDED:
                reads(stack.enter_context(Hook(env, told, "--timeout", "0.3")), lost, stage.__name__, told)
            del s.requests[:]
            # It is not told twice.
            with Hook(env, dict(PRE, hook_event_name="SessionStart")) as hook:
                same(hook.end(), None, "SessionStart")
            check(len(s.requests) <= 1, "%s: %r", stage.__name__, s.requests)


def test_every_agent_reads_what_it_must_when_koined_answers_no_decision():
    for members in {"error": {"code": -32603, "message": "broken"}}, {"result": {}}, {"result": None}, \
            {"result": {"output": specific("allow")}}:
        with Folder() as f, BrokenServer(f("koine.sock"), lambda s, f, m=members: s.answer(f, **m)):
            env = environment(KOINE_SOCKET=f("koine.sock"))
            for told, _, _, refused, _ in UNDECIDED:
                with Hook(env, told, "--timeout", "100") as hook:
                    reads(hook, refused, members, told)


def test_every_agent_reads_a_denial_that_koined_does_not_word():
    permission = {"hookSpecificOutput": {"hookEventName": "PermissionRequest",
                                         "decision": {"behavior": "deny", "message": "denied"}}}
    want = [specific("deny"), permission, specific("deny"), permission, GEMINI_DENIES, dict(CURSOR_ASKS, permission="deny"),
            dict(COPILOT_ASKS, permissionDecision="deny"), {"decision": "denied", "comment": ""}]
    with Folder() as f, BrokenServer(f("koine.sock"), lambda s, f: s.answer(f, result={"output": None, "status": "denied"})):
        for (told, *_), denial in zip(UNDECIDED, want, strict=True):
            with Hook(environment(KOINE_SOCKET=f("koine.sock")), told, "--timeout", "100") as hook:
                reads(hook, denial, "denied", told)


def test_every_agent_reads_a_timeout_that_koined_does_not_word():
    with Folder() as f, BrokenServer(f("koine.sock"), lambda s, f: s.answer(f, result={"output": None, "status": "expired"})):
        for told, _, late, _, _ in UNDECIDED:
            with Hook(environment(KOINE_SOCKET=f("koine.sock")), told, "--timeout", "100") as hook:
                reads(hook, late, "expired", told)


def test_every_agent_reads_what_it_must_when_koined_is_killed_while_it_waits():
    with Daemon() as d, contextlib.ExitStack() as stack:
        hooks = [stack.enter_context(Hook(of(d), told, "--timeout", "5")) for told, *_ in UNDECIDED]
        with d.connect() as c:
            waiting(c, len(UNDECIDED))
        d.signal(signal.SIGKILL)
        d.wait_exit()
        for hook, (told, lost, *_) in zip(hooks, UNDECIDED):
            reads(hook, lost, "killed", told)
        d.start()
        d.wait_ready()


def test_every_agent_reads_what_it_must_without_a_decision():
    with Daemon() as d, d.connect() as c, contextlib.ExitStack() as stack:
        for told, _, late, refused, too_large in UNDECIDED:
            hook = stack.enter_context(Hook(of(d), told, "--timeout", "0.2"))
            reads(hook, late, "late", told)
            key = "toolArgs" if "toolArgs" in told else "tool_input"
            for size, want in (2 << 20, refused), (5 << 20, too_large):
                with Hook(of(d), dict(told, **{key: {"command": "x" * size}})) as hook:
                    reads(hook, want, "%d bytes" % size, told)
        same(approvals(c), [], "what waits")


def test_without_a_daemon_the_agent_asks_by_itself():
    with Folder() as folder:
        env = environment(KOINE_SOCKET=folder("koine.sock"))
        for told, lost, *_ in UNDECIDED:
            with Hook(env, told) as hook:
                reads(hook, lost, "away", told)
                check("koined is not running: no answer at" in hook.err, "%r", hook.err)


def test_what_is_no_hooks_json_decides_nothing():
    with Daemon() as d, d.connect() as c:
        for told in (b"", b"{", b"[]", b"{}", b"\xff", dict(PRE, hook_event_name="Notification"),
                     dict(PERMISSION, tool_name="")):
            with Hook(of(d), told) as hook:
                same(hook.end(), None, "printed for %.40r" % told)
                check(hook.err.startswith("koine: "), "%r", hook.err)
        with Hook(of(d), dict(PRE, hook_event_name="Notification")) as hook:
            same(hook.end(), None, "printed")
            same(hook.err, "koine: this event requires no decision\n", "it is a hook's JSON")
        with Hook(of(d), b"{", "--format", "plain") as hook:
            same(hook.end()["decision"], "unavailable", "plain")
        same(approvals(c, "any"), [], "asked")
        with Hook(of(d), PRE, "--format", "yaml") as hook:
            hook.end(code=64)


def nested(depth):
    return json.loads('{"a":' * depth + "1" + "}" * depth)


def test_what_an_agent_wants_to_do_is_no_way_around_the_rules():
    deny = ("--set", "policy.no.verdict=deny", "--set", "policy.no.tool=Bash")
    with Daemon(*deny) as d, d.connect() as c:
        half = json.dumps(dict(PRE, tool_input={"command": "rm -rf / # \ud83d"})).encode()
        check(b"\\ud83d" in half, "%r", half)
        for told in (half, dict(PRE, tool_use_id="t" * 300), dict(PRE, session_id="\u20ac" * 100),
                     dict(PRE, cwd="/" + "w" * 5000)):
            with Hook(of(d), told) as hook:
                same(hook.end()["hookSpecificOutput"]["permissionDecision"], "deny",
                     "decision on %.300r" % told)
        # What koined does not take, or we cannot read, a human must see.
        for told in (dict(PRE, tool_input={"x": "y" * (2 << 20)}), dict(PRE, tool_name="B" * 300),
                     dict(PRE, tool_use_id="\0"), dict(PRE, tool_name=""),
                     dict(PRE, tool_input={"x": "y" * (5 << 20)}),
                     dict(PRE, tool_input={"x": [0] * 60000}), dict(PRE, tool_input=nested(511)),
                     dict(PRE, tool_input=nested(900)), dict(PRE, tool_input={"x": "y" * (3 << 20)}),
                     half.replace(b"#", b"\xff"), half[:-1]):
            with Hook(of(d), told) as hook:
                got = hook.end()["hookSpecificOutput"]
                same(got["permissionDecision"], "ask", "decision on %.300r" % told)
                check(got["permissionDecisionReason"], "no reason: %r", got)
                check(hook.err.startswith("koine: "), "%r", hook.err)
        with Hook(of(d), dict(PERMISSION, tool_input={"x": "y" * (2 << 20)})) as hook:
            same(hook.end(), None, "PermissionRequest, whose dialog comes anyway")
        same(len(approvals(c, "any")), 4, "approvals")


def test_a_restart_while_it_waits():
    with Daemon() as d:
        with Hook(of(d), PLAIN, "--timeout", "100") as answered, \
                Hook(of(d), PRE, "--timeout", "100") as other:
            with d.connect() as c:
                before = {a["tool"]: a["id"] for a in waiting(c, 2)}
            same(d.stop(), 0, "exit status")
            d.start()
            d.wait_ready()
            with d.connect() as c:
                decide(c, before["deploy"], comment="well")
                same(answered.end(), {"decision": "approved", "comment": "well",
                                      "approval_id": before["deploy"]}, "the first")
                check("lost connection to koined" in answered.err, "%r", answered.err)
                # It went down hard, this time.
            d.signal(signal.SIGKILL)
            d.wait_exit()
            d.start()
            d.wait_ready()
            with d.connect() as c:
                decide(c, before["Bash"], "deny", comment="no")
                same(other.end()["hookSpecificOutput"]["permissionDecision"], "deny", "the second")
                same(len(approvals(c, "any")), 2, "approvals in all")


def test_one_that_stays_away():
    with Daemon() as d:
        with Hook(of(d), PRE, "--timeout", "1") as hook, Hook(of(d), PLAIN, "--timeout", "1") as plain:
            with d.connect() as c:
                waiting(c, 2)
            d.stop()
            same(hook.end(), None, "printed")
            same(plain.end()["decision"], "unavailable", "plain")


def withdrawn(c, asked):
    """What a hook said last is done when the daemon comes to it, not when the hook has ended."""
    def status():
        return c.call("approval.get", {"id": asked["id"]})["status"]

    wait_until(lambda: status() != "pending", "the end of the question")
    same(status(), "superseded", "status")


def test_who_is_killed_takes_the_question_along():
    # Under nohup it is ignored, and a hook leaves it so.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with Daemon() as d, d.connect() as c:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Hook(of(d), PRE) as hook:
                asked, = waiting(c)
                hook.process.send_signal(number)
                same(hook.end(code=-number), None, "printed")
                withdrawn(c, asked)


def test_who_lost_its_agent_takes_the_question_along():
    with Daemon() as d, d.connect() as c:
        with Hook(of(d), PRE) as hook:
            asked, = waiting(c)
            hook.process.stdout.close()
            same(hook.process.wait(PATIENCE), 0, "exit code")
            withdrawn(c, asked)


def test_killed_hook_withdraws_its_question():
    with Daemon() as d, d.connect() as c:
        for args in [], ["--timeout", "100"]:
            with Hook(of(d), PLAIN, *args) as hook:
                asked, = waiting(c)
                hook.process.kill()
                withdrawn(c, asked)


# Its hook writes nowhere that has a reader, so only koined sees that the agent is gone.
AGENT = """
import subprocess, sys
hook = subprocess.Popen([sys.argv[1], "hook", "--timeout", "100"], stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
hook.stdin.write(sys.argv[2].encode())
hook.stdin.close()
print(hook.pid, flush=True)
sys.stdin.read()
"""


def test_killed_agent_withdraws_its_question():
    with Daemon() as d, d.connect() as c:
        agent = subprocess.Popen([sys.executable, "-c", AGENT, KOINE, json.dumps(PRE)], env=of(d),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with agent:
            hook = int(agent.stdout.readline())
            asked, = waiting(c)
            agent.kill()
            withdrawn(c, asked)
        same(c.call("approval.get", {"id": asked["id"]})["comment"], "the requesting client disconnected", "reason")
        wait_until(lambda: not os.path.exists("/proc/%d" % hook), "the end of its hook")


def test_who_was_killed_while_koined_was_down_asks_no_more():
    with Daemon() as d:
        with Hook(of(d), PLAIN) as killed, Hook(of(d), PRE, "--timeout", "100") as alive:
            with d.connect() as c:
                before = {a["tool"]: a for a in waiting(c, 2)}
                c.call("approval.create", {"tool": "stays"})
            d.signal(signal.SIGKILL)
            d.wait_exit()
            killed.process.kill()
            killed.process.wait()
            d.start()
            d.wait_ready()
            with d.connect() as c:
                withdrawn(c, before["deploy"])
                same({a["tool"] for a in approvals(c)}, {"Bash", "stays"}, "those that wait")
                decide(c, before["Bash"]["id"])
                same(alive.end()["hookSpecificOutput"]["permissionDecision"], "allow", "the other")


def test_a_connection_may_be_lost_as_long_as_its_process_lives():
    with Daemon() as d, d.connect() as c:
        with d.connect() as other:
            other.send(request("approval.request", {"tool": "x", "id": "one"}) + b"\n")
            waiting(c)
        d.settle()
        with d.connect() as again:
            again.send(request("approval.request", {"tool": "x", "id": "one"}) + b"\n")
            d.settle()
            same([a["id"] for a in approvals(c)], ["one"], "those that wait")
            decide(c, "one")
            same(json.loads(again.read_line())["result"]["status"], "approved", "the answer")


def test_in_another_pid_namespace_the_connection_counts():
    unshare = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no pid namespace can be made")
    with Daemon(wrapper=unshare) as d, d.connect() as c:
        with Hook(of(d), PLAIN) as hook:
            asked, = waiting(c)
            hook.process.kill()
            withdrawn(c, asked)
        with Hook(of(d), PLAIN) as hook:
            decide(c, waiting(c)[0]["id"])
            same(hook.end()["decision"], "approved", "one that lives")
        with open("/proc/%d/task/%d/children" % (d.process.pid, d.process.pid), encoding="ascii") as f:
            os.kill(int(f.read()), signal.SIGTERM)
        d.wait_exit()


def test_a_question_that_is_withdrawn_is_the_agents_again():
    with Daemon() as d, d.connect() as c:
        with Hook(of(d), PRE) as hook, Hook(of(d), PERMISSION) as other:
            for asked in waiting(c, 2):
                c.call("approval.withdraw", {"id": asked["id"]})
            same(hook.end()["hookSpecificOutput"]["permissionDecision"], "ask", "PreToolUse")
            same(other.end(), None, "PermissionRequest")


# As Claude Code asks: without the call's id, which the event of the call then has.
DIALOG = {key: value for key, value in PERMISSION.items() if key != "tool_use_id"}


def test_what_was_allowed_at_the_agents_own_dialog_is_asked_no_more():
    """Claude Code shows its dialog while the hook waits, and lets the hook wait on after a yes."""
    with Daemon() as d, d.connect() as c:
        def made(event="PostToolUse", **more):
            with Hook(of(d), dict(PRE, hook_event_name=event, **more)) as hook:
                same(hook.end(), None, "printed")

        for event in "PostToolUse", "PostToolUseFailure":
            with Hook(of(d), DIALOG) as hook, Hook(of(d), PRE) as gate:
                waiting(c, 2)
                made(event, tool_input={"command": "ls /"})
                made(event, tool_name="Read")
                made(event, session_id="abd")
                made(event, tool_input="ls")
                waiting(c, 2)
                made(event)
                same(hook.end(), None, "PermissionRequest")
                # This one has no dialog beside it.
                left, = waiting(c)
                same(left["tool_use_id"], "toolu_1", "what is still asked")
                decide(c, left["id"])
                gate.end()
        same([a["status"] for a in approvals(c, "superseded")], ["superseded"] * 2)


def test_of_the_same_call_twice_one_question_goes():
    with Daemon() as d, d.connect() as c:
        with Hook(of(d), DIALOG), Hook(of(d), DIALOG):
            waiting(c, 2)
            with Hook(of(d), dict(PRE, hook_event_name="PostToolUse")) as hook:
                hook.end()
            waiting(c, 1)


def test_a_question_from_before_a_restart_goes_when_its_call_was_made():
    with Folder() as f, Daemon(root=f.path) as d:
        with Hook(of(d), DIALOG) as hook:
            with d.connect() as c:
                waiting(c)
            d.stop()
            d.start()
            d.wait_ready()
            with d.connect() as c:
                waiting(c)
                with Hook(of(d), dict(PRE, hook_event_name="PostToolUse")) as told:
                    told.end()
                same(hook.end(), None, "PermissionRequest")
                same(approvals(c), [], "what waits")


MEMORY_LINE = re.compile(r"- \d{4}-\d\d-\d\d \[([0-9a-f]{8})\] (.*)")


def remembered(said):
    """The memories that an agent is given, each with its day and the beginning of its id."""
    return sorted(MEMORY_LINE.fullmatch(line)[2]
                  for line in said["additionalContext"].splitlines()[1:])


def recalled_ids(said):
    return sorted(MEMORY_LINE.fullmatch(line)[1]
                  for line in said["additionalContext"].splitlines()[1:])


def test_an_agent_is_told_what_is_remembered():
    with Daemon() as d, d.connect() as c, Folder() as f:
        def told(event, **more):
            with Hook(of(d), dict({"session_id": "abc", "cwd": f.path,
                                   "hook_event_name": event}, **more)) as hook:
                return hook.end()

        same(told("SessionStart", source="startup"), None, "nothing is remembered")
        here = os.path.realpath(f.path)
        c.call("memory.add", {"content": "deploy with make ship", "project": here})
        c.call("memory.add", {"content": "the team deploys on Tuesdays"})
        c.call("memory.add", {"content": "deploy with fabric", "project": "/elsewhere"})
        c.call("memory.add", {"content": "anna's secret deploy key", "user_id": "anna"})
        start = told("SessionStart", source="startup")["hookSpecificOutput"]
        same(start["hookEventName"], "SessionStart")
        same(remembered(start), ["deploy with make ship", "the team deploys on Tuesdays"],
             "of this project")
        same(recalled_ids(start), sorted(m["id"][:8] for m in c.call("memory.list", {})
                                         if m["content"] in remembered(start)), "their ids")
        asked = told("UserPromptSubmit", prompt="how do we deploy?")["hookSpecificOutput"]
        check("make ship" in asked["additionalContext"], "%r", asked)
        same(told("PostToolUse", tool_name="Bash", tool_input={"command": "ls"},
                  tool_use_id="toolu_1", tool_response={}), None, "nothing to say")
        same(told("Stop", last_assistant_message="done"), None, "nothing to say")
        same(told("SessionEnd", reason="other"), None, "nothing to say")
        events = c.call("event.list", {"types": ["agent.*"], "session_id": "abc"})["events"]
        same([e["type"] for e in events], ["agent.started"] * 2 + [
            "agent.asked", "agent.tool", "agent.stopped", "agent.ended"], "events")
        same((events[3]["data"]["tool"], events[3]["data"]["tool_use_id"]), ("Bash", "toolu_1"))
        same(events[2]["data"]["text"], "how do we deploy?")
        c.call("memory.add", {"content": "x" * 5000 + "\nand more", "project": here})
        long = told("SessionStart", source="resume")["hookSpecificOutput"]["additionalContext"]
        check(len(long) < 9000 and all(line.startswith("- ") for line in long.splitlines()[1:]),
              "%r", long)


# ---- sessions that koined did not start ----

# An agent: runs `koine hook` for each line of its input, as agents run their hooks.
RUNS_HOOKS = """
import subprocess, sys
for line in sys.stdin:
    subprocess.run([sys.argv[1], "hook"], input=line.encode(), stdout=subprocess.DEVNULL, check=True)
    print("done", flush=True)
"""


class Agent:
    def __init__(self, env, session="5f0c9a3e-0001", folder="/w"):
        self.told = {"session_id": session, "cwd": folder}
        self.process = subprocess.Popen([sys.executable, "-c", RUNS_HOOKS, KOINE], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def note(self, event, **more):
        told = dict(self.told, hook_event_name=event, **more)
        self.process.stdin.write(json.dumps(told).encode() + b"\n")
        self.process.stdin.flush()
        same(self.process.stdout.readline(), b"done\n", "the hook")


def refused(c, method, params):
    return json.loads(c.call_text(request(method, params)))["error"]


def sessions(c, **more):
    return c.call("session.list", more)["sessions"]


def session(c, id="5f0c9a3e"):
    return c.call("session.get", {"id": id})


def test_an_agent_is_observed_by_its_hooks():
    with Daemon() as d, d.connect() as c, Folder() as folder, Agent(of(d), folder=folder.path) as agent:
        agent.note("SessionStart", source="startup")
        row, = sessions(c)
        same((row["id"], row["kind"], row["status"], row["agent"], row["working_dir"], row["project"]),
             ("5f0c9a3e-0001", "observed", "running", "claude", folder.path, os.path.realpath(folder.path)), "listed")
        agent.note("UserPromptSubmit", prompt="fix the test")
        agent.note("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={})
        same(session(c)["query"], "fix the test", "what it was asked")
        check(session(c)["active_at"] >= row["active_at"], "last activity")
        with Hook(of(d), dict(PRE, session_id="5f0c9a3e-0001"), "--timeout", "100") as hook:
            asked, = waiting(c)
            same(asked["session_id"], "5f0c9a3e-0001", "the approval's session")
            row, = sessions(c, status="waiting_input")
            same((row["approvals"], sessions(c, status="running")), (1, []), "it waits")
            decide(c, asked["id"])
            hook.end()
        same(session(c)["status"], "running", "again")
        for method, params, word in (("session.continue", {"query": "x"}, "continued"),
                                     ("session.interrupt", {}, "interrupted"),
                                     ("session.events", {}, "followed"),
                                     ("session.rename", {"title": "x"}, "changed")):
            error = refused(c, method, dict(params, id="5f0c9a3e"))
            same(error["code"], -32002, method)
            check("only observed and cannot be %s" % word in error["message"], "%r", error)
        with d.connect(dialect="hld") as hld:
            same(hld.call("listSessions", {})["sessions"], [], "hld's list")
        agent.note("Stop")
        agent.note("SessionEnd", reason="exit")
        same((session(c)["status"], sessions(c, status="running")), ("completed", []), "its end")
        agent.note("SessionStart", source="resume")
        same((session(c)["status"], session(c)["ended_at"]), ("running", None), "resumed")


def test_an_observed_session_ends_with_its_process():
    with Daemon() as d:
        with d.connect() as c:
            with Agent(of(d)) as agent, Agent(of(d), "other-1") as other:
                agent.note("UserPromptSubmit", prompt="x")
                other.note("SessionStart", source="startup")
                agent.process.kill()
                wait_until(lambda: session(c)["status"] == "interrupted", "its end")
                same(session(c)["error"], "the agent's process has exited", "reason")
                same(session(c, "other-1")["status"], "running", "the other")
                last = c.call("event.list", {"types": ["agent.ended"]})["events"][-1]
                same(last["data"]["session_id"], "5f0c9a3e-0001", "the event")
                d.stop()
                other.process.kill()
                other.process.wait()
        d.start()
        d.wait_ready()
        with d.connect() as c:
            wait_until(lambda: session(c, "other-1")["status"] == "interrupted", "the end of one that went meanwhile")


def test_many_sessions_of_one_process_leave_others_watched():
    """Its 256 sessions take all watches that there are."""
    hook = ("import sys\nsys.path.insert(0, %r)\nfrom harness import Client\nc = Client(%r)\nfor i in range(256):\n"
            "    c.call('agent.note', {'what': 'started', 'agent': 'claude', 'session_id': 's-%%d' %% i})\n")
    program = ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], input=b'', check=True)\n"
               "print('done', flush=True)\nsys.stdin.read()\n")
    with Daemon() as d, d.connect() as c:
        hook %= os.path.dirname(os.path.abspath(__file__)), d.address("unix")
        with subprocess.Popen([sys.executable, "-c", program, hook], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as crowd:
            same(crowd.stdout.readline(), b"done\n", "its sessions")
            with Agent(of(d)) as agent:
                agent.note("SessionStart", source="startup")
                agent.process.kill()
                wait_until(lambda: session(c)["status"] == "interrupted", "its end")
            same(session(c, "s-255")["status"], "running", "the last of the others")
            crowd.stdin.close()
            wait_until(lambda: session(c, "s-255")["status"] == "interrupted", "its end")


def test_an_observed_session_outlives_koined_and_ends_when_it_is_silent():
    with Daemon("--set", "session.silence_time=1") as d, Agent(of(d)) as agent:
        agent.note("SessionStart", source="startup")
        d.stop()
        d.args = []
        d.start()
        d.wait_ready()
        with d.connect() as c:
            same(session(c)["status"], "running", "after a restart")
        d.args = ["--set", "session.silence_time=1"]

        def ended():
            d.stop()
            d.start()
            d.wait_ready()
            with d.connect() as c:
                return session(c)["status"] == "completed" and session(c)["error"] == "silent"

        wait_until(ended, "its end")
        agent.note("UserPromptSubmit", prompt="still there?")
        with d.connect() as c:
            same((session(c)["status"], session(c)["error"]), ("running", None), "it speaks again")


def test_what_is_observed_is_bounded():
    with Daemon() as d, d.connect() as c:
        def note(id, what="started", **more):
            c.call("agent.note", dict(more, what=what, agent="claude", session_id=id, folder="/w"))

        for i in range(1005):
            note("s-%04d" % i)
        same(len(sessions(c, limit=1000)), 1000, "sessions")
        same(refused(c, "session.get", {"id": "s-0000"})["code"], -32001, "the oldest")
        note("x" * 129)
        note("has a space")
        note("s-1004", agent="codex", what="asked", text="mine now")
        same(session(c, "s-1004")["agent"], "claude", "the id of another agent's session")
        same(sessions(c, limit=1)[0]["id"], "s-1004", "the last")
        # Nothing of what koined itself runs is observed.
        c.call("task.run", {"command": [KOINE, "call", "agent.note", json.dumps(
            {"what": "started", "agent": "claude", "session_id": "of-a-task", "folder": "/w"})]})
        wait_until(lambda: [e for e in c.call("event.list", {"types": ["agent.started"]})["events"]
                            if e["data"]["session_id"] == "of-a-task"], "the note")
        same(refused(c, "session.get", {"id": "of-a-task"})["code"], -32001, "a task's agent")


def test_whole_id_of_an_observed_session_is_not_ambiguous():
    with Daemon() as d, d.connect() as c, Agent(of(d)) as agent, Agent(of(d), session="5f0c9a3e-0001-b") as other:
        agent.note("SessionStart", source="startup")
        other.note("SessionStart", source="startup")
        same([session(c, id)["id"] for id in ("5f0c9a3e-0001", "5f0c9a3e-0001-")], ["5f0c9a3e-0001", "5f0c9a3e-0001-b"])
        check("ambiguous" in refused(c, "session.get", {"id": "5f0c9a3e-000"})["message"], "a prefix of two")


def test_an_observed_session_is_listed():
    with Daemon() as d, Agent(of(d)) as agent:
        agent.note("UserPromptSubmit", prompt="fix the test")
        out = koine(of(d), "session", "list").out
        check("5f0c9a3e  running  observed" in out and "fix the test" in out, "%r", out)
        out = koine(of(d), "session", "show", "5f0c").out
        check("kind           observed" in out and "agent          claude" in out, "%r", out)
        check("koined did not start it" in koine(of(d), "session", "cancel", "5f0c", code=1).err, "told")
        for args in [], ["-f"]:
            check("cannot be followed" in koine(of(d), "session", "log", *args, "5f0c", code=1).err, "no log")
        with Terminal(of(d), "top") as t:
            t.expect("fix the test")
            t.type("q")
            t.leave()


def test_without_a_daemon_nothing_is_remembered():
    with Folder() as f:
        env = environment(KOINE_SOCKET=f("none.sock"))
        with Hook(env, {"session_id": "abc", "cwd": f.path, "hook_event_name": "SessionStart"}) as h:
            same(h.end(), None, "nothing")
            check("koined is not running: no answer at" in h.err, "%r", h.err)


def test_on_a_terminal_it_says_that_it_waits():
    with Daemon() as d, d.connect() as c:
        with Terminal(of(d), "hook") as t:
            t.type(json.dumps(PLAIN) + "\n\x04")
            t.expect("waiting for a decision (see: koine approvals)")
            id = waiting(c)[0]["id"]
            t.expect(id[:8])
            c.call("approval.decide", {"id": id, "decision": "approve"})
            t.expect('"decision":"approved"')
            t.leave()


if __name__ == "__main__":
    main(globals())
