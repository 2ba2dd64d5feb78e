#!/usr/bin/env python3
"""koined's MCP before clients that lie, that never read, and that may do less than they want."""
import concurrent.futures
import contextlib
import json
import os
import select
import socket

from harness import (MIB, PATIENCE, check, main, peak_rss, raise_descriptor_limit, request,
                     same, wait_until)
from mcp_world import MODERN, Http, headers_for, message, modern
from task_world import World
from test_mcp_koined import Pipe, git_folder, pending
from test_mcp_wire import code, listen, next_event
from test_nexus_bounds import World as Sandboxes
from test_nexus_bounds import needs_landlock
from test_users import someone_else

ELICITS = {"elicitation": {}}


class Served:
    """Where a daemon's MCP is, for the clients of mcp_world."""

    def __init__(self, daemon):
        self.host = daemon.address("http", "mcp")[len("http:"):]
        self.pid = daemon.pid


@contextlib.contextmanager
def served(*options, **more):
    """A world, its daemon, and where it serves MCP over HTTP to whoever comes."""
    with World() as w, w.daemon("listen.mcp=http:127.0.0.1:0", "mcp.token_file=off", *options,
                                **more) as d:
        yield w, d, Served(d)


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


def text_of(answer):
    return answer["result"]["content"][0]["text"]


def refused(answer):
    """A result for the model that says what was wrong."""
    check(answer["result"].get("isError"), "%s was not refused", answer)
    return text_of(answer)


# ---- envelopes ----


def test_envelopes_that_are_wrong():
    with served() as (_, d, server):
        h = Http(server)
        body = modern("tools/call", tool("memory_list"))
        right = headers_for(body)
        for wrong in ({"Mcp-Name": "task_list"}, {"Mcp-Name": None}, {"Mcp-Method": "tools/list"},
                      {"MCP-Protocol-Version": "2025-11-25"}, {"Mcp-Name": "=?base64?bWVt!?="},
                      {"Mcp-Name": "=?base64?dGFza19saXN0?="}):
            status, answer = h.post(body, dict(right, **wrong))
            same((status, code(answer)), (400, -32020), str(wrong))
        same(h.post(body, dict(right, **{"Mcp-Name": "=?base64?bWVtb3J5X2xpc3Q=?="}))[0], 200)
        status, answer = h.post(message("tools/list", {}), {"MCP-Protocol-Version": MODERN})
        same((status, code(answer)), (400, -32602))
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
            status, answer = h.modern(method)
            same((status, code(answer)), (404, -32601), method)
        d.alive()


