#!/usr/bin/env python3
"""koined as an MCP server: through `koine mcp`, on its socket, and over HTTP."""
import json
import os
import re
import signal
import subprocess
import sys

from harness import KOINE, check, clean_environment, main, request, same, wait_until
from mcp_world import tool_faults
from task_world import World, dead

LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {},
          "clientInfo": {"name": "claude-code", "version": "2"}}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}}
TOOLS = ["memory_search", "memory_add", "memory_list", "memory_update", "memory_delete",
         "task_add", "task_get", "task_list", "task_cancel", "task_output",
         "ask_human", "permission_prompt"]


class Pipe:
    """A client that has started `koine mcp`."""

    def __init__(self, world, *options, socket=None, cwd=None, env=None):
        socket = socket or world("root", "koine.sock")
        self.process = subprocess.Popen(
            [KOINE, "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=open(world("pipe.err"), "ab"), cwd=cwd or world.path,
            env=clean_environment(dict(env or {}, KOINE_SOCKET=socket)))
        self.last = 0
        self.others = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        check(line, "the pipe has ended")
        return json.loads(line)

    def begin(self, method, params=None):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}})
        return self.last

    def end(self, id):
        while True:
            message = self.read()
            if message.get("id") == id and "method" not in message:
                return message
            self.others.append(message)

    def ask(self, method, params=None):
        return self.end(self.begin(method, params))

    def initialize(self, **capabilities):
        answer = self.ask("initialize", dict(LEGACY, capabilities=capabilities))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        check(not result.get("isError"), "%s: %r" % (tool, result))
        return result["structuredContent"]

    def refused(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        check(result.get("isError"), "%s was not refused: %r" % (tool, result))
        return result["content"][0]["text"]


def daemon(world, *options, **more):
    return world.daemon(*options, **more)


def test_schemas_are_those_that_models_and_editors_take():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        tools = {t["name"]: t for t in p.ask("tools/list")["result"]["tools"]}
        same(tool_faults(tools.values()), [])

        def properties(tool):
            return tools[tool]["inputSchema"]["properties"]
        same(properties("memory_add")["subjects"]["items"], {"type": "string"})
        same(properties("memory_add")["expires_days"]["type"], "integer")
        same(properties("memory_add")["category"]["enum"],
             ["preference", "decision", "fact", "entity", "other"])
        same(properties("task_list")["state"]["enum"],
             ["queued", "running", "completed", "failed", "skipped", "cancelled"])
        # Whatever the schema offers is taken.
        for category in properties("memory_add")["category"]["enum"]:
            p.call("memory_add", content="This is of the kind %s" % category, category=category)
        for state in properties("task_list")["state"]["enum"]:
            p.call("task_list", state=state)


def test_a_whole_number_is_an_integer():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        for i in range(3):
            p.call("memory_add", content="The blue box number %d is in the attic" % i,
                   expires_days=30.0)
        for limit in ("2.0", "2e0", "0.2e1"):
            p.process.stdin.write(b'{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":'
                                  b'"memory_list","arguments":{"limit":%s}}}\n' % limit.encode())
            p.process.stdin.flush()
            same(len(p.end("n")["result"]["structuredContent"]["memories"]), 2, limit)
        for bad in (2.5, 1e300, "2"):
            check(p.ask("tools/call", {"name": "memory_list", "arguments": {"limit": bad}})[
                "result"]["isError"], "%r is taken", bad)


def test_every_tool():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        info = p.initialize()
        same(info["protocolVersion"], "2025-11-25")
        check("memory_search" in info["instructions"], "instructions for the model")
        same([t["name"] for t in p.ask("tools/list")["result"]["tools"]], TOOLS)
        one = p.call("memory_add", content="Anna moved to Oslo in May", subjects=["Anna"])
        same(one["subjects"], ["Anna"])
        same([m["id"] for m in p.call("memory_search", query="where does Anna live")["memories"]],
             [one["id"]])
        changed = p.call("memory_update", id=one["id"], content="Anna moved to Bergen in May")
        same(changed["content"], "Anna moved to Bergen in May")
        same([m["content"] for m in p.call("memory_list")["memories"]], [changed["content"]])
        same(p.call("memory_delete", id=one["id"]), {"deleted": one["id"], "content": "Anna moved to Bergen in May"})
        same(p.call("memory_list"), {"memories": []})
        task = p.call("task_add", prompt="what is koine?", agent="recall")
        wait_until(lambda: p.call("task_get", id=task["id"])["state"] == "completed", "its end")
        wait_until(lambda: [t["id"] for t in p.call("task_list", state="completed")["tasks"]] ==
                   [task["id"]], "its place among the completed")
        check("koine's offline responder" in p.call("task_output", id=task["id"])["output"],
              "what it has printed")
        check(d.connect().call("task.show", {"id": task["id"]})["cwd"] == w.path,
              "it ran where the client is")
        check("completed" in p.refused("task_cancel", id=task["id"]), "why it cannot be cancelled")


def test_memories_are_changed_by_long_ids_and_in_their_project_only():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        c = d.connect()
        mine = p.call("memory_add", content="the build needs gcc 14")
        common = c.call("memory.add", {"content": "coffee is on the third floor"})["id"]
        other = c.call("memory.add", {"content": "the other project's secret", "project": "other"})["id"]
        personal = c.call("memory.add", {"content": "Ann's own note", "user_id": "ann"})["id"]
        for id in (mine["id"], common, other, personal):
            for short in (id[:1], id[:7]):
                for tool in ("memory_delete", "memory_update"):
                    more = {"content": "x"} if tool == "memory_update" else {}
                    check("8 characters" in p.refused(tool, id=short, **more), "%s of %s", tool, short)
        for id in (other, personal):
            check("not found" in p.refused("memory_delete", id=id), "another's was deleted")
            check("not found" in p.refused("memory_update", id=id, content="x"), "another's was changed")
        same(c.call("memory.stats")["total"], 4)
        same(p.call("memory_update", id=common[:8], content="coffee is on the second floor")["id"], common)
        same(p.call("memory_delete", id=common[:8]), {"deleted": common, "content": "coffee is on the second floor"})
        same(p.call("memory_delete", id=mine["id"])["deleted"], mine["id"])
        same(sorted(m["id"] for m in c.call("memory.deleted")), sorted([common, mine["id"]]))


def test_wrong_arguments_are_told_to_the_model():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        same(p.refused("memory_search"), "query is required")
        check("qurey" in p.refused("memory_search", qurey="x"), "the unknown argument's name")
        check("limit" in p.refused("memory_search", query="x", limit="ten"), "the field's name")
        check("nothing" in p.refused("task_get", id="nothing"), "what was not found")
        check("project" in p.refused("memory_search", query="x", project="/no/such/folder"),
              "the project")
        check("choices" in p.refused("ask_human", question="?", choices=[1]), "the field's name")
        error = p.ask("tools/call", {"name": "nonsense", "arguments": {}})["error"]
        same(error["code"], -32602)


def git_folder(world, name, url):
    folder = world(name)
    os.makedirs(os.path.join(folder, ".git"))
    with open(os.path.join(folder, ".git", "HEAD"), "w") as f:
        f.write("ref: refs/heads/main\n")
    with open(os.path.join(folder, ".git", "config"), "w") as f:
        f.write('[remote "origin"]\n\turl = %s\n' % url)
    return folder


def test_tasks_run_in_the_folder_of_koine_mcp_whatever_its_project():
    with World() as w, daemon(w) as d:
        for project in git_folder(w, "a", "git@example.org:team/a.git"), "example.org/team/b":
            with Pipe(w, "--project", project) as p:
                p.initialize()
                task = p.call("task_add", prompt="what is koine?", agent="recall")
                same(d.connect().call("task.show", {"id": task["id"]})["cwd"], w.path, project)


def test_memory_is_the_projects():
    with World() as w, daemon(w):
        a = git_folder(w, "a", "git@example.org:team/a.git")
        b = git_folder(w, "b", "https://example.org/team/b.git")
        with Pipe(w, cwd=a) as pa, Pipe(w, cwd=b) as pb:
            pa.initialize()
            pb.initialize()
            same(pa.call("memory_add", content="deploy with make ship")["project"],
                 "example.org/team/a")
            pb.call("memory_add", content="deploy with fabric")
            pa.call("memory_add", content="the team deploys on Tuesdays", common=True)

            def found(p, **more):
                return sorted(m["content"] for m in
                              p.call("memory_search", query="deploy", **more)["memories"])
            same(found(pa), ["deploy with make ship", "the team deploys on Tuesdays"])
            same(found(pb), ["deploy with fabric", "the team deploys on Tuesdays"])
            same(found(pb, project="example.org/team/a"), found(pa))
            same(len(found(pa, project="*")), 3)
            # Only another project than the one that is asked is named.
            same([m.get("project") for m in pa.call("memory_search", query="deploy")["memories"]],
                 [None, None])
            same({m["content"]: m.get("project")
                  for m in pa.call("memory_search", query="deploy", project="*")["memories"]},
                 {"deploy with make ship": "example.org/team/a",
                  "deploy with fabric": "example.org/team/b",
                  "the team deploys on Tuesdays": None})


def test_a_new_memory_names_those_that_say_nearly_the_same():
    with World() as w, daemon(w) as d, d.connect() as c, Pipe(w) as p:
        p.initialize()
        first = p.call("memory_add", content="The staging server is at 10.0.0.7 in Berlin")
        check("similar" not in first, "%s", first)
        check("similar" not in p.call("memory_add", content="Anna likes tea with milk"), "alike")
        c.call("memory.add", {"content": "The staging server is at 10.0.0.7 in Berlin, behind Anna's router",
                              "user_id": "anna"})
        second = p.call("memory_add", content="The staging server is now at 10.0.0.9 in Berlin")
        same([(m["id"], m["content"]) for m in second["similar"]],
             [(first["id"], "The staging server is at 10.0.0.7 in Berlin")])
        same(second["similar"][0]["created"], first["created_at"][:10])
        negated = p.call("memory_add", content="The staging server is not at 10.0.0.9 in Berlin")
        same({m["id"] for m in negated["similar"]}, {first["id"], second["id"]})
        # The same once more is no other memory.
        again = p.call("memory_add", content="Anna likes tea with milk")
        check("similar" not in again, "%s", again)


def test_answers_leave_out_what_says_nothing():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        p.call("memory_add", content="The blue box is in the attic")
        same([set(m) for m in p.call("memory_list")["memories"]], [{"id", "content", "created_at"}])
        full = p.call("memory_add", content="The red box belongs to Anna", category="fact",
                      subjects=["Anna"])
        same((full["category"], full["subjects"]), ("fact", ["Anna"]))
        found = p.call("memory_search", query="Where is the blue box?")["memories"][0]
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["created_at"]), "%s", found)
        same(found["similarity"], round(found["similarity"], 2))
        task = p.call("task_add", prompt="hello", agent="recall")["id"]
        for one in p.call("task_list")["tasks"] + [p.call("task_get", id=task)]:
            same([name for name, value in one.items()
                  if value is None or value is False or value in ("", [], {})], [], one)
            same((one["id"], one["prompt"]), (task, "hello"))


