#!/usr/bin/env python3
"""
Who decides: never the agent that asks, nor what it has started, nor what koined runs; and every
decision says by whom it was.

The test itself is the person here. Agents are programs that it starts.
"""
import json
import os
import shlex
import subprocess
import sys

from harness import Client, Daemon, KOINE, PATIENCE, check, main, same, wait_until
from task_world import World
from test_chat_cli import Terminal, koine, of

NO = ("--set", "approval.agents_decide=no")

# An agent: does what it reads, line by line, and tells what came of it.
AGENT = r"""
import json, subprocess, sys
sys.path.insert(0, %r)
from harness import Client
client = Client(sys.argv[1])
for line in sys.stdin:
    what = json.loads(line)
    if "run" in what:
        done = subprocess.run(what["run"], input=what.get("input", "").encode(), capture_output=True)
        answer = [done.returncode, done.stdout.decode(), done.stderr.decode()]
    elif "start" in what:
        child = subprocess.Popen(what["start"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdin.write(what["input"].encode())
        child.stdin.close()
        answer = child.pid
    elif "wait" in what:
        answer = child.stdout.read().decode()
        child.wait()
    else:
        answer = json.loads(client.call_text(json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": what["call"], "params": what["params"]}).encode()))
    print(json.dumps(answer), flush=True)
""" % os.path.dirname(os.path.abspath(__file__))


class Agent:
    """A program that starts others, and talks to them by pipes."""

    def __init__(self, daemon):
        self.process = subprocess.Popen([sys.executable, "-c", AGENT, daemon.address("unix")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **of(daemon)})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)

    def do(self, **what):
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def call(self, method, params):
        return self.do(call=method, params=params)


def status(d, id):
    with d.connect() as c:
        return c.call("approval.get", {"id": id})["status"]


class Asker:
    """An agent of its own, as from a shell: what it asks, it asks for itself."""

    def __init__(self, daemon, address=None, method="approval.create", params=None):
        script = (
            "import json, sys\nsys.path.insert(0, %r)\nfrom harness import Client\nc = Client(%r)\n"
            "def call(m, p):\n"
            "    print(c.call_text(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': m, 'params': p})"
            ".encode()).decode(), flush=True)\n"
            "call(%r, %r)\n"
            "for line in open(%r):\n    exec(line)\n")
        self.fifo = os.path.join(daemon.root, "fifo-%d" % len(os.listdir(daemon.root)))
        os.mkfifo(self.fifo)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script % (
                os.path.dirname(os.path.abspath(__file__)), address or daemon.address("unix"), method,
                params or {"tool": "Bash", "input": {"command": "make"}}, self.fifo)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **of(daemon)})
        self.answer = json.loads(self.process.stdout.readline())
        self.id = (self.answer.get("result") or {}).get("id")
        self.words = open(self.fifo, "w", encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.words.close()
        self.process.stdout.close()
        self.process.wait(PATIENCE)
        os.unlink(self.fifo)

    def call(self, method, params):
        print("call(%r, %r)" % (method, params), file=self.words, flush=True)
        return json.loads(self.process.stdout.readline())

    def run(self, *words):
        """What it starts, and what that says."""
        print("import subprocess; d = subprocess.run(%r, capture_output=True, stdin=-3); "
              "print(json.dumps([d.returncode, d.stdout.decode(), d.stderr.decode()]), flush=True)"
              % (list(words),), file=self.words, flush=True)
        return json.loads(self.process.stdout.readline())


def refused(answer, words="an agent that asks"):
    check("error" in answer and words in answer["error"]["message"], "%r", answer)
    check("agents_decide" in answer["error"]["message"], "it says what to set: %r", answer)


def test_the_connection_that_asks_does_not_decide():
    with Daemon(*NO) as d, Asker(d) as agent:
        for decision in ("approve", "deny"):
            refused(agent.call("approval.decide", {"id": agent.id, "decision": decision, "comment": "x"}))
        same(status(d, agent.id), "pending", "still")
        with d.connect() as c:
            got = c.call("approval.decide", {"id": agent.id, "decision": "approve"})
            same(got["status"], "approved", "by somebody else")
            same(got["decided_from"]["pid"], os.getpid(), "who it was")


def test_who_hides_among_many_holders_of_a_socket_decides_nothing():
    with Daemon(*NO, listen=("unix:ROOT/koine.sock", "tcp:127.0.0.1:0")) as d, Asker(d) as agent:
        with d.connect("tcp") as c:
            holders = [subprocess.Popen(["sleep", "1000"], pass_fds=[c.socket.fileno()])
                       for _ in range(20)]
            try:
                answer = json.loads(c.call_text(json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": "approval.decide",
                     "params": {"id": agent.id, "decision": "approve"}}).encode()))
                refused(answer, "cannot be told which process")
            finally:
                for holder in holders:
                    holder.kill()
                    holder.wait()
        same(status(d, agent.id), "pending", "still")


