#!/usr/bin/env python3
"""
koine hook with a real koined: up, down, restarted while it waits; decided, late, killed. What
agents send and want to read is in ../vectors/hooks.json.
"""
import contextlib
import json
import os
import signal
import subprocess

from harness import (KOINE, PATIENCE, SANITIZER, SOURCE, Client, Daemon, Folder, check, main, same,
                     wait_until)
from test_chat_cli import Terminal, environment, of

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
              "permissionDecisionReason": "nobody answered in time"}, "PreToolUse")
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


def test_without_a_daemon_the_agent_asks_by_itself():
    with Folder() as folder:
        env = environment(KOINE_SOCKET=folder("koine.sock"))
        for told in (PRE, PERMISSION):
            with Hook(env, told) as hook:
                same(hook.end(), None, "printed")
                check("no koined at" in hook.err, "%r", hook.err)
        with Hook(env, PLAIN) as hook:
            same(hook.end(), {"decision": "unavailable", "comment": "", "approval_id": None}, "plain")


def test_what_is_no_hooks_json_decides_nothing():
    with Daemon() as d, d.connect() as c:
        for told in (b"", b"{", b"[]", b"{}", b"\xff", dict(PRE, hook_event_name="Notification"),
                     dict(PERMISSION, tool_name="")):
            with Hook(of(d), told) as hook:
                same(hook.end(), None, "printed for %.40r" % told)
                check(hook.err.startswith("koine: "), "%r", hook.err)
        with Hook(of(d), dict(PRE, hook_event_name="Notification")) as hook:
            same(hook.end(), None, "printed")
            same(hook.err, "koine: there is nothing to decide about this event\n", "it is a hook's JSON")
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
                check("koined has left" in answered.err, "%r", answered.err)
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
        same(sorted(start["additionalContext"].splitlines()[1:]),
             ["- deploy with make ship", "- the team deploys on Tuesdays"], "of this project")
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


def test_without_a_daemon_nothing_is_remembered():
    with Folder() as f:
        env = environment(KOINE_SOCKET=f("none.sock"))
        with Hook(env, {"session_id": "abc", "cwd": f.path, "hook_event_name": "SessionStart"}) as h:
            same(h.end(), None, "nothing")
            check("no koined at" in h.err, "%r", h.err)


def test_on_a_terminal_it_says_that_it_waits():
    with Daemon() as d, d.connect() as c:
        with Terminal(of(d), "hook") as t:
            t.type(json.dumps(PLAIN) + "\n\x04")
            t.expect("it waits for a human: see koine approvals ")
            id = waiting(c)[0]["id"]
            t.expect(id[:8])
            c.call("approval.decide", {"id": id, "decision": "approve"})
            t.expect('"decision":"approved"')
            t.leave()


if __name__ == "__main__":
    main(globals())