def test_sessions_that_ended_or_never_were():
    with served() as (_, d, server):
        h = Http(server)
        same(h.post(message("tools/list"))[0], 400)
        h.initialize()
        same(h.post(message("tools/list"))[0], 200)
        c, r = h.open("DELETE")
        c.close()
        same(r.status // 100, 2, "DELETE")
        same(h.post(message("tools/list"))[0], 404)
        same(h.post(message("tools/call", tool("memory_list")))[0], 404)
        for made_up in ("0" * 32, "x", "../../etc/passwd", "%00"):
            h.session = made_up
            same(h.post(message("tools/list"))[0], 404, made_up)
        d.alive()


def test_a_session_of_another_user():
    def ask(server, session):
        h = Http(server)
        h.session = session
        return "%d" % h.post(message("tools/list"))[0]
    with served("listen.mcp.allow_uids=65534") as (_, d, server):
        h = Http(server)
        h.initialize()
        same(someone_else(ask, server, h.session), "404")
        same(h.post(message("tools/list"))[0], 200)


def test_cursors_of_another_list():
    with served() as (w, d, server), Pipe(w) as p:
        p.initialize()
        for i in range(3):
            p.call("memory_add", content="fact %d" % i)
        cursor = p.ask("resources/list")["result"]["nextCursor"]
        for method in ("tools/list", "prompts/list", "resources/templates/list"):
            same(code(p.ask(method, {"cursor": cursor})), -32602, method)
        check("result" in p.ask("resources/list", {"cursor": cursor}), "its own list")
        for bad in (cursor[:-1], cursor + "A", "", cursor[::-1], "0:9/9"):
            same(code(p.ask("resources/list", {"cursor": bad})), -32602, bad)
        same(code(p.ask("resources/list", {"cursor": 7})), -32602)
        d.alive()


# ---- ask_human's state ----


def begin_question(h, question):
    status, answer = h.modern("tools/call", tool("ask_human", question=question),
                              capabilities=ELICITS)
    same((status, answer["result"]["resultType"]), (200, "input_required"))
    return answer["result"]["requestState"]


def answer_question(h, question, state, answer="yes", name="ask_human"):
    params = dict(tool(name, question=question), inputResponses={
        "answer": {"action": "accept", "content": {"answer": answer}}})
    if state is not None:
        params["requestState"] = state
    return h.modern("tools/call", params, capabilities=ELICITS)[1]


def test_state_of_another_question():
    with served() as (_, d, server):
        h = Http(server)
        one, two = begin_question(h, "Delete A?"), begin_question(h, "Delete B?")
        for question, state in (("Delete A?", two), ("Delete B?", one), ("Delete A?", one + "x"),
                                ("Delete A?", one[:-3]), ("Delete A?", "."), ("Delete A?", "")):
            same(code(answer_question(h, question, state)), -32602, "%s %s" % (question, state))
        same(code(answer_question(h, "Delete A?", one, name="permission_prompt")), -32602)
        k = d.connect()
        same(len(pending(k)), 2, "nobody has answered")
        # Without the state there is no question that this could answer.
        check(refused(answer_question(h, "Delete A?", None)), "an answer to nothing")
        same(len(pending(k)), 2, "nobody has answered")
        same(answer_question(h, "Delete A?", one)["result"]["structuredContent"],
             {"answered": True, "answer": "yes", "status": "responded"})
        # The first answer counts, however often it is answered.
        same(answer_question(h, "Delete A?", one, "no")["result"]["structuredContent"]["answer"],
             "yes")
        k.call("approval.decide", {"id": pending(k)[0]["id"], "decision": "respond",
                                   "comment": "never"})
        same(answer_question(h, "Delete B?", two)["result"]["structuredContent"]["answer"], "never")


def test_answers_that_are_not_among_the_choices():
    with served() as (_, d, server):
        h = Http(server)
        arguments = {"question": "Which?", "choices": ["red", "blue"]}
        state = h.modern("tools/call", {"name": "ask_human", "arguments": arguments},
                         capabilities=ELICITS)[1]["result"]["requestState"]
        k = d.connect()
        waiting = []
        for content in ({"answer": "green"}, {"answer": 7}, {}, {"reply": "red"}, {"answer": ""}):
            params = {"name": "ask_human", "arguments": arguments, "requestState": state,
                      "inputResponses": {"answer": {"action": "accept", "content": content}}}
            waiting.append(begin_modern(server, params))
        # None of them was an answer: all of them wait for the inbox.
        wait_until(lambda: d.status()["calls_in_flight"] >= len(waiting), "the calls")
        (asked,) = pending(k)
        k.call("approval.decide", {"id": asked["id"], "decision": "respond", "comment": "blue"})
        for s in waiting:
            text = s.makefile("rb").read()
            check(b'"answer":"blue"' in text, "%r", text)
            s.close()


def begin_modern(server, params, method="tools/call", capabilities=None):
    """A request on its way; what comes is read until the server closes."""
    body = modern(method, params, capabilities=capabilities or ELICITS)
    head = dict(headers_for(body), Host=server.host, Connection="close",
                **{"Content-Type": "application/json"})
    text = json.dumps(body)
    s = socket.create_connection(server.host.split(":"), timeout=PATIENCE)
    s.sendall(("POST /mcp HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (
        "".join("%s: %s\r\n" % row for row in head.items()), len(text), text)).encode())
    return s


def test_who_asks_over_http_does_not_decide():
    with served(env={"KOINE_APPROVAL_AGENTS_DECIDE": "no"}) as (_, d, server):
        waiting = [begin_modern(server, tool("permission_prompt", tool_name="Bash", input={})),
                   begin_modern(server, tool("ask_human", question="May I?"), capabilities={"x": {}})]
        k = d.connect()
        wait_until(lambda: len(pending(k)) == 2, "the questions")
        for asked in pending(k):
            # Both belong to this test: it is the agent.
            answer = json.loads(k.call_text(request("approval.decide", {
                "id": asked["id"], "decision": "approve" if asked["tool"] == "Bash" else "respond",
                "comment": "yes"})))
            check("an agent that requests approvals" in answer["error"]["message"], "%s", answer)
        for s in waiting:
            s.close()
        wait_until(lambda: not pending(k), "their withdrawal")


