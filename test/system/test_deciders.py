#!/usr/bin/env python3
"""
Who decides: never the agent that asks, nor what it has started, nor what koined runs; and every
decision says by whom it was.

The test itself is the person here. Agents are programs that it starts.
"""
import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys

from harness import KOINE, PATIENCE, Client, Daemon, Folder, Skip, check, installed, main, reachable, same, wait_until
from task_world import World
from test_chat_cli import Terminal, koine, of

NO = ("--set", "approval.agents_decide=no")

# An agent: does what it reads, line by line, and tells what came of it.
AGENT = r"""
import ctypes, json, subprocess, sys
sys.path.insert(0, %r)
from harness import Client
PR_SET_DUMPABLE, PR_SET_NAME = 4, 15
if "renamed" in sys.argv[2]:
    ctypes.CDLL(None).prctl(PR_SET_NAME, b"systemd", 0, 0, 0)
if "undumpable" in sys.argv[2]:
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
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

    def __init__(self, daemon, disguise="", command=None, user=None):
        command = command or [sys.executable, "-c", AGENT, daemon.address("unix"), disguise]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        user=user, group=user,
                                        extra_groups=None if user is None else [],
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

    def __init__(self, daemon, address=None, method="approval.create", params=None, calls=None):
        script = (
            "import json, sys\nsys.path.insert(0, %r)\nfrom harness import Client\nc = Client(%r)\n"
            "def call(m, p):\n"
            "    print(c.call_text(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': m, 'params': p})"
            ".encode()).decode(), flush=True)\n"
            "call(%r, %r)\n"
            "c = Client(%r) if %r else c\n"
            "for line in open(%r):\n    exec(line)\n")
        self.fifo = os.path.join(daemon.root, "fifo-%d" % len(os.listdir(daemon.root)))
        os.mkfifo(self.fifo)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script % (
                os.path.dirname(os.path.abspath(__file__)), address or daemon.address("unix"), method,
                params or {"tool": "Bash", "input": {"command": "make"}}, calls, calls, self.fifo)],
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


def refused(answer, words="an agent that requests approvals"):
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
                refused(answer, "cannot identify the process that sent the decision")
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
            check(code == 1 and "an agent that requests approvals" in err, "%r: %r %r", words, code, err)
        same(status(d, agent.id), "pending", "still")
        same(koine(of(d), "approve", agent.id).code, 0, "the person")
        same(status(d, agent.id), "approved", "decided")


def test_nor_does_it_hand_out_the_right_to():
    with Daemon(*NO) as d, Asker(d) as agent:
        refused(agent.call("approval.grant", {"tool": "Bash"}))
        code, _, err = agent.run(KOINE, "call", "approval.grant", '{"tool":"*"}')
        check(code == 1 and "an agent that requests approvals" in err, "%r", err)
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
            check(code == 1 and "an agent that requests approvals" in err, "%r", err)
            refused(agent.call("approval.decide", {"id": id, "decision": "approve"}))
            same(c.call("approval.decide", {"id": id, "decision": "approve"})["status"], "approved", "by us")
        check('"permissionDecision":"allow"' in agent.do(wait=True), "told")


def test_asking_again_from_a_child_does_not_change_who_asked():
    """Otherwise an agent could hand its question to a child, of which it is no descendant, and decide it."""
    hook = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    child = ("import json, sys\nsys.path.insert(0, %r)\nfrom harness import Client, request\nc = Client(%r)\n"
             "c.send(request('approval.request', %r) + b'\\n' + request('rpc.cancel', {'id': 1}, 2) + b'\\n')\n"
             "c.read_line(), c.read_line()\nc.call('approval.create', {'tool': 'marker'})\nc.more()\n")
    with Daemon(*NO) as d, Agent(d) as agent, d.connect() as c:
        agent.do(start=["sh", "-c", "%s hook; true" % shlex.quote(KOINE)], input=json.dumps(hook))
        asked = wait_until(lambda: c.call("approval.list")["approvals"], "the question")[0]
        asked = c.call("approval.get", {"id": asked["id"]})
        same_question = {k: asked[k] for k in ("id", "kind", "agent", "tool", "input") if asked[k]}
        agent.do(start=["sh", "-c", "exec \"$0\" -c \"$1\" </dev/null", sys.executable, child % (
            os.path.dirname(os.path.abspath(__file__)), d.address("unix"), same_question)], input="")
        wait_until(lambda: c.call("approval.list")["approvals"][1:], "the child has asked the same")
        refused(agent.call("approval.decide", {"id": asked["id"], "decision": "approve"}))
        same(status(d, asked["id"]), "pending", "still")
        c.call("approval.decide", {"id": asked["id"], "decision": "deny"})


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
            check(code == 1 and "an agent that requests approvals" in err, "%s: %r", line, err)
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
                check("programs that koined starts cannot decide" in w.read("out%d" % i), "%r", w.read("out%d" % i))
        same(status(d, agent.id), "pending", "still")


def test_a_port_knows_who_decides():
    with Daemon(*NO, listen=["unix:ROOT/koine.sock", "tcp:127.0.0.1:0"]) as d:
        address = d.address("tcp")
        with Asker(d, address=address) as agent:
            refused(agent.call("approval.decide", {"id": agent.id, "decision": "approve"}))
            code, _, err = agent.run(KOINE, "approve", agent.id)
            check(code == 1 and "an agent that requests approvals" in err, "%r", err)
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
            check(result["success"] is False and "an agent that requests approvals" in result["error"], "%r", answer)


def test_who_wants_it_lets_them():
    with Daemon("--set", "approval.agents_decide=yes") as d, Asker(d) as agent:
        got = agent.call("approval.decide", {"id": agent.id, "decision": "approve"})["result"]
        same((got["status"], got["decided_from"]["pid"]), ("approved", agent.process.pid), "decided")
        check("result" in agent.call("approval.grant", {"tool": "Bash"}), "granted")


# ---- who chooses which program runs ----

# Names of parameters that choose it, and methods that choose it by being called.
CHOOSING = {"command", "cwd", "env", "runner", "workdir", "working_dir", "mcp_config", "additional_directories",
            "permission_prompt_tool", "allowed_tools", "allowed_write_paths"}
# Parameters whose name or description sounds so and that choose nothing that runs: a project must be served.
NAMED = re.compile("dir|folder|path|cwd|env|command|program|runner|config|tool|skip", re.I)
DESCRIBED = re.compile("folder|program|environment", re.I)
HARMLESS = {"project", "host", "model", "preset", "origin", "tool", "tools", "Tools", "tool_name", "tool_input", "tool_results",
            "tool_use_id", "disable_tools", "disallowed_tools", "dangerously_skip_permissions",
            "dangerously_skip_permissions_timeout", "agent.note folder", "project.show folder", "project.distrust folder",
            "store.backup path", "session.paths limit", "getRecentPaths limit", "RPCService.MemoryGet Path", "Agent.MemoryGet Path"}
SWITCHES = {"task.run", "task.retry", "task.release", "task.enqueue", "task.edit", "task.resume", "task.parallel",
            "automation.run", "automation.enable", "automation.disable", "project.trust", "notify.test",
            "daemon.restart"}
WITHOUT_EFFECT = {"daemon.restart": {"by_manager": True}}
VALUES = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": ["x"],
          "object": {"x": "y"}}
PROGRAM = """
[agent tool]
kind = command
command = /bin/false
[agent talker]
kind = recall
"""


# Those of dialects that do not describe their methods: what they need, and what agents may not set.
OTHERS = {
    "aiwg": [("automation.enable", {}, None), ("automation.disable", {}, None)],
    "hld": [("launchSession", {"query": "x"}, "working_dir"), ("launchSession", {"query": "x"}, "mcp_config"),
            ("launchSession", {"query": "x"}, "permission_prompt_tool"),
            ("launchSession", {"query": "x"}, "allowed_tools"),
            ("launchSession", {"query": "x"}, "additional_directories"),
            ("continueSession", {"session_id": "x", "query": "x"}, "mcp_config"),
            ("continueSession", {"session_id": "x", "query": "x"}, "permission_prompt_tool"),
            ("continueSession", {"session_id": "x", "query": "x"}, "allowed_tools"),
            ("continueSession", {"session_id": "x", "query": "x"}, "additional_directories")],
}
GIVEN = {"mcp_config": {"mcpServers": {"x": {"command": "x"}}}, "working_dir": "/",
         "permission_prompt_tool": "x", "allowed_tools": ["x"], "additional_directories": ["/"]}


def choices_of(person):
    for method in person.call("rpc.discover")["methods"]:
        names = {p["name"] for p in method["params"]} & CHOOSING
        for choice in {None} if method["name"] in SWITCHES else names:
            yield method["name"], {p["name"]: VALUES[p["schema"].get("type", "string")]
                                   for p in method["params"] if p.get("required") or p["name"] == choice} \
                | WITHOUT_EFFECT.get(method["name"], {}), choice


def test_an_agent_does_not_choose_which_program_runs():
    with Folder() as folder:
        with open(folder("koine.conf"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        with Daemon(*NO, "--config", folder("koine.conf"), "--listen", "koine=on", "--listen", "aiwg=on",
                    "--listen", "hld=on", possible=("could not start session",)) as d:
            n = 0
            for dialect in ("koine", "aiwg", "hld"):
                address = d.address("unix", dialect)
                with Client(address) as person, Asker(d, calls=address) as agent:
                    for method, params, choice in OTHERS.get(dialect) or choices_of(person):
                        if choice and choice not in params:
                            params = {**params, choice: GIVEN[choice]}
                            if method == "continueSession" and choice == "mcp_config":
                                params[choice] = json.dumps(params[choice])
                        words = "agents may not %s:" % ("set " + choice if choice else "call " + method)
                        told = json.dumps(agent.call(method, params))
                        check(words in told, "%s %s %s: %s", dialect, method, params, told)
                        mine = person.call_text(json.dumps(
                            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
                        check(b"agents may not" not in mine, "%s %s: %r", dialect, method, mine)
                        n += 1
            check(n > 20, "only %d were tried", n)


def test_every_parameter_that_may_choose_a_program_is_tested_or_harmless():
    with Daemon(*NO, "--listen", "koine=on") as d, d.connect() as c, d.connect() as mcp:
        mcp.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}})
        rows = {m["name"]: {p["name"]: p for p in m["params"]} for m in c.call("rpc.discover")["methods"]}
        rows.update((t["name"], t["inputSchema"]["properties"]) for t in mcp.call("tools/list")["tools"])
        found = {(method, name) for method, fields in rows.items() for name, p in fields.items()
                 if NAMED.search(name) or DESCRIBED.search(p.get("description", ""))}
        check(len(found) > 40, "only %d are there", len(found))
        same(sorted("%s %s" % (method, name) for method, name in found
                    if method not in SWITCHES and name not in CHOOSING | HARMLESS
                    and "%s %s" % (method, name) not in HARMLESS), [], "neither tested nor harmless")


def test_an_agent_gives_tasks_no_folder_over_mcp_but_its_own():
    with Daemon(*NO, "--listen", "koine=on") as d, Asker(d, calls=d.address("unix", "koine")) as agent:
        told = agent.call("mcp.open", {"folder": "/", "tools": ["tasks"]})
        check("agents may not set folder:" in json.dumps(told), "%r", told)
        same(agent.call("mcp.open", {"folder": os.getcwd(), "tools": ["tasks"]}).get("result"), {}, "its own")
        with d.connect() as person:
            same(person.call("mcp.open", {"folder": "/", "tools": ["tasks"]}), {}, "a person's")


def test_an_agent_talks_to_models_but_starts_no_agent_that_is_a_program():
    with Folder() as folder:
        with open(folder("koine.conf"), "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        with Daemon(*NO, "--config", folder("koine.conf")) as d, Asker(d) as agent:
            for params, may in (({}, True), ({"env": {}, "runner": None}, True),
                                ({"env": {"PATH": "/tmp"}}, False), ({"env": {"LANG": "C"}}, False)):
                told = agent.call("task.add", {"prompt": "p", "stash": True, **params})
                same("result" in told, may, "%r" % told)
            for name, may in (("tool", False), ("talker", True)):
                told = json.dumps(agent.call("chat.stream", {"content": "hello", "agent": name}))
                same("agents may not set agent" in told, not may, told)


# What a client of the gateway says with a model of its choosing, by a request and on a WebSocket.
GATEWAY = """
import json, sys
sys.path.insert(0, %r)
from harness import Client, post
from websocket_client import WebSocket
address, model = sys.argv[1:]
asked = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
print(json.dumps(post(Client(address), json.dumps(asked).encode(), "/v1/chat/completions",
                      headers="Authorization: Bearer secret\\r\\n").body.decode()))