def test_permission_prompt_is_for_claude_code():
    other = dict(LEGACY, clientInfo={"name": "codex", "version": "1"})

    def offers(world, client, *options):
        with Pipe(world, *options) as p:
            p.ask("initialize", client)
            offered = "permission_prompt" in [
                t["name"] for t in p.ask("tools/list")["result"]["tools"]]
            if not offered:
                same(p.ask("tools/call", {"name": "permission_prompt", "arguments": {
                    "tool_name": "Bash"}})["error"]["code"], -32602)
            return offered
    with World() as w, daemon(w):
        same([offers(w, LEGACY), offers(w, other), offers(w, LEGACY, "--tools", "memory"),
              offers(w, other, "--tools", "human"), offers(w, other, "--tools", "permission")],
             [True, False, False, False, True])


def test_tools_can_be_chosen():
    with World() as w, daemon(w), Pipe(w, "--tools", "memory,human") as p:
        p.initialize()
        same([t["name"] for t in p.ask("tools/list")["result"]["tools"]],
             TOOLS[:5] + TOOLS[10:])
        same(p.ask("tools/call", {"name": "task_list", "arguments": {}})["error"]["code"], -32602)
    with World() as w, daemon(w), Pipe(w, "--tools", "memory,magic") as p:
        same(p.process.wait(), 64)
        same(w.read("pipe.err"), "koine: invalid --tools 'magic': use memory, tasks, human or permission\n")
    with World() as w, daemon(w) as d, d.connect() as c:
        error = json.loads(c.call_text(request("mcp.open", {"tools": ["memory", "magic"]})))["error"]
        same(error["code"], -32602)
        check("magic" in error["message"], error["message"])


