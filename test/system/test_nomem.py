#!/usr/bin/env python3
"""
Each allocation of a call fails in turn, and then each step of its statements, in a koined that is linked for that
(test/failing/nomem.c). Whatever is refused or cut off, koined goes on, answers every message with JSON or closes the
connection, leaks nothing, and serves the same call as soon as there is memory again. A call that only reads has the whole
result or none, and one whose statement fails is refused and has changed nothing.
"""
import json
import mmap
import os
import re
import struct
import tempfile

import harness
from harness import PATIENCE, Client, Daemon, Failure, Folder, check, main, post, request, same, wait_until

harness.KOINED = os.path.join(os.environ["KOINE_BUILD"], "test/failing/koined_nomem")
MOST = 3000  # allocations of one call
STEPS = 60  # of its statements that are tried: a long one reads row after row
# Nothing else goes on while these are called: whatever fails is theirs.
ALONE = re.compile(r"^(memory|approval|store)\.|^(RPCService.Memory|createApproval|create_agent|destroy_agent)")
READS = re.compile(r"((?<!event.)(?<!approval.)list|get|find|show|output|search|stats|export|history|review|grants|groups|read|past|"
                   r"events|paths|rules|(?<!daemon.)status|log|context|messages|tokens|sessions|[a-z](Approval|Sessions|Leaves|"
                   r"Conversation|State|Paths))$")
SETTINGS = """
[rule daily]
cron = @daily
command = true
[policy reads]
verdict = allow
tool = Read
[group slow]
parallel = 1
"""