with WebSocket(address, "/ws/chat?token=secret") as w:
    w.say({"type": "chat", "content": asked})
    w.say({"type": "chat", "content": asked})
    print(json.dumps([w.hear(), w.hear()]))
""" % os.path.dirname(os.path.abspath(__file__))


def test_an_agent_chooses_no_program_at_the_gateway():
    with Folder() as folder:
        mark = folder("ran")
        with open(folder("koine.conf"), "w", encoding="utf-8") as f:
            f.write(PROGRAM.replace("/bin/false", "sh -c 'touch %s'" % mark) + "[chat]\nagent = talker\n")
        with Daemon(*NO, "--config", folder("koine.conf"), "--listen", "koine=on", "--listen", "gateway=on",
                    env={"OPENCLAW_UI_TOKEN": "secret"}) as d, Asker(d) as agent:
            for model, may in ("talker", True), ("tool", False):
                code, out, err = agent.run(sys.executable, "-c", GATEWAY, d.address("http", "gateway"), model)
                same(code, 0, err)
                for line in out.splitlines():
                    same("agents may not set model" not in line, may, line)
                same(out.count("agents may not set model"), 0 if may else 3, out)
            check(not os.path.exists(mark), "the program ran")
            done = subprocess.run([sys.executable, "-c", GATEWAY, d.address("http", "gateway"), "tool"],
                                  stdout=subprocess.PIPE, check=True)
            check(b"may not" not in done.stdout and os.path.exists(mark), "a person: %r", done.stdout)


def test_an_agent_gives_tasks_to_models_but_to_no_program():
    """By either of the names that a client may use for who runs a task, and over MCP."""
    def add(agent, name):
        return agent.call("tools/call", {"name": "task_add", "arguments": {"prompt": "p", "agent": name}})

    with Folder() as folder:
        mark = folder("ran")
        with open(folder("koine.conf"), "w", encoding="utf-8") as f:
            f.write(PROGRAM.replace("/bin/false", "sh -c 'touch %s'" % mark))
        with Daemon(*NO, "--config", folder("koine.conf"), "--listen", "koine=on", "--listen", "aiwg=on",
                    possible=("task failed",)) as d:
            with Asker(d, calls=d.address("unix", "aiwg")) as agent:
                told = json.dumps(agent.call("task.submit", {"prompt": "p", "agent": "tool"}))
                check("agents may not set agent" in told, "%r", told)
            with d.connect() as person, Asker(d) as agent:
                for method in "task.add", "task.submit":
                    for name, may in ("tool", False), ("talker", True), ("reviewer", True):
                        told = agent.call(method, {"prompt": "p", "agent": name})
                        same("agents may not set agent" not in json.dumps(told), may, "%s %s: %r" % (method, name, told))
                    same(os.path.exists(mark), False, "the program ran")
                    person.call(method, {"prompt": "p", "agent": "tool"})
                    wait_until(lambda: os.path.exists(mark), "a person's task")
                    os.unlink(mark)
            with Asker(d, calls=d.address("unix", "koine")) as agent:
                agent.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                          "clientInfo": {"name": "x", "version": "1"}})
                for name, may in ("tool", False), ("claude", False), ("talker", True):
                    told = json.dumps(add(agent, name))
                    same("agents may not set agent" not in told, may, told)
            check(not os.path.exists(mark), "the program ran")


# ---- a user of the machine ----

HOOK = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash",
                   "tool_input": {"command": "make"}})
ANN, ANN_UID = "koine-ann", 54321
SSHD = "/usr/sbin/sshd"


class Ann(Daemon):
    """koined of a user who is not root, and whose account exists in a mount namespace only."""

    def __init__(self, *needed, mount=True):
        if os.getuid() != 0 or not reachable(ANN_UID):
            raise Skip("only root can be somebody else")
        for program in needed:
            installed(program)
        if mount and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            raise Skip("no mount namespace here")
        super().__init__(*NO, user=ANN_UID, group=ANN_UID, extra_groups=[])

    def start(self):
        os.chown(self.root, ANN_UID, ANN_UID)
        super().start()

    def file(self, name, text, owner=0, mode=0o644):
        path = os.path.join(self.root, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def in_machine(self, *command):
        """The command, where Ann has an account and may use sudo to become herself."""
        files = {"/etc/passwd": ("%s:x:%d:%d::%s:/bin/sh" % (ANN, ANN_UID, ANN_UID, self.root), 0o644),
                 "/etc/group": ("%s:x:%d:" % (ANN, ANN_UID), 0o644),
                 "/etc/shadow": ("%s:*:1::::::" % ANN, 0o600),
                 "/etc/sudoers": ("%s ALL=(%s) NOPASSWD: ALL" % (ANN, ANN), 0o440)}
        script = ""
        for path, (more, mode) in files.items():
            before = ""
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    before = f.read()
            own = self.file("machine" + path.replace("/", "-"), before + more + "\n", mode=mode)
            script += "[ -e %s ] || : > %s; mount --bind %s %s; " % (path, path, own, path)
        return ["unshare", "-m", "sh", "-ec", script + 'exec "$@"', "sh", *command]

    def question(self):
        with Client(self.address("unix")) as c:
            return wait_until(lambda: c.call("approval.list", {"status": "pending"})["approvals"],
                              "the question")[0]["id"]

    def agent_words(self, disguise=""):
        return ["/usr/bin/python3", "-c", AGENT, self.address("unix"), disguise]

    def settle(self, agent, by=("setpriv", "--reuid=%d" % ANN_UID, "--regid=%d" % ANN_UID,
                               "--clear-groups")):
        """The agent asks, is refused, and a person decides."""
        agent.do(start=["sh", "-c", "%s --socket %s hook; true" % (shlex.quote(KOINE), self.socket_path)],
                 input=HOOK)
        id = self.question()
        code, _, err = agent.do(run=[KOINE, "--socket", self.socket_path, "approve", id])
        check(code == 1 and "an agent that requests approvals" in err, "it decides: %r %r", code, err)
        same(status(self, id), "pending", "still")
        done = subprocess.run([*by, KOINE, "--socket", self.socket_path, "approve", id],
                              capture_output=True, text=True, timeout=PATIENCE)
        same((done.returncode, done.stdout), (0, id.replace("local-", "")[:8] + " approved\n"),
             "the person (%r)" % done.stderr)
        check('"allow"' in agent.do(wait=True), "told")


def test_an_agent_that_renames_itself_or_cannot_be_read_is_still_the_asker():
    with Ann(mount=False) as d:
        for disguise in ("renamed", "undumpable", "renamed undumpable"):
            with Agent(d, command=d.agent_words(disguise), user=ANN_UID) as agent:
                d.settle(agent)
        for name in ("bash", "tmux", "systemd"):
            program = os.path.join(d.root, name)
            shutil.copy("/usr/bin/python3", program)
            os.chown(program, ANN_UID, ANN_UID)
            with Agent(d, command=[program, *d.agent_words()[1:]], user=ANN_UID) as agent:
                d.settle(agent)


def test_an_agent_behind_sudo_is_still_the_asker():
    with Ann("sudo") as d:
        become = d.in_machine("sudo", "-u", ANN)
        with Agent(d, command=[*become, *d.agent_words()]) as agent:
            agent.do(start=["sudo", "-u", ANN, KOINE, "--socket", d.socket_path, "hook"], input=HOOK)
            id = d.question()
            code, _, err = agent.do(run=["sudo", "-u", ANN, KOINE, "--socket", d.socket_path, "approve", id])
            check(code == 1 and "an agent that requests approvals" in err, "%r %r", code, err)
            done = subprocess.run([*become, KOINE, "--socket", d.socket_path, "approve", id],
                                  capture_output=True, text=True, timeout=PATIENCE)
            same(done.returncode, 0, "a person behind sudo (%r)" % done.stderr)


def test_a_person_who_shares_an_ssh_connection_with_an_agent_decides():
    with Ann(SSHD, "ssh", "ssh-keygen") as d, contextlib.ExitStack() as stack:
        for name in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(d.root, name)],
                           check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        with open(os.path.join(d.root, "key.pub"), encoding="utf-8") as f:
            d.file("authorized", f.read())
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as s:
            port = s.getsockname()[1]
        config = d.file("sshd_config", "Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\n"
                        "AuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\n"
                        % (port, d.root, d.root))
        server = subprocess.Popen(d.in_machine(SSHD, "-D", "-e", "-f", config), stderr=subprocess.PIPE)
        stack.callback(server.wait)
        stack.callback(server.stderr.close)
        stack.callback(server.terminate)
        wait_until(lambda: b"listening on" in server.stderr.readline(), "sshd")

        def ssh(*options):
            return ["ssh", "-F", "none", "-p", str(port), "-i", os.path.join(d.root, "key"), "-l", ANN,
                    "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                    "-o", "LogLevel=ERROR", *options, "127.0.0.1"]

        shared = ("-S", os.path.join(d.root, "ctl"))
        subprocess.run(ssh(*shared, "-M", "-f", "-N"), check=True, timeout=PATIENCE)
        stack.callback(subprocess.run, ssh(*shared, "-q", "-O", "exit"), capture_output=True)
        for options in (shared, ()):
            with Agent(d, command=[*ssh(*options), shlex.join(d.agent_words())]) as agent:
                d.settle(agent, by=ssh(*options))
        # What ssh itself starts is asked by nobody who has the connection.
        hook = subprocess.Popen([*ssh(*shared), "%s --socket %s hook; true" % (KOINE, d.socket_path)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        hook.stdin.write(HOOK.encode())
        hook.stdin.close()
        done = subprocess.run([*ssh(*shared), KOINE, "--socket", d.socket_path, "approve", d.question()],
                              capture_output=True, text=True, timeout=PATIENCE)
        same(done.returncode, 0, "in another session (%r)" % done.stderr)
        check(b'"allow"' in hook.stdout.read(), "told")
        hook.stdout.close()
        hook.wait()


def test_a_person_who_shares_a_tmux_server_with_an_agent_decides():
    with Ann("tmux", mount=False) as d, contextlib.ExitStack() as stack:
        as_ann = {"user": ANN_UID, "group": ANN_UID, "extra_groups": [], "timeout": PATIENCE, "check": True,
                  "env": {**os.environ, **of(d), "TMUX_TMPDIR": d.root}}
        tmux = ["tmux", "-S", os.path.join(d.root, "tmux"), "-f", "/dev/null"]
        fifos = [os.path.join(d.root, name) for name in ("in", "out")]
        for fifo in fifos:
            os.mkfifo(fifo)
            os.chown(fifo, ANN_UID, ANN_UID)
        words = shlex.join(d.agent_words("undumpable"))
        subprocess.run([*tmux, "new-session", "-d", "sleep 1000"], **as_ann)
        subprocess.run([*tmux, "new-window", "-d", "%s <%s >%s" % (words, *fifos)], **as_ann)
        stack.callback(subprocess.run, [*tmux, "kill-server"], **as_ann)
        with Agent(d, command=["sh", "-c", "cat <%s & cat >%s" % (fifos[1], fifos[0])]) as agent:
            d.settle(agent, by=["/usr/bin/python3", "-c", IN_WINDOW, d.root, *tmux])
        subprocess.run([*tmux, "run-shell", "-b", "echo %s | %s --socket %s hook >%s/told" % (
            shlex.quote(HOOK), KOINE, d.socket_path, d.root)], **as_ann)
        done = subprocess.run(["/usr/bin/python3", "-c", IN_WINDOW, d.root, *tmux, KOINE, "--socket",
                               d.socket_path, "approve", d.question()], capture_output=True, text=True)
        same(done.returncode, 0, "in a window of the server that asks (%r)" % done.stderr)


# What a command says that runs in a window of its own: ROOT TMUX -S SOCKET -f FILE COMMAND...
IN_WINDOW = r"""
import os, shlex, subprocess, sys
root, tmux, command = sys.argv[1], sys.argv[2:7], sys.argv[7:]
os.setgroups([]); os.setgid(%d); os.setuid(%d)
out = os.path.join(root, "window")
line = "%%s >%%s 2>&1; echo $? >%%s.code; tmux -S %%s wait-for -S ended" %% (
    shlex.join(command), out, out, shlex.quote(tmux[2]))
subprocess.run([*tmux, "new-window", line], check=True)
subprocess.run([*tmux, "wait-for", "ended"], check=True)
sys.stdout.write(open(out).read())
sys.exit(int(open(out + ".code").read()))
""" % (ANN_UID, ANN_UID)


def test_a_shell_without_a_terminal_is_no_person():
    """An agent that writes commands into a shell, through a pipe."""
    with Daemon(*NO) as d, Agent(d) as agent:
        agent.do(start=["sh"], input="printf '%%s' '%s' | %s hook\n" % (HOOK, shlex.quote(KOINE)))
        with d.connect() as c:
            id = wait_until(lambda: c.call("approval.list")["approvals"], "the question")[0]["id"]
            refused(agent.call("approval.decide", {"id": id, "decision": "approve"}))
            c.call("approval.decide", {"id": id, "decision": "approve"})
        check('"allow"' in agent.do(wait=True), "told")


if __name__ == "__main__":
    main(globals())