def pending(client):
    return client.call("approval.list", {})["approvals"]


def test_a_human_answers_in_the_inbox():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        k = d.connect()
        id = p.begin("tools/call", {"name": "ask_human", "arguments": {
            "question": "Red or blue?", "choices": ["red", "blue"]}})
        wait_until(lambda: pending(k), "the question")
        asked = pending(k)[0]
        same((asked["agent"], asked["input"]),
             ("claude", {"msg": "Red or blue?", "choices": ["red", "blue"]}))
        k.call("approval.decide", {"id": asked["id"], "decision": "respond", "comment": "blue"})
        same(p.end(id)["result"]["structuredContent"],
             {"answered": True, "answer": "blue", "status": "responded"})


def test_a_crash_of_koined_withdraws_what_only_a_connection_waited_for():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        for i in range(25):
            p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "Q%d?" % i}})
        with d.connect() as k:
            wait_until(lambda: len(pending(k)) == 25, "the questions")
            k.call("approval.create", {"tool": "stays"})
        d.signal(signal.SIGKILL)
        d.wait_exit()
        d.start()
        d.wait_ready()
        with d.connect() as k:
            wait_until(lambda: [a["tool"] for a in pending(k)] == ["stays"], "their withdrawal")


# A client that starts `koine mcp` and asks; it says the pipe's pid, and waits.
AGENT = """
import subprocess, sys
pipe = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
pipe.stdin.write(sys.argv[2].encode())
pipe.stdin.flush()
print(pipe.pid, flush=True)
sys.stdin.read()
"""