def test_who_leaves_before_the_question_is_kept():
    with served() as (_, d, _):
        k = d.connect()
        asked = (tool("permission_prompt", tool_name="Bash", input={}), tool("ask_human", question="Still?"))
        for params in asked * 20:
            with Bare(d) as b:
                b.send(modern("tools/call", params))
        wait_until(lambda: len(k.call("approval.list", {"status": "superseded", "limit": 100})["approvals"]) == 40,
                   "their withdrawal")


def test_more_questions_than_anybody_answers():
    with served() as (_, d, _), Bare(d) as b:
        k = d.connect()
        text = b"".join(json.dumps(modern("tools/call", tool("ask_human", question="%d?" % i),
                                          id=i)).encode() + b"\n" for i in range(20000))
        b.socket.setblocking(False)
        sent, asked = 0, -1
        # Until it takes no more: so many calls of one client are under way, and the rest waits.
        while sent < len(text) and asked != (now := k.call("daemon.status")["approvals_pending"]):
            asked = now
            while select.select([], [b.socket], [], 1)[1] and sent < len(text):
                sent += b.socket.send(text[sent:sent + 65536])
        check(0 < asked < 2000, "%d questions at once", asked)
        check(sent < len(text), "it took everything")
        d.alive()
        b.socket.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: k.call("daemon.status")["approvals_pending"] == 0, "their withdrawal")


# ---- large, many, slow ----


def test_ten_mebibytes_of_arguments():
    with served() as (_, d, server):
        h = Http(server)
        big = "x" * (10 * MIB)
        for name, key in (("task_get", "id"), ("memory_delete", "id"), ("ask_human", "question"),
                          ("memory_search", "project"), ("permission_prompt", "tool_name"),
                          ("task_add", "agent"), ("task_add", "group")):
            arguments = {"query": "x"} if name == "memory_search" else {}
            if name == "task_add":
                arguments = {"prompt": "x"}
            status, answer = h.modern("tools/call", tool(name, **dict(arguments, **{key: big})))
            same(status, 200, name)
            words = refused(answer)
            check(len(words) < 2000, "%s: %d bytes of words", name, len(words))
        same(h.modern("tools/call", tool("memory_add", content="x" * (17 * MIB)))[0], 413)
        d.alive()


def open_get(server):
    h = Http(server)
    h.initialize()
    c, r = h.open("GET")
    same(r.status, 200, "GET")
    return c, r, h


def test_a_thousand_open_streams():
    check(raise_descriptor_limit() > 2500, "too few descriptors")
    with served() as (w, d, server), contextlib.ExitStack() as stack, Pipe(w) as p:
        p.initialize()
        one = p.call("memory_add", content="watched")
        uri = "memory://" + one["id"]
        streams = []
        for i in range(500):
            c, r = listen(server, {"resourceSubscriptions": [uri]}, "s%d" % i)
            stack.callback(c.close)
            streams.append(r)
            next_event(r)
            c, r, h = open_get(server)
            stack.callback(c.close)
            same(h.post(message("resources/subscribe", {"uri": uri}))[1]["result"], {})
            streams.append(r)
        p.call("memory_update", id=one["id"], content="changed")
        for r in streams:
            event = next_event(r)
            same((event["method"], event["params"]["uri"]),
                 ("notifications/resources/updated", uri))
        d.alive()


def test_streams_that_nobody_reads():
    with served() as (w, d, server), Pipe(w) as p:
        p.initialize()
        one = p.call("memory_add", content="watched")
        uri = "memory://" + one["id"]
        mute = []
        for i in range(8):
            body = json.dumps(modern("subscriptions/listen", {"notifications": {
                "resourceSubscriptions": [uri]}}, "%04d" % i * 5000))
            s = socket.create_connection(server.host.split(":"), timeout=PATIENCE)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                       "MCP-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\n"
                       "Content-Length: %d\r\n\r\n%s"
                       % (server.host, MODERN, len(body), body)).encode())
            mute.append(s)
        other, r = listen(server, {"resourceSubscriptions": [uri]})
        next_event(r)
        before = peak_rss(d.pid)
        for i in range(600):
            p.call("memory_update", id=one["id"], content="changed %d" % i)
            next_event(r)
        if before:
            check(peak_rss(d.pid) - before < 48 * MIB, "%d bytes more", peak_rss(d.pid) - before)
        for s in mute:
            s.close()
        other.close()
        d.alive()