def test_what_it_starts_does_not_decide_either():
    with Daemon(*NO) as d, Asker(d) as agent:
        for words in ((KOINE, "approve", agent.id),
                      ("sh", "-c", "%s approve %s; exit $?" % (shlex.quote(KOINE), agent.id)),
                      ("setsid", "-w", KOINE, "approve", agent.id)):
            code, _, err = agent.run(*words)
            check(code == 1 and "an agent that asks" in err, "%r: %r %r", words, code, err)
        same(status(d, agent.id), "pending", "still")
        same(koine(of(d), "approve", agent.id).code, 0, "the person")
        same(status(d, agent.id), "approved", "decided")


def test_nor_does_it_hand_out_the_right_to():
    with Daemon(*NO) as d, Asker(d) as agent:
        refused(agent.call("approval.grant", {"tool": "Bash"}))
        code, _, err = agent.run(KOINE, "call", "approval.grant", '{"tool":"*"}')
        check(code == 1 and "an agent that asks" in err, "%r", err)
        with d.connect() as c:
            grant = c.call("approval.grant", {"tool": "Bash", "verdict": "deny"})
            refused(agent.call("approval.revoke", {"id": grant["id"]}))
            same(len(c.call("approval.grants")["grants"]), 1, "it stays")
        # What it has asked for it may take back.
        same(agent.call("approval.withdraw", {"id": agent.id})["result"]["status"], "superseded", "left")


def test_an_agent_is_who_started_the_hook():
    hook = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    with Daemon(*NO) as d, Agent(d) as agent:
        agent.do(start=["sh", "-c", "%s hook; true" % shlex.quote(KOINE)], input=json.dumps(hook))
        with d.connect() as c:
            wait_until(lambda: c.call("approval.list")["approvals"], "the question")
            id = c.call("approval.list")["approvals"][0]["id"]
            code, _, err = agent.do(run=[KOINE, "approve", id])
            check(code == 1 and "an agent that asks" in err, "%r", err)
            refused(agent.call("approval.decide", {"id": id, "decision": "approve"}))
            same(c.call("approval.decide", {"id": id, "decision": "approve"})["status"], "approved", "by us")
        check('"permissionDecision":"allow"' in agent.do(wait=True), "told")


def test_an_agent_is_who_started_what_a_hook_reads_from():
    """Its command may be a line of a shell's, in which the hook reads from another pipe."""
    hook = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    with Daemon(*NO) as d, Agent(d) as agent, d.connect() as c:
        for line in ("cat | %s hook; true", "env sh -c 'true; cat | %s hook; true'; true",
                     "cat >/dev/null; exec </dev/null; echo '{\"tool_name\":\"x\"}' | env %s hook -f plain; true"):
            agent.do(start=["sh", "-c", line % shlex.quote(KOINE)], input=json.dumps(hook))
            asked = wait_until(lambda: c.call("approval.list", {"status": "pending"})["approvals"],
                               "the question")
            refused(agent.call("approval.decide", {"id": asked[0]["id"], "decision": "approve"}))
            code, _, err = agent.do(run=[KOINE, "approve", asked[0]["id"]])
            check(code == 1 and "an agent that asks" in err, "%s: %r", line, err)
            c.call("approval.decide", {"id": asked[0]["id"], "decision": "approve"})
            check("allow" in agent.do(wait=True) or "plain" in line, "told")