# One that asks over HTTP: POST PORT TOKEN BODY.
HTTP_AGENT = """
import http.client, json, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
c.request("POST", "/mcp", sys.argv[3], {
    "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    "Authorization": "Bearer " + sys.argv[2], "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call", "Mcp-Name": "ask_human"})
c.getresponse().read()
"""


def test_a_killed_agent_above_the_pipe_asks_no_more():
    said = "".join(json.dumps(m) + "\n" for m in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": LEGACY},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "ask_human", "arguments": {"question": "Still?"}}}))
    with World() as w, daemon(w) as d, d.connect() as k:
        env = clean_environment({"KOINE_SOCKET": w("root", "koine.sock")})
        with subprocess.Popen([sys.executable, "-c", AGENT, KOINE, said], env=env, cwd=w.path,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
            pipe = int(agent.stdout.readline())
            wait_until(lambda: pending(k), "the question")
            agent.kill()
        wait_until(lambda: not pending(k), "its withdrawal")
        wait_until(lambda: dead(pipe), "the end of its pipe")


def test_a_killed_client_over_http_asks_no_more():
    with World() as w, daemon(w, "listen.mcp=http:127.0.0.1:0") as d, d.connect() as k:
        port = d.address("http", "mcp").rpartition(":")[2]
        with open(w("root", "mcp.token")) as f:
            token = f.read().strip()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "ask_human", "arguments": {"question": "Still?"}, "_meta": MODERN}})
        with subprocess.Popen([sys.executable, "-c", HTTP_AGENT, port, token, body]) as agent:
            wait_until(lambda: pending(k), "the question")
            agent.kill()
        wait_until(lambda: not pending(k), "its withdrawal")


def test_nobody_answers_in_time():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        same(p.call("ask_human", question="Anybody?", timeout_seconds=0.05),
             {"answered": False, "answer": "", "status": "expired"})


def elicited(p):
    while True:
        for m in p.others:
            if m.get("method") == "elicitation/create":
                p.others.remove(m)
                return m
        p.others.append(p.read())