# ---- whom it speaks for ----


def opening(**params):
    return {"jsonrpc": "2.0", "id": "open", "method": "mcp.open", "params": params}


class Bare:
    """A client of koine's own socket that did not come through koine mcp."""

    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(daemon.address("unix", "koine")[len("unix:"):])
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, body):
        self.socket.sendall(json.dumps(body).encode() + b"\n")

    def call(self, body):
        self.send(body)
        line = self.file.readline()
        check(line, "the connection ended")
        return json.loads(line)

    def tool(self, name, **arguments):
        return self.call(modern("tools/call", tool(name, **arguments)))


def test_mcp_open_elsewhere_and_again():
    with served() as (w, d, server):
        h = Http(server)
        status, answer = h.post(opening(project="p"))
        check("error" in answer, "over HTTP: %s", answer)
        status, answer = h.modern("mcp.open", {"project": "p"})
        same((status, code(answer)), (404, -32601))
        with Bare(d) as b:
            same(b.call(opening(project="one"))["result"], {})
            same(b.tool("memory_add", content="first")["result"]["structuredContent"]["project"],
                 "one")
            # The last word counts.
            same(b.call(opening(project="two", tools=["memory"]))["result"], {})
            same(b.tool("memory_add", content="second")["result"]["structuredContent"]["project"],
                 "two")
            same(code(b.tool("task_list")), -32602)
            check("tools" in b.call(opening(tools=["magic"]))["error"]["message"], "the field")
            check("tools" in b.call(opening(tools=[]))["error"]["message"], "the field")
            check("tools" in b.call(opening(tools=[None]))["error"]["message"], "the field")
            # What was refused has changed nothing.
            same(b.tool("memory_add", content="third")["result"]["structuredContent"]["project"],
                 "two")
            same(code(b.tool("task_list")), -32602)
        with Bare(d) as b:
            # It need not be the first.
            check("result" in b.call(modern("tools/list")), "tools/list")
            same(b.call(opening(tools=["human"]))["result"], {})
            same(len(b.call(modern("tools/list"))["result"]["tools"]), 2)
            for name in ("memory_add", "task_add", "memory_search", "task_output"):
                same(code(b.tool(name, content="x", prompt="x", query="x", id="x")), -32602, name)


def test_names_of_projects_that_are_none():
    with served() as (_, d, server), Bare(d) as b:
        for bad in ("a\0b", "\0", "x" * 5000):
            answer = b.call(opening(project=bad))
            check("project" in answer.get("error", {}).get("message", ""), "%r: %s", bad[:9], answer)
            answer = b.call(opening(folder=bad))
            check("folder" in answer.get("error", {}).get("message", ""), "%r: %s", bad[:9], answer)
        for bad in ("..", ".", "../x", "relative"):
            answer = b.call(opening(folder=bad))
            check("folder" in answer.get("error", {}).get("message", ""), "%r: %s", bad[:9], answer)
        for bad in ("a\0b", "\0", "..", "../../etc", ".", "x" * 5000, "/no/such/folder",
                    "/" * 5000):
            for name, more in (("memory_search", {"query": "x"}), ("memory_list", {})):
                words = refused(b.tool(name, project=bad, **more))
                check("project" in words, "%s %r: %s", name, bad[:9], words)
        h = Http(server)
        for bad in ("..", "x" * 5000, "/no/such/folder", "../../etc"):
            for name, more in (("memory_list", {}), ("memory_add", {"content": "x"})):
                status, answer = h.modern("tools/call", tool(name, **more),
                                          headers={"Koine-Project": bad})
                check("roject" in refused(answer), "%s %r: %s", name, bad[:9], answer)
        d.alive()


# ---- roots ----


def roots_of(*uris):
    return {"roots": [{"uri": uri} for uri in uris]}


class Rooted(Bare):
    """A legacy client that has declared roots."""

    def __init__(self, daemon):
        super().__init__(daemon)
        self.asked = 0
        check("result" in self.call(message("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {"roots": {"listChanged": True}},
            "clientInfo": {"name": "test", "version": "1"}})), "initialize")
        self.send(message("notifications/initialized", id=None))

    def project(self, **answer):
        """Of what it adds; roots/list is answered with this."""
        got = self.call(message("tools/call", tool("memory_add", content="fact %d" % self.asked)))
        if got.get("method") == "roots/list":
            self.asked += 1
            got = self.call(dict(answer, jsonrpc="2.0", id=got["id"]))
        return got["result"]["structuredContent"].get("project")