def test_a_shell_that_somebody_types_into_is_no_agent():
    hook = '{"tool_name":"deploy","tool_input":{"to":"production"}}'
    with Daemon(*NO) as d:
        env = of(d, PS1="$ ", ENV="")
        with Terminal(env, "-i", columns=200, program="/bin/sh") as t:
            t.type("echo '%s' | %s hook -f plain -t 300 >%s/hooked &\r" % (hook, KOINE, d.root))
            with d.connect() as c:
                wait_until(lambda: c.call("approval.list")["approvals"], "the question")
                id = c.call("approval.list")["approvals"][0]["id"]
                t.type("%s approve %s\r" % (KOINE, id))
                wait_until(lambda: status(d, id) == "approved", "the decision")
                from_ = c.call("approval.get", {"id": id})["decided_from"]
                check(from_["terminal"].startswith("pts/") and from_["uid"] == os.getuid() and
                      os.path.samefile(from_["program"], KOINE), "%r", from_)
            t.type("wait; exit\r")
            t.leave()
        out = koine(env, "approvals", id).out
        check("from       %s, pid " % os.path.realpath(KOINE) in out and ", pts/" in out, "%r", out)
        events = json.loads(koine(env, "call", "event.list", '{"types":["approval.resolved"]}').out)
        same(events["events"][0]["data"]["decided_from"], from_, "in the event")


def test_what_koined_runs_decides_nothing():
    with World() as w, w.daemon("approval.agents_decide=no") as d, Asker(d) as agent:
        with d.connect() as c:
            # With its mark and without one.
            for i, before in enumerate(("", "env -i setsid -w ")):
                text = "%s%s approve %s --socket %s >$WORLD/out%d 2>&1; true" % (
                    before, shlex.quote(KOINE), agent.id, d.socket_path, i)
                c.call("task.add", {"prompt": text})
                wait_until(lambda n=i: c.call("task.find", {"state": "completed"})["tasks"][n:], "its end")
                check("what koined runs decides nothing" in w.read("out%d" % i), "%r", w.read("out%d" % i))
        same(status(d, agent.id), "pending", "still")


def test_a_port_knows_who_decides():
    with Daemon(*NO, listen=["unix:ROOT/koine.sock", "tcp:127.0.0.1:0"]) as d:
        address = d.address("tcp")
        with Asker(d, address=address) as agent:
            refused(agent.call("approval.decide", {"id": agent.id, "decision": "approve"}))
            code, _, err = agent.run(KOINE, "approve", agent.id)
            check(code == 1 and "an agent that asks" in err, "%r", err)
            with Client(address) as c:
                got = c.call("approval.decide", {"id": agent.id, "decision": "approve"})
                same(got["decided_from"]["pid"], os.getpid(), "who it was")


def test_humanlayers_clients_are_told():
    with Daemon(*NO) as d, Asker(d) as agent:
        path = "unix:" + os.path.join(d.root, "hld.sock")
        with Asker(d, address=path, method="sendDecision",
                   params={"approval_id": agent.id, "decision": "approve"}) as other:
            same(other.answer["result"], {"success": True}, "another agent's process is another's")
        with Asker(d) as second:
            answer = second.run(sys.executable, "-c", (
                "import sys, json\nsys.path.insert(0, %r)\nfrom harness import Client\n"
                "print(json.dumps(Client(%r).call('sendDecision', {'approval_id': %r, 'decision': 'approve'})))"
            ) % (os.path.dirname(os.path.abspath(__file__)), path, second.id))
            result = json.loads(answer[1])
            check(result["success"] is False and "an agent that asks" in result["error"], "%r", answer)


def test_who_wants_it_lets_them():
    with Daemon("--set", "approval.agents_decide=yes") as d, Asker(d) as agent:
        got = agent.call("approval.decide", {"id": agent.id, "decision": "approve"})["result"]
        same((got["status"], got["decided_from"]["pid"]), ("approved", agent.process.pid), "decided")
        check("result" in agent.call("approval.grant", {"tool": "Bash"}), "granted")


if __name__ == "__main__":
    main(globals())