def test_a_human_answers_at_the_client():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize(elicitation={})
        k = d.connect()
        id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "Why?"}})
        question = elicited(p)
        same(question["params"]["message"], "Why?")
        p.send({"jsonrpc": "2.0", "id": question["id"],
                "result": {"action": "accept", "content": {"answer": "because"}}})
        same(p.end(id)["result"]["structuredContent"]["answer"], "because")
        same(pending(k), [])
        last = k.call("approval.list", {"status": "responded"})["approvals"][0]
        same((last["comment"], last["decided_by"]), ("because", "client:claude-code"))
        # Who closes the dialog has not answered; the inbox still may.
        id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "How?"}})
        p.send({"jsonrpc": "2.0", "id": elicited(p)["id"], "result": {"action": "cancel"}})
        wait_until(lambda: pending(k), "the question")
        k.call("approval.decide", {"id": pending(k)[0]["id"], "decision": "respond",
                                   "comment": "so"})
        same(p.end(id)["result"]["structuredContent"]["answer"], "so")
        # A client that says it could be asked, and cannot.
        id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "Who?"}})
        p.send({"jsonrpc": "2.0", "id": elicited(p)["id"],
                "error": {"code": -32603, "message": "no"}})
        wait_until(lambda: pending(k), "the question")
        k.call("approval.decide", {"id": pending(k)[0]["id"], "decision": "respond",
                                   "comment": "me"})
        same(p.end(id)["result"]["structuredContent"]["answer"], "me")
        id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "When?"}})
        p.send({"jsonrpc": "2.0", "id": elicited(p)["id"], "result": {"action": "decline"}})
        same(p.end(id)["result"]["structuredContent"],
             {"answered": False, "answer": "", "status": "declined"})
        wait_until(lambda: not pending(k), "its withdrawal")


def test_a_modern_client_carries_the_question():
    with World() as w, daemon(w) as d:
        k = d.connect()
        c = d.connect()
        meta = dict(MODERN)
        meta["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
        params = {"name": "ask_human", "arguments": {"question": "Go?"}, "_meta": meta}
        first = c.call("tools/call", params)
        same(first["resultType"], "input_required")
        same(len(pending(k)), 1)
        again = dict(params, requestState=first["requestState"], inputResponses={
            "answer": {"action": "accept", "content": {"answer": "go"}}})
        same(c.call("tools/call", again)["structuredContent"]["answer"], "go")
        same(pending(k), [])
        # The inbox was quicker.
        first = c.call("tools/call", params)
        k.call("approval.decide", {"id": pending(k)[0]["id"], "decision": "respond",
                                   "comment": "stay"})
        again = dict(params, requestState=first["requestState"], inputResponses={
            "answer": {"action": "accept", "content": {"answer": "go"}}})
        same(c.call("tools/call", again)["structuredContent"]["answer"], "stay")


def test_a_tool_is_allowed_or_denied():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        k = d.connect()
        for decision, want in (
                ("approve", {"behavior": "allow", "updatedInput": {"command": "ls"}}),
                ("deny", {"behavior": "deny", "message": "not today"})):
            id = p.begin("tools/call", {"name": "permission_prompt", "arguments": {
                "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_1"}})
            wait_until(lambda: pending(k), "the question")
            asked = pending(k)[0]
            same((asked["tool"], asked["tool_use_id"]), ("Bash", "toolu_1"))
            k.call("approval.decide", {"id": asked["id"], "decision": decision,
                                       "comment": "not today"})
            same(json.loads(p.end(id)["result"]["content"][0]["text"]), want)


def test_the_asker_does_not_decide():
    with World() as w, w.daemon(env={"KOINE_APPROVAL_AGENTS_DECIDE": "no"}) as d, Pipe(w) as p:
        p.initialize()
        k = d.connect()
        p.begin("tools/call", {"name": "permission_prompt", "arguments": {
            "tool_name": "Bash", "input": {}}})
        wait_until(lambda: pending(k), "the question")
        # Both belong to this test: it is the agent.
        error = json.loads(k.call_text(request("approval.decide", {
            "id": pending(k)[0]["id"], "decision": "approve"})))["error"]
        check("an agent that requests approvals" in error["message"], repr(error))


def test_an_agents_calls_are_known_by_the_names_that_its_hooks_have():
    def hook(event, name, use):
        told = {"session_id": "s1", "cwd": w.path, "hook_event_name": event, "tool_use_id": use,
                "tool_name": "mcp__koine__" + name, "tool_input": {}, "tool_response": {}}
        subprocess.run([KOINE, "hook"], input=json.dumps(told).encode(), check=True, env=(
            clean_environment({"KOINE_SOCKET": w("root", "koine.sock")})))

    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        k = d.connect()

        def begin(name, known, **arguments):
            return p.begin("tools/call", {"name": name, "arguments": arguments,
                                          "_meta": {"claudecode/toolUseId": known}})

        def use(name, known, **arguments):
            result = p.end(begin(name, known, **arguments))["result"]
            check(not result.get("isError"), "%r", result)
            hook("PostToolUse", name, known)
            return result["structuredContent"]

        one = use("memory_add", "toolu_1", content="Anna moved to Oslo")
        use("memory_update", "toolu_2", id=one["id"], content="Anna moved to Bergen")
        use("memory_delete", "toolu_3", id=one["id"])
        use("memory_add", "toolu_4", content="a common one", common=True)
        use("task_add", "toolu_5", prompt="wait", after=[])
        use("memory_add", "t" * 300, content="one with a long name")
        asked = begin("ask_human", "toolu_6", question="Red?")
        wait_until(lambda: pending(k), "the question")
        same(pending(k)[0]["tool_use_id"], "toolu_6")
        k.call("approval.decide", {"id": pending(k)[0]["id"], "decision": "respond",
                                   "comment": "yes"})
        p.end(asked)
        hook("PostToolUse", "ask_human", "toolu_6")
        p.call("memory_add", content="nobody's name")
        found = {}
        for e in k.call("event.list", {"limit": 1000})["events"]:
            found.setdefault(e["data"].get("tool_use_id"), []).append(e["type"])
        same({id: found.get(id) for id in ("toolu_1", "toolu_2", "toolu_3", "toolu_4", "toolu_5",
                                           "t" * 256, "toolu_6")},
             {"toolu_1": ["memory.added", "agent.tool"], "toolu_2": ["memory.updated", "agent.tool"],
              "toolu_3": ["memory.deleted", "agent.tool"],
              "toolu_4": ["memory.added", "agent.tool"], "toolu_5": ["task.queued", "agent.tool"],
              "t" * 256: ["memory.added", "agent.tool"],
              "toolu_6": ["approval.requested", "agent.tool"]})
        check("memory.added" in found[None], "%r", found)


def test_who_leaves_is_not_answered():
    with World() as w, daemon(w) as d:
        k = d.connect()
        with Pipe(w) as p:
            p.initialize()
            p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "Still?"}})
            wait_until(lambda: pending(k), "the question")
            p.process.kill()
        wait_until(lambda: not pending(k), "its withdrawal")
        with Pipe(w) as p:
            p.initialize()
            id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "And?"}})
            wait_until(lambda: pending(k), "the question")
            p.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": id}})
            wait_until(lambda: not pending(k), "its withdrawal")