def test_roots_name_the_project():
    with served() as (w, d, _), Rooted(d) as c:
        one = git_folder(w, "a b", "git@example.org:team/one.git")
        two = git_folder(w, "two", "git@example.org:team/two.git")
        uri = "file://" + one.replace(" ", "%20")
        same(c.project(result=roots_of("other:x", uri, "file://" + two)), "example.org/team/one")
        same((c.project(), c.asked), ("example.org/team/one", 1), "asked once")
        listed = c.call(message("tools/call", tool("memory_list")))
        same(len(listed["result"]["structuredContent"]["memories"]), 2)
        c.send(message("notifications/roots/list_changed", id=None))
        same((c.project(result=roots_of("file://" + two)), c.asked), ("example.org/team/two", 2))


def test_roots_that_are_none():
    with served() as (w, d, _):
        for answer in ({"error": {"code": -32601, "message": "no"}}, {"result": {}}, {"result": 7},
                       {"result": {"roots": 7}}, {"result": {"roots": []}}, {"result": roots_of(7)},
                       {"result": roots_of("http://x/")}, {"result": roots_of("file://host/x")},
                       {"result": roots_of("file:///no/such/folder")}, {"result": roots_of("file:///%")},
                       {"result": roots_of("file:///tmp%00/x")}, {"result": roots_of("file:///%zz")},
                       {"result": roots_of("file:///" + "x" * 100000)}):
            with Rooted(d) as c:
                same((c.project(**answer), c.asked), (None, 1), str(answer)[:60])
                same((c.project(), c.asked), (None, 1), "asked once")
        # Who has told its project is not asked.
        with Rooted(d) as c:
            same(c.call(opening(project="told"))["result"], {})
            same((c.project(), c.asked), ("told", 0))
        d.alive()


def test_roots_that_are_never_told():
    with served() as (_, d, server), Rooted(d) as c:
        question = c.call(message("tools/call", tool("memory_list"), 5))
        same(question["method"], "roots/list")
        # It is withdrawn after a while, and the call goes on without.
        same(json.loads(c.file.readline())["params"], {"requestId": question["id"]})
        same(json.loads(c.file.readline())["id"], 5)
        same(c.project(), None)
        # A client that leaves meanwhile, or gives up.
        with Rooted(d) as other:
            same(other.call(message("tools/call", tool("memory_list"), 6))["method"], "roots/list")
            other.send(message("notifications/cancelled", {"requestId": 6}, None))
            same(json.loads(other.file.readline())["method"], "notifications/cancelled")
            same(other.call(message("ping", id=7))["id"], 7)
            same(other.call(message("tools/call", tool("memory_list"), 8))["method"], "roots/list")
        wait_until(lambda: d.status()["calls_in_flight"] == 0, "the end of its call")


def test_roots_over_http():
    with served() as (w, d, server):
        folder = git_folder(w, "one", "git@example.org:team/one.git")
        h = Http(server)
        h.initialize({"roots": {}})
        body = message("tools/call", tool("memory_add", content="a fact"), 4)
        c, r = h.open("POST", body)
        question = next_event(r)
        same(question["method"], "roots/list")
        same(h.post({"jsonrpc": "2.0", "id": question["id"],
                     "result": roots_of("file://" + folder)})[0], 202)
        same(next_event(r)["result"]["structuredContent"]["project"], "example.org/team/one")
        c.close()
        answer = h.post(message("tools/call", tool("memory_list"), 5))[1]
        same(len(answer["result"]["structuredContent"]["memories"]), 1)
        # A refusal comes on the stream, too.
        h = Http(server)
        h.initialize({"roots": {}})
        c, r = h.open("POST", message("tools/call", tool("memory_list", project="/no/such"), 7))
        same(h.post({"jsonrpc": "2.0", "id": next_event(r)["id"], "result": roots_of()})[0], 202)
        check("project" in refused(next_event(r)), "what was wrong")
        same(r.read().strip(), b"", "after the answer")
        c.close()
        # Whoever takes no stream cannot be asked, and a header says it better.
        for headers, project in (({"Accept": "application/json"}, None),
                                 ({"Koine-Project": "named"}, "named")):
            h = Http(server)
            h.initialize({"roots": {}})
            answer = h.post(message("tools/call", tool("memory_add", content="%s" % project), 6),
                            headers)[1]
            same(answer["result"]["structuredContent"].get("project"), project)