class Plan:
    """Which allocation fails, for a koined that was started with its environment."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="koine-nomem-")
        self.file.write(bytes(24))
        self.file.flush()
        self.page = mmap.mmap(self.file.fileno(), 24)
        self.env = {"NOMEM": self.file.name}

    def fail(self, n, steps=False):
        self.page[:] = struct.pack("QQQ", 0, 0, steps)
        self.page[:8] = struct.pack("Q", n)

    def done(self):
        """Whether it failed. From now on none does."""
        at, n, _ = struct.unpack("QQQ", self.page[:])
        self.page[:8] = bytes(8)
        return n >= at


class World:
    """A daemon, its plan, and a connection that may be cut off."""

    def __init__(self, *settings, text=""):
        self.plan = Plan()
        self.folder = harness.Folder()
        self.settings = settings
        self.text = text
        self.client = None

    def __enter__(self):
        self.folder.__enter__()
        config = self.folder("koine.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(SETTINGS + self.text)
        # What could not be done for want of memory is logged in many ways.
        env = dict(self.plan.env, OPENCLAW_UI_TOKEN="secret")
        self.d = Daemon("--config", config, *self.settings, env=env, possible=[""])
        self.d.__enter__()
        return self

    def __exit__(self, *exc):
        self.plan.done()
        try:
            return self.d.__exit__(*exc)
        finally:
            self.folder.__exit__(*exc)

    def ask_gateway(self, path, params):
        """The same of an HTTP path: POST with params, GET without."""
        body = b"" if params is None else json.dumps(params).encode()
        try:
            with Client(self.d.address("http", "gateway")) as c:
                answer = post(c, body, path, "Content-Type: application/json\r\nAuthorization: Bearer secret\r\n",
                              "GET" if params is None else "POST")
        except (ConnectionError, BrokenPipeError, Failure):
            return None
        got = json.loads(answer.body)
        return {"result": got} if answer.status == 200 else {"error": {"message": "%r" % got["error"], "code": 0}}

    def ask(self, method, params):
        """The answer; None if the connection was closed instead."""
        if method.startswith("/"):
            return self.ask_gateway(method, params)
        if not self.client:
            self.client = self.d.connect()
        try:
            self.client.send(request(method, params) + b"\n")
            while True:
                line = self.client.read_line()
                if not line:
                    raise ConnectionError
                answer = json.loads(line)
                if "id" in answer:
                    return answer
        except (ConnectionError, BrokenPipeError, Failure):
            self.client.close()
            self.client = None
            return None

    def call(self, method, **params):
        answer = self.ask(method, params)
        check(answer and "result" in answer, "%s: %r", method, answer)
        return answer["result"]

    def fail(self, method, params, n, steps):
        """The answer to a call whose allocation or step n fails; whether it did."""
        self.plan.fail(n, steps)
        answer = self.ask(method, params(n + MOST * steps) if callable(params) else params)
        failed = self.plan.done()
        check(answer is None or "result" in answer or answer["error"]["message"], "%s %d: %r", method, n, answer)
        return answer, failed

    def fail_each(self, method, params, steps=False):
        """Each allocation or step of one call, until it needs no more. How many there were."""
        reads = READS.search(method) and not callable(params)
        usual = [self.ask(method, params) for _ in range(2)] if reads else None
        if re.search("starting|queued|running", repr(usual)):
            usual = None
        for n in range(1, STEPS if steps else MOST):
            # A step may be one of the work that an earlier call has left.
            for _ in range(3 if steps else 1):
                answer, failed = self.fail(method, params, n, steps)
                if not failed:
                    return n - 1
                if not answer or "error" in answer:
                    break
            else:
                if usual:
                    check(is_like(answer, *usual), "%s %d: %r\nnot %r", method, n, answer, usual[0])
                elif steps and ALONE.search(method):
                    raise Failure("%s %d: %r" % (method, n, answer))
            self.call("ping")
        if steps:
            return STEPS
        raise Failure("%s allocates more than %d times" % (method, MOST))


def is_like(answer, one, other):
    """Whether it is what these two are. Anything may be where they differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return isinstance(answer, dict) and answer.keys() == one.keys() and all(is_like(answer[k], one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return isinstance(answer, list) and len(answer) == len(one) and all(map(is_like, answer, one, other))
    return one != other or answer == one


def each(world, *calls):
    for method, params in calls:
        n = world.fail_each(method, params)
        n_steps = world.fail_each(method, params, steps=True)
        answer = world.ask(method, params(0) if callable(params) else params)
        check(answer and ("result" in answer or answer["error"]["code"] != -32602), "%s with memory: %r", method, answer)
        harness.note("%s: %d allocations, %d steps" % (method, n, n_steps))


def test_memories_without_memory():
    with World() as w:
        kept = w.call("memory.add", content="Anna runs along the fjord every morning", subjects=["Anna"])["id"]
        each(w, ("memory.add", lambda n: {"content": "number %d is a lighthouse" % n, "subjects": ["a", "b"],
                                          "metadata": {"a": [1, "x"]}, "category": "fact", "project": "/p"}),
             ("memory.add", lambda n: {"content": "the fjord is cold in %d" % n, "replaces": kept}),
             ("memory.search", {"query": "where does anna run"}),
             ("memory.search", {"query": "ligthouse 3", "explain": True, "project": "/p"}),
             ("memory.list", {"limit": 5}), ("memory.stats", {}), ("memory.export", {"limit": 3}),
             ("memory.import", lambda n: {"entries": [{"content": "imported %d" % n}]}),
             ("memory.review", {"limit": 3}), ("memory.accept", {"memory_id": kept}),
             ("RPCService.MemorySearch", {"Query": "fjord", "Limit": 3}), ("RPCService.MemoryStore", {"Text": "a harbour"}),
             ("store.backup", lambda n: {"path": w.folder("backup%d" % n)}))
        for method, more in (("memory.get", {}), ("memory.history", {}), ("memory.update", {"content": "she swims"}),
                             ("memory.delete", {}), ("memory.deleted", None), ("memory.restore", {}),
                             ("memory.delete", {"purge": True})):
            id = w.call("memory.add", content="Berta reads at the harbour")["id"]
            if method == "memory.restore":
                w.call("memory.delete", memory_id=id)
            each(w, (method, {} if more is None else {"memory_id": id, **more}))
        found = [m["content"] for m in w.call("memory.search", query="lighthouse", project="/p")]
        check(any("lighthouse" in text for text in found), "%r, of %r", found, w.call("memory.list", project="/p"))


def test_tasks_without_memory():
    with World() as w:
        stashed = w.call("task.add", prompt="x", stash=True)["id"]
        ended = w.call("task.add", prompt="x")["id"]
        w.call("task.wait", id=ended)
        failed = w.call("task.run", command=["false"])["id"]
        w.call("task.wait", id=failed)
        each(w, ("task.add", {"prompt": "where does anna run", "env": {"A": "b"}, "metadata": {"a": 1}, "label": "l"}),
             ("task.add", {"prompt": "later", "after": [stashed], "group": "slow", "delay": 1000}),
             ("task.run", {"command": ["echo", "a b"], "cwd": "/tmp", "group": "slow"}),
             ("task.submit", {"prompt": "x", "priority": 3}), ("task.find", {"limit": 10}),
             ("task.find", {"state": "completed", "open_first": True}), ("task.list", {}), ("task.stats", {}),
             ("task.show", {"id": ended}), ("task.output", {"id": ended}), ("task.wait", {"id": ended}),
             ("task.follow", {"id": ended}), ("task.edit", {"id": stashed, "prompt": "y", "priority": 7, "label": "z"}),
             ("task.groups", {}), ("task.pause", {"group": "slow"}), ("task.resume", {"group": "slow"}),
             ("task.parallel", {"parallel": 2, "group": "slow"}), ("task.retry", {"id": failed}),
             ("task.enqueue", {"id": stashed}), ("task.stash", {"id": stashed}),
             ("task.release", {"id": stashed}), ("task.get", {"taskId": ended}), ("chat.send", {"message": "hi"}),
             ("task.cancel", {"taskId": stashed}), ("task.clean", {"group": "slow"}))
        again = w.call("task.run", command=["echo", "well"])["id"]
        same(w.call("task.wait", id=again)["state"], "completed", "a task with memory")
        wait_until(lambda: not w.call("task.find", state="running")["tasks"], "all to end")


def test_approvals_without_memory():
    with World() as w:
        each(w, ("approval.create", lambda n: {"tool": "Bash", "id": "a%d" % n, "input": {"command": "ls %d" % n}, "agent": "x"}),
             ("approval.request", lambda n: {"tool": "Read", "id": "r%d" % n, "input": {"path": "/x"}, "by_rules": True}),
             ("hook.run", lambda n: {"id": "h%d" % n, "input": {
                 "hook_event_name": "PermissionRequest", "tool_name": "mcp__koine__task_list", "tool_input": {"n": n}}}),
             ("approval.list", {}), ("approval.get", {"id": "a1", "exact": True}), ("approval.grants", {}),
             ("approval.grant", lambda n: {"tool": "Bash", "pattern": "make %d*" % n, "verdict": "allow", "for": 1000}),
             ("createApproval", {"run_id": "r", "tool_name": "Edit", "tool_input": {"a": 1}}), ("fetchApprovals", {}))
        grant = w.call("approval.grants")["grants"][0]["id"]
        each(w, ("approval.revoke", {"id": grant}), ("getApproval", {"approval_id": "a1"}))
        for method, params in (("approval.decide", {"decision": "approve", "comment": "well"}),
                               ("approval.decide", {"decision": "deny", "comment": "no"}), ("approval.withdraw", {})):
            id = w.call("approval.create", tool="Edit", input={"path": "/y"})["id"]
            each(w, (method, {"id": id, **params}))
            check(w.call("approval.get", id=id)["status"] != "pending", "%s: it is pending", method)


def test_denial_without_memory_is_worded_or_an_error():
    denied = {"hook_event_name": "PreToolUse", "turn_id": "t", "tool_name": "Delete", "tool_input": {"path": "/x"}}
    answers = []

    with World(text="[policy no]\nverdict = deny\ntool = Delete\n") as w:
        ask = w.ask

        def asked(method, params):
            answer = ask(method, params)
            if method == "hook.run" and answer and "result" in answer:
                answers.append(answer["result"])
            return answer

        w.ask = asked
        each(w, ("hook.run", lambda n: {"id": "h%d" % n, "input": denied}))
    check(answers, "no answer")
    for result in answers:
        same(result["output"]["hookSpecificOutput"]["permissionDecision"], "deny", "%r" % result)


def test_conversations_without_memory():
    with World() as w:
        w.call("memory.add", content="Anna runs along the fjord")
        each(w, ("send", {"content": "where does Anna run?"}), ("get_context", {}), ("get_tokens", {}),
             ("get_messages", {"limit": 3}), ("list_agents", {}), ("chat.agents", {}), ("chat.past", {}),
             ("chat.stream", {"content": "who runs?"}), ("RPCService.Chat", {"Messages": [{"Role": "user", "Content": "hi"}]}),
             ("create_agent", lambda n: {"agent_id": "agent%d" % n, "system_prompt": "be brief"}),
             ("chat.read", {"number": 1}), ("chat.purge", {"before": "2000-01-01"}), ("chat.purge", {"number": 2}),
             ("compact", {"force": True}), ("destroy_agent", lambda n: {"agent_id": "agent%d" % n}))
        check("fjord" in w.call("send", content="where does Anna run?")["content"], "an answer with memory")


def test_sessions_without_memory():
    with World("--set", "session.program=true") as w:
        one = w.ask("session.launch", {"query": "x", "working_dir": "/tmp"})
        check(one is not None, "no answer")
        each(w, ("session.list", {}), ("session.paths", {}), ("listSessions", {}), ("getSessionLeaves", {}),
             ("agent.note", lambda n: {"what": "asked", "agent": "claude", "session_id": "s%d" % n, "folder": "/tmp", "text": "hi"}),
             ("hook.run", lambda n: {"input": {"hook_event_name": "UserPromptSubmit", "session_id": "h%d" % n,
                                               "cwd": "/tmp", "prompt": "hi"}}))
        id = w.call("session.list")["sessions"][0]["id"]
        each(w, ("session.get", {"id": id}), ("session.events", {"id": id}), ("getConversation", {"session_id": id}),
             ("session.rename", {"id": id, "title": "t"}), ("session.archive", {"id": id}),
             ("session.continue", {"id": id, "query": "y"}), ("session.interrupt", {"id": id}),
             ("launchSession", {"query": "x", "working_dir": "/tmp", "allowed_tools": ["Read"], "max_turns": 3,
                                "mcp_config": {"mcpServers": {"a": {"command": "true", "args": ["b"], "env": {"C": "d"}}}}}),
             ("getSessionState", {"session_id": id}), ("getRecentPaths", {"limit": 3}))


def test_events_and_rules_without_memory():
    with World(text="[rule noticed]\nevent = memory.*\nprompt = noticed\n[notify program]\nkind = command\ncommand = true\n[notify web]\nkind = webhook\n"
               "url = http://127.0.0.1:1/x\n") as w:
        for i in range(3):
            w.call("memory.add", content="number %d" % i)
        each(w, ("event.list", {"limit": 5}), ("event.list", {"types": ["memory.*"], "since": 0, "limit": 5}),
             ("event.subscribe", {"types": ["task.*"], "since": 0}), ("Subscribe", {}),
             ("automation.rules", {}), ("automation.status", {}), ("automation.log", {}),
             ("automation.disable", {"ruleId": "daily"}), ("automation.enable", {"ruleId": "daily"}),
             ("automation.run", {"rule": "daily"}), ("project.list", {}), ("daemon.status", {}), ("daemon.metrics", {}),
             ("daemon.log", {"limit": 5}), ("notify.list", {}), ("agent.server.list", {}), ("daemon.reload", {}),
             ("host.list", {}), ("page.sessions", {}), ("page.open", {}), ("daemon.samples", {}), ("config.reload", {}),
             ("notify.test", {"name": "program"}), ("notify.test", {"name": "web"}),
             ("project.show", {"folder": w.folder.path}), ("project.distrust", {"folder": w.folder.path}))
        w.call("memory.add", content="one more")
        wait_until(lambda: w.call("task.find")["tasks"], "the rule to fire", PATIENCE)


def test_gateway_without_memory():
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ask = {"model": "recall", "tools": [{"type": "function", "function": {
        "name": "look", "description": "looks", "parameters": {"type": "object"}}}], "messages": [
        {"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "done"}, {"role": "user", "content": "where does Anna run?"}]}
    job = {"name": "Report", "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"}, "delivery": {"mode": "none"},
           "payload": {"kind": "agentTurn", "message": "hello", "model": "recall"}}
    with World("--set", "listen.gateway=on") as w:
        id = w.ask("/cron/add", job)["result"]["jobId"]
        wait_until(lambda: w.ask("/cron/status", None)["result"]["next_check"], "the job to be armed")
        each(w, ("/cron/list", None), ("/cron/status", None), ("/cron/run", {"jobId": id}), ("/cron/add", job))
        check(w.ask("/cron/remove", {"jobId": id}).get("result"), "not removed")
        each(w, ("/memory/store", lambda n: {"text": "%d fjords" % n, "category": "facts"}),
             ("/memory/search?query=fjords&limit=1", None), ("/storage/stats", None), ("/v1/chat/completions", ask))


def test_processes_without_memory():
    with Folder() as f, World("--set", "listen.gateway=on", "--set", "gateway.process=yes", "--set",
                              "gateway.folder=" + f.path, "--set", "policy.all.verdict=allow") as w:
        each(w, ("/process/start", {"command": "echo a; cat", "env": "A=b\n"}))
        ids = [p["sessionId"] for p in w.ask("/process/list", None)["result"]["processes"]]
        each(w, ("/process/list", None), ("/process/log?sessionId=%s&limit=2" % ids[0], None),
             ("/process/write", {"sessionId": ids[0], "data": "b\n", "eof": False}),
             ("/process/kill?sessionId=" + ids[0], {}))


if __name__ == "__main__":
    main(globals())