def test_resources():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        for i in range(3):
            p.call("memory_add", content="fact %d" % i)
        task = p.call("task_add", prompt="who are you?", agent="recall")["id"]
        d.connect().call("task.wait", {"id": task})
        seen, cursor = [], None
        while True:
            page = p.ask("resources/list", {"cursor": cursor} if cursor else {})["result"]
            seen += [r["uri"] for r in page["resources"]]
            cursor = page.get("nextCursor")
            if not cursor:
                break
        same(sum(u.startswith("memory://") for u in seen), 3)
        check("task://" + task in seen, repr(seen))
        same(len(seen), len(set(seen)))
        templates = p.ask("resources/templates/list")["result"]["resourceTemplates"]
        same([t["uriTemplate"] for t in templates],
             ["memory://{id}", "task://{id}", "session://{id}", "conversation://{id}"])
        text = p.ask("resources/read", {"uri": seen[0]})["result"]["contents"][0]
        same(json.loads(text["text"])["content"], "fact 2")
        text = p.ask("resources/read", {"uri": "task://" + task})["result"]["contents"][0]["text"]
        check("offline responder" in text, repr(text))
        same(p.ask("resources/read", {"uri": "memory://nothing"})["error"]["code"], -32002)
        same(p.ask("resources/list", {"cursor": "made-up"})["error"]["code"], -32602)
        p.ask("resources/subscribe", {"uri": seen[0]})
        p.others.clear()
        p.call("memory_update", id=seen[0][9:], content="fact two")
        wait_until(lambda: p.ask("ping") and any(
            m.get("method") == "notifications/resources/updated" and
            m["params"]["uri"] == seen[0] for m in p.others), "the update")