# ---- an agent that is kept from writing ----

# Calls each of what its arguments name, and prints what came.
CONFINED = r"""
import json, socket, sys
meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}
for word in sys.argv[2:]:
    method, params = json.loads(word)
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method,
                          "params": dict(params, _meta=meta)}).encode() + b"\n")
    answer = json.loads(s.makefile().readline())
    result = answer.get("result", {})
    print(json.dumps([bool(answer.get("error") or result.get("isError")), json.dumps(answer)]))
"""


# One of the older era: what it hears after it has subscribed, once the file that it waits for is there.
SUBSCRIBES = r"""
import json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
lines = s.makefile()
def ask(id, method, params):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n")
    heard = [json.loads(lines.readline())]
    while heard[-1].get("id") != id:
        heard.append(json.loads(lines.readline()))
    return heard
ask(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}})
heard = ask(2, "resources/subscribe", {"uri": sys.argv[2]}) + ask(3, "resources/unsubscribe", {"uri": sys.argv[2]})
open(sys.argv[3] + "/subscribed", "w").close()
while not os.path.exists(sys.argv[3] + "/changed"):
    time.sleep(0.01)
print(json.dumps(heard + ask(4, "ping", {})))
"""


def test_a_refused_subscription_has_no_effect():
    needs_landlock()
    with Sandboxes() as s, concurrent.futures.ThreadPoolExecutor(1) as pool:
        path = s.daemon.address("unix", "koine")[len("unix:"):]
        with open(s("work/subscribes.py"), "w", encoding="utf-8") as f:
            f.write(SUBSCRIBES)
        with s.daemon.connect() as k, s.daemon.connect() as other:
            uri = "memory://" + k.call("memory.add", {"content": "a fact"})["id"]
            agent = s.make("a", cwd=s("work"), preset="sandboxed")
            says = pool.submit(agent.says, "python3 %s %s %s %s" % (s("work/subscribes.py"), path, uri, s("work")))
            wait_until(lambda: os.path.exists(s("work/subscribed")) or says.done(), "the agent")
            other.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                      "clientInfo": {"name": "x", "version": "1"}})
            other.call("resources/subscribe", {"uri": uri})
            k.call("memory.update", {"memory_id": uri[len("memory://"):], "content": "another"})
            same(json.loads(other.read_line())["method"], "notifications/resources/updated", "told")
            with open(s("work/changed"), "w", encoding="utf-8"):
                pass
            heard = json.loads(says.result())
        same([a.get("id") for a in heard], [2, 3, 4], "%r" % heard)
        for answer in heard[:2]:
            check("a read-only agent may not" in answer["error"]["message"], "%r", answer)


def test_a_sandboxed_agent_starts_nothing():
    needs_landlock()
    with Sandboxes() as s:
        path = s.daemon.address("unix", "koine")[len("unix:"):]
        with open(s("work/calls.py"), "w", encoding="utf-8") as f:
            f.write(CONFINED)

        def ask(*calls):
            words = " ".join("'%s'" % json.dumps(call) for call in calls)
            said = agent.says("python3 %s %s %s" % (s("work/calls.py"), path, words))
            return [json.loads(line) for line in said.strip().splitlines()]
        with s.daemon.connect() as k:
            task = k.call("task.add", {"prompt": "x", "agent": "recall"})["id"]
            memory = k.call("memory.add", {"content": "a fact"})["id"]
        agent = s.make("a", cwd=s("work"), preset="sandboxed")
        calls = [("tools/call", tool(name, **arguments)) for name, arguments in (
            ("task_add", {"prompt": "touch %s" % s("other/x")}), ("task_cancel", {"id": task}),
            ("task_list", {}), ("task_get", {"id": task}), ("task_output", {"id": task}))]
        calls += [("resources/read", {"uri": "task://" + task}),
                  ("prompts/get", {"name": "handoff", "arguments": {}})]
        for call, (no, answer) in zip(calls, ask(*calls), strict=True):
            check(no and "a read-only agent may not" in answer, "%s: %s", call, answer)
        calls = [("tools/list", {}), ("tools/call", tool("memory_add", content="mine")),
                 ("tools/call", tool("memory_search", query="fact"))]
        for call, (no, answer) in zip(calls, ask(*calls), strict=True):
            check(not no, "%s: %s", call, answer)


if __name__ == "__main__":
    main(globals())