def test_status_shows_its_guests():
    with World() as w, daemon(w) as d:
        def rows():
            return [(e["address"], e["connections"], e["calls"]) for e in d.status()["listeners"]
                    if e["dialect"] == "mcp"]
        same(rows(), [], "before anybody came")
        with Pipe(w) as p:
            p.initialize()
            p.call("memory_list")
            # mcp.open, initialize, what follows it, and the call
            same(rows(), [(d.address("unix", "koine"), 1, 4)])
            out = subprocess.run([KOINE, "status"], capture_output=True, text=True,
                                 env=clean_environment({"KOINE_SOCKET": d.socket_path}))
            check(any(line.split()[:1] == ["mcp"] for line in out.stdout.splitlines()), out.stdout)
        wait_until(lambda: rows()[0][1] == 0, "its end")


def test_prompts():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        p.call("memory_add", content="The release is on Friday")
        same([x["name"] for x in p.ask("prompts/list")["result"]["prompts"]],
             ["recall", "handoff"])
        for name, arguments in (("recall", {"about": "the release"}), ("handoff", {})):
            text = p.ask("prompts/get", {"name": name, "arguments": arguments})[
                "result"]["messages"][0]["content"]["text"]
            check("The release is on Friday" in text, repr(text))


def test_the_pipe_outlives_the_daemon():
    with World() as w:
        with daemon(w) as d, Pipe(w) as p:
            p.initialize()
            one = p.call("memory_add", content="kept")
            id = p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "?"}})
            k = d.connect()
            wait_until(lambda: pending(k), "the question")
            k.close()
            d.signal(signal.SIGKILL)
            d.wait_exit()
            error = p.end(id)["error"]
            check("lost connection to koined" in error["message"], repr(error))
            later = p.begin("tools/call", {"name": "memory_list", "arguments": {}})
            d.process.stdout.close()
            d.start()
            d.wait_ready()
            memories = p.end(later)["result"]["structuredContent"]["memories"]
            same([m["id"] for m in memories], [one["id"]])


def test_without_a_daemon():
    with World() as w:
        with Pipe(w) as p:
            error = p.ask("initialize", LEGACY)["error"]
            check("koined is not running" in error["message"], repr(error))
            check("koined is not running: no answer at" in w.read("pipe.err"), "a word for the user")
            with daemon(w):
                wait_until(lambda: "result" in p.ask("initialize", LEGACY), "the daemon")
                same(p.call("memory_list"), {"memories": []})


def test_half_a_message_and_nonsense():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        p.process.stdin.write(b"this is no JSON\n")
        p.process.stdin.flush()
        same(p.read()["error"]["code"], -32700)
        p.process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"pi')
        p.process.stdin.flush()
        p.process.stdin.write(b'ng"}\n')
        p.process.stdin.flush()
        same(p.read(), {"jsonrpc": "2.0", "id": 9, "result": {}})
        big = "x" * (10 << 20)
        same(p.call("memory_add", content="small")["content"], "small")
        added = p.call("memory_add", content=big)
        same((len(added["content"]), added["cut"]), (16 << 10, True))
        whole = p.ask("resources/read", {"uri": "memory://" + added["id"]})["result"]["contents"][0]
        same(json.loads(whole["text"])["content"], big)


def test_http_wants_a_token():
    import urllib.error
    import urllib.request
    with World() as w, daemon(w, "listen.mcp=http:127.0.0.1:0") as d:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = "http://" + d.address("http", "mcp")[len("http:"):] + "/mcp"
        path = w("root", "mcp.token")
        same(os.stat(path).st_mode & 0o777, 0o600)
        with open(path) as f:
            token = f.read().strip()

        def ask(**headers):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "memory_list", "arguments": {}, "_meta": MODERN}}
            r = urllib.request.Request(url, json.dumps(body).encode(), dict({
                "Content-Type": "application/json", "Accept": "application/json",
                "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
                "Mcp-Name": "memory_list"}, **headers))
            try:
                with opener.open(r) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as e:
                return e.code
        same(ask(), 401)
        same(ask(Authorization="Bearer wrong" + token), 401)
        same(ask(Authorization="Bearer " + token)["result"]["structuredContent"],
             {"memories": []})
        same(ask(Authorization="Bearer " + token, Origin="http://evil.example"), 403)


if __name__ == "__main__":
    main(globals())
