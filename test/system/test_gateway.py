#!/usr/bin/env python3
"""The gateway: who may come in, OpenAI's completions, tools, memory, jobs."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess

from embedding_server import Model, embed_angle
from harness import (PATIENCE, SOURCE, Client, Daemon, Folder, check, installed, main, post, run_koined, same,
                     wait_until)
from mcp_npm import PACKAGES, need
from nexus_client import Nexus, later
from provider import OPENAI, Provider, model_flags, plain, silence

TOKEN = "a-token-of-some-length"
ON = ("--set", "listen.gateway=on")
HERE = os.path.dirname(os.path.abspath(__file__))


def daemon(*args, token=TOKEN, env=None, **opts):
    env = dict(env or {})
    if token:
        env["OPENCLAW_UI_TOKEN"] = token
    return Daemon(*ON, *args, env=env, **opts)


def with_model(provider, *args, **opts):
    return daemon(*model_flags(provider, OPENAI), *args, **opts)


def place(d):
    return d.address("http", "gateway")[len("http:"):]


class Gateway:
    """One connection for each call."""

    def __init__(self, d, token=TOKEN):
        self.host = place(d)
        self.headers = {"Authorization": "Bearer " + token} if token else {}

    def open(self, path, params=None, method=None, headers=None):
        c = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        body = None if params is None else \
            params if isinstance(params, (bytes, str)) else json.dumps(params)
        sent = dict(self.headers if headers is None else headers)
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        c.request(method or ("GET" if body is None else "POST"), path, body, sent)
        return c, c.getresponse()

    def ask(self, *args, **opts):
        """Status and the JSON of the answer."""
        c, r = self.open(*args, **opts)
        with contextlib.closing(c):
            text = r.read()
            same(r.getheader("content-type"), "application/json; charset=utf-8", "type")
            return r.status, json.loads(text)

    def get(self, *args, **opts):
        status, answer = self.ask(*args, **opts)
        same(status, 200, "status (%.200r)" % answer)
        return answer

    def refused(self, *args, **opts):
        """Status and words."""
        status, answer = self.ask(*args, **opts)
        error = answer["error"]
        return status, error["message"] if isinstance(error, dict) else error

    def complete(self, *messages, **more):
        return self.get("/v1/chat/completions", dict({"messages": list(messages)}, **more))

    def says(self, *messages, **more):
        return self.complete(*messages, **more)["choices"][0]["message"]["content"]


def events(response):
    """Server-sent events until [DONE]."""
    for line in response:
        line = line.decode().rstrip("\n")
        if line == "data: [DONE]":
            return
        if line:
            check(line.startswith("data: "), "%r", line)
            yield json.loads(line[len("data: "):])


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def wants(*calls, text=None):
    """An answer that wants tools: (id, name, arguments) each."""
    steps = [OPENAI.text(text)] if text else []
    for i, (id, name, arguments) in enumerate(calls):
        steps += OPENAI.tool_call(i, id, name, json.dumps(arguments))
    return OPENAI.reply(*steps, OPENAI.finish(10, 5, stop="tools"), OPENAI.done)


def results(asked):
    """What the tools answered, by the id of their call."""
    return {m["tool_call_id"]: json.loads(m["content"]) for m in asked.json["messages"]
            if m["role"] == "tool"}


# ---- who may come in ----


def test_off_unless_named():
    with Daemon() as d:
        check("gateway" not in [name for name, _ in d.addresses], "%r", d.addresses)
    out = run_koined("--check", "--listen", "gateway=on").stdout.decode()
    check("gateway = http:127.0.0.1:55003" in out, "%s", out)
    same(run_koined("--listen", "gateway=http:0.0.0.0:0").returncode != 0, True, "refused")


def test_check_looks_for_the_token():
    def says(*args, **env):
        with Folder() as f:
            done = run_koined("--check", "--root", f("root"), "--listen", "gateway=on", *args,
                              env=env)
        return done.returncode, done.stdout.decode()

    code, out = says(OPENCLAW_UI_TOKEN="")
    check(code == 0 and "gateway rejects every call" in out, "%d: %s", code, out)
    code, out = says(OPENCLAW_UI_TOKEN="a-token")
    check(code == 0 and "gateway refuses" not in out, "%d: %s", code, out)
    code, out = says("--set", "gateway.token_file=/nonexistent")
    check(code == 69 and "gateway token error: " in out, "%d: %s", code, out)


def test_without_a_token_nobody():
    with daemon(token=None) as d:
        for path in ("/health", "/v1/models", "/nothing"):
            same(Gateway(d).refused(path), (401, "unauthorized (ui token not set)"), path)


def test_tokens():
    with daemon() as d:
        g = Gateway(d, token=None)
        for headers in ({"Authorization": "Bearer " + TOKEN}, {"Authorization": TOKEN},
                        {"X-OCG-UI-Token": TOKEN}):
            same(g.get("/health", headers=headers), {"status": "ok"})
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-OCG-UI-Token": TOKEN + "x"}):
            same(g.refused("/health", headers=headers), (401, "unauthorized"), headers)
        status, answer = g.ask("/v1/models", headers={})
        same((status, answer["error"]["message"], answer["error"]["code"]),
             (401, "unauthorized", "invalid_api_key"))
        c = Client(d.address("http", "gateway"))
        d.clients.append(c)
        bearer = "Authorization: Bearer %s\r\n" % TOKEN
        same(post(c, b"", "/health", bearer + "Origin: http://evil.example\r\n", "GET").status, 403)
        c = Client(d.address("http", "gateway"))
        d.clients.append(c)
        same(post(c, b"", "/health", bearer, "GET", host="evil.example").status, 403)


def test_white_space_around_the_token_is_none_of_it():
    with daemon(token=" %s\n" % TOKEN) as d:
        same(Gateway(d).get("/health"), {"status": "ok"})
    with daemon(token=" \n") as d:
        same(Gateway(d).refused("/health"), (401, "unauthorized (ui token not set)"))


def test_a_token_file():
    with Folder() as f:
        with open(os.open(f("token"), os.O_WRONLY | os.O_CREAT, 0o600), "w") as out:
            out.write("another-token-in-a-file\n")
        with daemon("--set", "gateway.token_file=" + f("token")) as d:
            same(Gateway(d, "another-token-in-a-file").get("/health"), {"status": "ok"})
            same(Gateway(d).refused("/health"), (401, "unauthorized"))


def test_paths_and_methods():
    with daemon() as d:
        g = Gateway(d)
        same(g.refused("/nothing"), (404, "Not found"))
        same(g.refused("/memory/store"), (405, "Method not allowed"))
        check(g.refused("/memory/store", b"{")[1].startswith("invalid JSON: "), "no JSON")
        same(g.refused("/memory/store", b"[]")[0], 400)
        # As `curl -d` calls a body.
        form = dict(g.headers, **{"Content-Type": "application/x-www-form-urlencoded"})
        same(g.get("/memory/store", {"text": "a form"}, headers=form)["action"], "created")


def test_below_v1_all_errors_are_openais():
    def error(message):
        return {"error": {"message": message, "type": "invalid_request_error", "param": None,
                          "code": None}}

    with daemon() as d:
        g = Gateway(d)
        same(g.ask("/v1/nothing"), (404, error("Not found")))
        same(g.ask("/v1/chat/completions?x=1"), (405, error("Method not allowed")))
        for path, says in (("/v1/chat/completions", error), ("/memory/store", lambda m: {"error": m})):
            with Client(d.address("http", "gateway")) as c:
                c.send(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                       b"Content-Length: 9000000\r\n\r\n" % (path.encode(), TOKEN.encode()))
                r = c.read_response()
            same((r.status, json.loads(r.body)),
                 (413, says("Request body too large: 9000000 > 8388608")), path)


# ---- what there is ----


def test_numbers_and_models():
    with Provider() as p, with_model(p) as d:
        g = Gateway(d)
        same(g.get("/storage/stats"), {"status": "ok", "stats": {
            "files": 0, "memories": 0, "messages": 0, "sessions": 0, "tools_calls": 0}})
        models = g.get("/v1/models")
        same((models["object"], sorted(m["id"] for m in models["data"])),
             ("list", ["model", "recall"]))


def test_memory():
    with daemon() as d:
        g = Gateway(d)
        text = "The build server is called anvil."
        made = g.get("/memory/store", {"text": text, "category": "facts", "importance": 0.9})
        same((made["action"], made["result"]), ("created", "Stored: " + text))
        same(g.get("/memory/store", {"text": " %s\n" % text}),
             {"action": "duplicate", "id": made["id"], "result": "Similar memory already exists"})
        # No words, so that no search finds it.
        same([g.get("/memory/store", {"text": "!!! ???"})["action"] for _ in range(2)],
             ["created", "duplicate"])
        same(g.get("/memory/search?query=build%20server&limit=3&minScore=0.9")["count"], 0)
        found = g.get("/memory/search?query=build%20server&limit=3&minScore=0.5")
        same((found["query"], found["count"]), ("build server", 1))
        same((found["items"][0]["id"], found["items"][0]["category"]), (made["id"], "fact"))
        check(found["result"].startswith("Found 1 related memories (similarity):\n\n1. [fact] "),
              "%r", found)
        same(g.get("/memory/search?query=build+server&category=&limit=&minScore="),
             g.get("/memory/search?query=build+server"))
        same(g.get("/memory/search?query=zebra"),
             {"query": "zebra", "count": 0, "result": "No relevant memories found."})
        one = g.get("/memory/get?path=" + made["id"])
        same((one["text"], one["importance"], one["source"]), (text, 0.9, "manual"))
        same(g.refused("/memory/search"), (400, "query is required"))
        same(g.refused("/memory/get"), (400, "path is required"))
        same(g.refused("/memory/store", {"text": " "}), (400, "text is required"))
        same(g.refused("/memory/get?path=nope")[0], 404)
        same(g.refused("/memory/search?query=a&limit=many")[0], 400)
        # For everybody else, too.
        with Client(d.address("unix", "koine")) as c:
            same(c.call("memory.search", {"query": "anvil"})[0]["id"],
                 made["id"])


def test_what_does_not_fit_into_an_answer_is_left_out():
    with daemon() as d:
        c = d.connect()
        for mb in (9, 5, 1):
            c.call("memory.add", {"content": "lorem m%d " % mb + "x" * (mb << 20)})
        g = Gateway(d)
        same([i["text"][:8] for i in g.get("/memory/search?query=lorem")["items"]], ["lorem m1"])
        same(g.refused("/memory/search?query=m5"),
             (413, "search failed: the result is larger than 8388608 bytes"))


def test_a_least_score_is_a_cosine():
    with Model(embed=embed_angle) as m, daemon("--set", "memory.embedding_url=" + m.url,
                                               "--set", "memory.embedding_model=test") as d:
        g = Gateway(d)
        for text in ("ferns at 10", "quokkas at 89"):
            g.get("/memory/store", {"text": text})
        c = d.connect()
        wait_until(lambda: c.call("memory.stats")["vectors"] == 2, "vectors")
        near = [("ferns at 10", "0.9848")]
        for query, wanted in (("zzzz", near), ("quokkas", near),
                              ("zzzz&minScore=0.99", []),
                              ("quokkas&minScore=0.01", [("quokkas at 89", "0.0175")] + near)):
            found = g.get("/memory/search?query=" + query)
            same([(i["text"], i["score"]) for i in found.get("items", [])], wanted, query)


# ---- completions ----


def test_a_whole_answer():
    with Provider(OPENAI.answer("Hello", ", world", input=12, output=3)) as p, with_model(p) as d:
        got = Gateway(d).complete(
            {"role": "system", "content": "Be brief."}, user("Hi"), assistant("Yes?"),
            {"role": "user", "content": [{"type": "text", "text": "Say "},
                                         {"type": "text", "text": "it."}]},
            model="gpt-4", temperature=0.1)
        check(got["id"].startswith("chatcmpl-"), "%r", got)
        same((got["object"], got["model"]), ("chat.completion", "model"))
        same(got["choices"], [{"index": 0, "message": {
            "role": "assistant", "content": "Hello, world", "refusal": None},
            "logprobs": None, "finish_reason": "stop"}])
        same(got["usage"], {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15})
        same(OPENAI.history(p.last), ("Be brief.", [
            ("user", "Hi"), ("assistant", "Yes?"), ("user", "Say \nit.")]))
        same([t["function"]["name"] for t in p.last.json["tools"]],
             ["memory_search", "memory_get", "memory_store"])


def test_instructions_alone_are_answered():
    with Provider(OPENAI.answer("Here."), OPENAI.answer("Yes.")) as p, with_model(p) as d:
        be = {"role": "system", "content": "be"}
        same(Gateway(d).says(be), "Here.")
        same(OPENAI.history(p.last), ("be", [("user", "")]))
        same(Gateway(d).says(be, assistant("Here."), user("Sure?")), "Yes.")
        same(len(Nexus(d).agent("gateway-1").call("get_messages")["messages"]), 4)


def test_models_are_agents():
    with Provider(OPENAI.answer("scripted")) as p, with_model(p) as d:
        got = Gateway(d).complete(user("Who?"), model="recall")
        same(got["model"], "recall")
        check("offline responder" in got["choices"][0]["message"]["content"], "%r", got)
        same(Gateway(d).complete(user("Who?"), model="else")["model"], "model")


def test_agents_are_not_told_the_token():
    shell = "agent.shell.command=sh -c 'echo [$OPENCLAW_UI_TOKEN]'"
    with daemon("--agent", "shell", "--set", "agent.shell.kind=command", "--set", shell) as d:
        same(Gateway(d).complete(user("x"))["choices"][0]["message"]["content"].strip(), "[]")


def test_a_stream():
    with Provider() as p, with_model(p) as d:
        gate = p.gate()
        p.play(OPENAI.reply(OPENAI.text("f\u00fc"), gate, OPENAI.text("nf"),
                            OPENAI.finish(7, 2), OPENAI.done))
        c, r = Gateway(d).open("/v1/chat/completions", {
            "messages": [user("Count")], "stream": True,
            "stream_options": {"include_usage": True}})
        with contextlib.closing(c):
            same(r.getheader("content-type"), "text/event-stream; charset=utf-8")
            got = events(r)
            first = next(got)
            same((first["object"], first["choices"][0]["delta"]),
                 ("chat.completion.chunk", {"role": "assistant", "content": ""}))
            # It comes before the rest has been said.
            same(next(got)["choices"][0]["delta"], {"content": "f\u00fc"})
            gate.open()
            same(next(got)["choices"][0]["delta"], {"content": "nf"})
            same(next(got)["choices"][0]["finish_reason"], "stop")
            last = next(got)
            same((last["choices"], last["usage"]), ([], {
                "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}))
            same(list(got), [], "what follows")
            same(r.read(), b"\n")


def test_a_slow_reader_gets_all():
    text = "word " * 200000
    with Provider(OPENAI.answer(*[text[i:i + 50000] for i in range(0, len(text), 50000)])) as p, \
            with_model(p, "--set", "limits.queue_bytes=65536") as d:
        c, r = Gateway(d).open("/v1/chat/completions",
                               {"messages": [user("Much")], "stream": True})
        with contextlib.closing(c):
            wait_until(p.last.ended.is_set, "the script's end")
            said = [e["choices"][0] for e in events(r)]
            same("".join(e["delta"].get("content", "") for e in said) == text, True, "all of it")
            same(said[-1]["finish_reason"], "stop")


def test_who_reads_nothing_is_cut():
    text = "word " * 1400000
    body = json.dumps({"messages": [user("Much")], "stream": True}).encode()
    with Provider(OPENAI.answer(*[text[i:i + 50000] for i in range(0, len(text), 50000)])) as p, \
            with_model(p, "--set", "limits.queue_bytes=65536", "--set", "gateway.ping=1") as d, \
            socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(PATIENCE)
        host, port = place(d).split(":")
        s.connect((host, int(port)))
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                  b"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s"
                  % (TOKEN.encode(), len(body), body))
        wait_until(lambda: b"the client does not read the response" in d.log(), "that it is cut")
        got = b"".join(iter(lambda: s.recv(1 << 20), b""))
        check(b"200 OK" in got and not got.endswith(b"0\r\n\r\n"), "%r", got[-100:])


def test_what_is_said_is_a_conversation():
    with Provider(OPENAI.answer("Yes?"), OPENAI.answer("Anvil."), OPENAI.answer("Other.")) as p, \
            with_model(p) as d:
        g = Gateway(d)
        same(g.says(user("Hi")), "Yes?")
        same(g.says(user("Hi"), assistant("Yes?"), user("Name it")), "Anvil.")
        # The same answer gone on from once more is another conversation.
        same(g.says(user("Hi"), assistant("Yes?"), user("Another")), "Other.")
        n = Nexus(d)
        same([(m["role"], m["content"]) for m in
              n.agent("gateway-1").call("get_messages")["messages"]],
             [("user", "Hi"), ("assistant", "Yes?"), ("user", "Name it"), ("assistant", "Anvil.")])
        same([m["content"] for m in n.agent("gateway-2").call("get_messages")["messages"]],
             ["Another", "Other."])
        same(g.get("/storage/stats")["stats"]["sessions"], 2)


def test_what_is_refused_is_no_conversation():
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    twice = [user("Hi"), dict(assistant("Yes?"), tool_calls=[call])] + \
        2 * [{"role": "tool", "tool_call_id": "a", "content": "done"}]
    with Provider(OPENAI.answer("Yes?"), OPENAI.answer("Anvil.")) as p, with_model(p) as d:
        g = Gateway(d)
        same(g.refused("/v1/chat/completions", {"messages": twice}),
             (400, "duplicate result for tool call 'a'"))
        same(g.says(user("Hi")), "Yes?")
        same(g.says(user("Hi"), assistant("Yes?"), user("Name it")), "Anvil.")
        same(len(Nexus(d).agent("gateway-1").call("get_messages")["messages"]), 4)


def test_who_leaves_cancels():
    with Provider() as p, with_model(p) as d:
        p.play(OPENAI.reply(OPENAI.text("So far"), silence))
        c, r = Gateway(d).open("/v1/chat/completions",
                               {"messages": [user("Long")], "stream": True})
        got = events(r)
        next(got)
        same(next(got)["choices"][0]["delta"], {"content": "So far"})
        r.close()
        c.close()
        p.last.left()
        agent = Nexus(d).agent("gateway-1")
        wait_until(lambda: [m["content"] for m in agent.call("get_messages")["messages"]] ==
                   ["Long", "So far"], "what came")


def test_an_agent_that_says_nothing():
    with Provider() as p, with_model(p, "--set", "gateway.timeout=1") as d:
        g = Gateway(d)
        p.play(OPENAI.reply(silence))
        whole = later(g.ask, "/v1/chat/completions", {"messages": [user("Hi")]})
        wait_until(lambda: p.asked, "the first question")
        p.play(OPENAI.reply(OPENAI.text("a"), silence))
        c, r = g.open("/v1/chat/completions", {"messages": [user("Hi")], "stream": True})
        with contextlib.closing(c):
            got = [line for line in r.read().decode().split("\n\n") if line]
            same(json.loads(got[-1][len("data: "):])["error"]["message"],
                 "timeout waiting for agent")
        status, answer = whole.result(PATIENCE)
        same((status, answer["error"]["message"], answer["error"]["type"]),
             (504, "timeout waiting for agent", "timeout_error"))


def test_a_stop_is_no_answer():
    with Provider() as p, with_model(p, "--set", "limits.stop_time=3") as d:
        g = Gateway(d)
        gate = p.gate()
        p.play(OPENAI.reply(gate, OPENAI.text("late")),
               OPENAI.reply(OPENAI.text("So far"), gate, OPENAI.text("late")))
        whole = later(g.ask, "/v1/chat/completions", {"messages": [user("Hi")]})
        gate.arrived()
        c, r = g.open("/v1/chat/completions", {"messages": [user("Hi")], "stream": True})
        with contextlib.closing(c):
            d.signal(signal.SIGTERM)
            got = [line for line in r.read().decode().split("\n\n") if line]
            same(json.loads(got[-1][len("data: "):])["error"]["message"], "cancelled")
        status, answer = whole.result(PATIENCE)
        same((status, answer["error"]["message"]), (503, "cancelled"))
        same(d.wait_exit(), 0, "exit status")


def test_agents_that_fail():
    with Provider() as p, with_model(p) as d:
        p.play(OPENAI.reply(OPENAI.failure("out of luck")))
        status, words = Gateway(d).refused("/v1/chat/completions", {
            "messages": [user("Hi")], "stream": True})
        same(status, 502)
        check("out of luck" in words, "%r", words)
    with daemon("--agent", "none") as d:
        same(Gateway(d).refused("/v1/chat/completions", {"messages": [user("Hi")]}),
             (503, "agent not initialized"))


def test_a_providers_no_is_passed_on():
    def asks(status):
        p.play(plain(status, OPENAI.refusal("not like this")))
        status, answer = Gateway(d).ask("/v1/chat/completions", {"messages": [user("Hi")]})
        check("not like this" in answer["error"]["message"], "%r", answer)
        return status, answer["error"]["type"]

    with Provider() as p, with_model(p) as d:
        same(asks(400), (400, "invalid_request_error"))
        same(asks(429), (429, "rate_limit_error"))
        # Its key is none of the client's business.
        same(asks(401), (502, "server_error"))
        same(asks(503), (502, "server_error"))


def test_what_a_filter_stops_is_an_answer():
    filtered = OPENAI.reply(OPENAI.text("So far"), OPENAI.chunk({}, "content_filter"), OPENAI.done)
    with Provider(filtered, filtered) as p, with_model(p) as d:
        got = Gateway(d).complete(user("Hi"))["choices"][0]
        same((got["message"]["content"], got["finish_reason"]), ("So far", "content_filter"))
        c, r = Gateway(d).open("/v1/chat/completions",
                               {"messages": [user("Ho")], "stream": True})
        with contextlib.closing(c):
            same(list(events(r))[-1]["choices"][0]["finish_reason"], "content_filter")


def test_bad_requests():
    with daemon() as d:
        g = Gateway(d)
        for params, param in (
                ({}, "messages"),
                ({"messages": []}, "messages"),
                ({"messages": "Hi"}, "messages"),
                ({"messages": [user("a"), assistant("b")]}, "messages"),
                ({"messages": [{"role": "king", "content": "a"}]}, "messages"),
                ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
                ({"messages": [{"role": "user", "content": 3}]}, "messages"),
                ({"messages": [{"role": "tool", "content": "a"}]}, "messages"),
                ({"messages": [None]}, "messages"),
                ({"messages": [user("a")], "tools": [{"type": "function"}]}, "tools"),
                ({"messages": [user("a")], "n": 2}, "n"),
                ({"messages": [user("a")], "stream": "yes"}, "stream")):
            status, answer = g.ask("/v1/chat/completions", params)
            error = answer["error"]
            same((status, error["type"], error["param"]), (400, "invalid_request_error", param),
                 repr(params))


# ---- tools ----


def test_tools_of_the_client():
    tool = {"type": "function", "function": {
        "name": "weather", "description": "Of a city", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}}}}
    with Provider(wants(("call_1", "weather", {"city": "Oslo"})), OPENAI.answer("Rain."),
                  wants(("call_2", "weather", {}))) as p, with_model(p) as d:
        g = Gateway(d)
        got = g.complete(user("Oslo?"), tools=[tool])["choices"][0]
        same((got["finish_reason"], got["message"]["content"]), ("tool_calls", None))
        same(got["message"]["tool_calls"], [{"id": "call_1", "type": "function", "function": {
            "name": "weather", "arguments": '{"city": "Oslo"}'}}])
        same(p.last.json["tools"], [tool])
        same(g.says(user("Oslo?"), got["message"],
                    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
                    tools=[tool]), "Rain.")
        same([m["role"] for m in Nexus(d).agent("gateway-1").call("get_messages")["messages"]],
             ["user", "assistant", "tool", "assistant"])
        c, r = g.open("/v1/chat/completions",
                      {"messages": [user("Oslo?")], "tools": [tool], "stream": True})
        with contextlib.closing(c):
            said = list(events(r))
            same(said[-2]["choices"][0]["delta"]["tool_calls"], [
                {"index": 0, "id": "call_2", "type": "function",
                 "function": {"name": "weather", "arguments": "{}"}}])
            same(said[-1]["choices"][0]["finish_reason"], "tool_calls")


def test_what_the_answer_is_to_be_like_is_passed_on():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object"}}}
    choice = {"type": "function", "function": {"name": "weather"}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    with Provider(default=OPENAI.answer("{}")) as p, with_model(p) as d:
        g = Gateway(d)
        g.complete(user("Hi"), tools=[tool], tool_choice=choice, response_format=form)
        same((p.last.json["tool_choice"], p.last.json["response_format"]), (choice, form))
        # Those of the gateway are used when the agent wants to.
        g.complete(user("Hi"), tool_choice="required", response_format=None)
        check(not {"tool_choice", "response_format"} & set(p.last.json), "%r", p.last.json)
        status, answer = g.ask("/v1/chat/completions", {
            "messages": [user("Hi")], "response_format": {"type": "x" * 65536}})
        same((status, answer["error"]["param"]), (400, "response_format"))


def test_results_in_the_originals_shape():
    calls = [{"id": id, "type": "function", "function": {"name": "x", "arguments": "{}"}}
             for id in ("a", "b")]
    got = [{"id": "a", "type": "function", "result": {"ok": 1}},
           {"id": "b", "type": "function", "result": "plain"}]
    asked = [user("Hi"), dict(assistant(""), tool_calls=calls)]
    for tail, after in (([{"role": "tool", "content": "", "tool_results": got}], []),
                        ([{"role": "user", "content": "", "tool_results": got}], []),
                        ([dict(user("Well?"), tool_results=got)], [("user", "Well?")]),
                        ([{"role": "tool", "content": "Both ran.", "tool_results": got}],
                         [("user", "Both ran.")])):
        with Provider(OPENAI.answer("Done.")) as p, with_model(p) as d:
            same(Gateway(d).says(*asked, *tail), "Done.")
            same(OPENAI.history(p.last)[1][2:], [("tool", '{"ok":1}'), ("tool", "plain")] + after)
    with Provider(OPENAI.answer("Done.")) as p, with_model(p) as d:
        same(Gateway(d).says(asked[0], dict(asked[1], tool_results=got)), "Done.")
        same(OPENAI.history(p.last)[1][2:], [("tool", '{"ok":1}'), ("tool", "plain")])
        same(Gateway(d).refused("/v1/chat/completions", {"messages": asked + [
            {"role": "tool", "tool_results": [{"result": 1}]}]}),
            (400, "each entry of tool_results requires an id"))


def test_calls_that_end_the_messages_are_made():
    call = {"id": "a", "type": "function",
            "function": {"name": "memory_search", "arguments": '{"query":"zebra"}'}}
    asked = [user("Zebra?"), dict(assistant(""), tool_calls=[call])]
    with Provider(OPENAI.answer("None.")) as p, with_model(p) as d:
        g = Gateway(d)
        same(g.says(*asked), "None.")
        same(results(p.last)["a"]["result"]["count"], 0)
        # Those of the client's own are its own to make.
        tools = [{"type": "function", "function": {"name": "memory_search"}}]
        same(g.refused("/v1/chat/completions", {"messages": asked, "tools": tools})[0], 400)


def test_memory_is_a_tool():
    with Provider(wants(("a", "memory_store", {"text": "The cat is called Miso."}),
                        ("b", "memory_search", {"query": "zebra"}), ("c", "exec", {}),
                        text="Let me see."),
                  wants(("d", "memory_search", {"query": "cat"})),
                  OPENAI.answer("Miso.", input=1, output=1)) as p, with_model(p) as d:
        got = Gateway(d).complete(user("Remember the cat"))
        same(got["choices"][0]["message"]["content"], "Let me see.\n\nMiso.")
        same(got["usage"], {"prompt_tokens": 21, "completion_tokens": 11, "total_tokens": 32})
        done = results(p.last)
        same((done["a"]["success"], done["a"]["tool"], done["a"]["result"]["action"]),
             (True, "memory_store", "created"))
        same(done["b"]["result"]["count"], 0)
        same(done["c"], {"error": "tool not found: exec", "tool": "exec", "success": False})
        same(done["d"]["result"]["items"][0]["text"], "The cat is called Miso.")


def test_rounds_of_tools_end():
    with Provider(default=wants(("a", "memory_get", {"path": "nope"}))) as p, with_model(p) as d:
        got = Gateway(d).complete(user("Go on"))
        same(got["choices"][0]["finish_reason"], "length")
        same(len(p.asked), 9, "turns")


def with_tools(p, folder, *args, **opts):
    return with_model(p, "--set", "gateway.tools=exec,read,write,edit",
                      "--set", "gateway.folder=" + folder, *args, **opts)


ALLOW = ("--set", "policy.all.verdict=allow", "--set", "policy.all.agent=gateway")


def test_files_and_programs():
    with Folder() as f, Folder() as other:
        with open(other("secret"), "w") as out:
            out.write("secret")
        os.symlink(other("secret"), f("link"))
        os.symlink(other.path, f("away"))
        with Provider(
                wants(("w", "write", {"path": "a/b.txt", "content": "one two"}),
                      ("e", "edit", {"path": f("a/b.txt"), "oldText": "two", "newText": "three"}),
                      ("r", "read", {"path": "./a//b.txt"}),
                      ("x", "exec", {"command": "pwd; echo no >&2; exit 3", "workdir": "a"}),
                      ("t", "exec", {"command": "sleep 60 & sleep 60", "timeout": 1}),
                      ("token", "exec", {"command": "echo [$OPENCLAW_UI_TOKEN]"}),
                      ("dash", "exec", {"command": "-x 2>&-; echo ran"}),
                      ("o1", "read", {"path": "../" + os.path.basename(other.path) + "/secret"}),
                      ("o2", "read", {"path": other("secret")}),
                      ("o3", "read", {"path": "link"}),
                      ("o4", "write", {"path": "away/new", "content": "x"}),
                      ("o5", "write", {"path": "link", "content": "x"}),
                      ("o6", "exec", {"command": "true", "workdir": "away"}),
                      ("d", "read", {"path": "a"}),
                      ("n", "read", {"path": "nothing"}),
                      ("e2", "edit", {"path": "a/b.txt", "oldText": "e", "newText": ""})),
                OPENAI.answer("Done.")) as p, with_tools(p, f.path, *ALLOW) as d:
            same(Gateway(d).says(user("Work")), "Done.")
            done = results(p.last)
        path = os.path.realpath(f("a/b.txt"))
        same(done["w"]["result"], {"path": path, "bytes": 7, "append": False, "created": True})
        same(done["e"]["result"], {"path": path, "changed": True,
                                   "match_info": "replaced 1 occurrence"})
        same(done["r"]["result"], {"path": path, "size": 9, "content": "one three",
                                   "is_binary": False})
        same(done["x"]["result"], {
            "command": "pwd; echo no >&2; exit 3", "timeout": 30, "workdir": "a",
            "success": False, "exit_code": 3, "stdout": os.path.dirname(path) + "\n",
            "stderr": "no\n", "error": "exit status 3"})
        same((done["t"]["result"]["success"], done["t"]["result"]["error"]),
             (False, "timed out after 1 s"))
        same(done["token"]["result"]["stdout"], "[]\n")
        same(done["dash"]["result"]["stdout"], "ran\n", "a command that begins with a dash")
        for id in ("o1", "o2", "o3", "o4", "o5", "o6", "d", "n", "e2"):
            same(done[id]["success"], False, "%s (%r)" % (id, done[id]))
        same(done["e2"]["error"], "oldText appears 3 times; include more context")
        same(os.listdir(other.path), ["secret"])
        with open(other("secret")) as out:
            same(out.read(), "secret")


def test_whoever_approves_is_asked():
    with Folder() as f:
        with Provider(wants(("a", "exec", {"command": "echo hi"}),
                            ("b", "exec", {"command": "echo ho"})),
                      OPENAI.answer("Done.")) as p, with_tools(p, f.path) as d:
            answer = later(Gateway(d).says, user("Work"))
            with Client(d.address("unix", "koine")) as c:
                for decision in ("approve", "deny"):
                    waiting = wait_until(lambda: c.call("approval.list")["approvals"],
                                         "the question")
                    same((waiting[0]["agent"], waiting[0]["tool"]), ("gateway", "exec"))
                    c.call("approval.decide", {"id": waiting[0]["id"],
                                               "decision": decision, "comment": "as you like"})
            same(answer.result(PATIENCE), "Done.")
            done = results(p.last)
            same(done["a"]["result"]["stdout"], "hi\n")
            same(done["b"], {"error": "denied: as you like", "tool": "exec",
                             "success": False})


def test_who_leaves_withdraws_the_question():
    with Folder() as f:
        with Provider(wants(("a", "exec", {"command": "echo hi"}))) as p, \
                with_tools(p, f.path) as d, Client(d.address("unix", "koine")) as k:
            c = http.client.HTTPConnection(place(d), timeout=PATIENCE)
            c.request("POST", "/v1/chat/completions", json.dumps({"messages": [user("Work")]}),
                      {"Authorization": TOKEN, "Content-Type": "application/json"})
            wait_until(lambda: k.call("approval.list")["approvals"], "the question")
            c.close()
            wait_until(lambda: not k.call("approval.list")["approvals"], "that it is withdrawn")


def test_a_stop_waits_for_nobody():
    with Folder() as f:
        with Provider(wants(("a", "exec", {"command": "sleep 60"}))) as p, \
                with_tools(p, f.path, "--set", "limits.stop_time=3") as d:
            answer = later(Gateway(d).refused, "/v1/chat/completions",
                           {"messages": [user("Work")]})
            with Client(d.address("unix", "koine")) as k:
                wait_until(lambda: k.call("approval.list")["approvals"], "the question")
            same(d.stop(), 0, "exit")
            same(answer.result(PATIENCE)[0], 503)
    with Folder() as f:
        command = "echo $$ > pid; exec sleep 60"
        with Provider(wants(("a", "exec", {"command": command}))) as p, \
                with_tools(p, f.path, *ALLOW, "--set", "limits.stop_time=3") as d:
            answer = later(Gateway(d).refused, "/v1/chat/completions",
                           {"messages": [user("Work")]})
            pid = wait_until(lambda: os.path.exists(f("pid")) and open(f("pid")).read().strip(),
                             "the program")
            same(d.stop(), 0, "exit")
            same(answer.result(PATIENCE)[0], 503)
            wait_until(lambda: not os.path.exists("/proc/" + pid), "the program's end")


def test_a_stop_does_not_wait_for_a_command():
    with Folder() as f:
        command = "trap '' TERM; echo > begun; while :; do sleep 1; done"
        with Provider(wants(("a", "exec", {"command": command}))) as p, \
                with_tools(p, f.path, *ALLOW, "--set", "limits.stop_time=3") as d:
            answer = later(Gateway(d).refused, "/v1/chat/completions",
                           {"messages": [user("Work")]})
            wait_until(lambda: os.path.exists(f("begun")), "the command")
            d.stop()
            same(answer.result(PATIENCE), (503, "koined is stopping"))


def test_questions_of_an_earlier_life_are_withdrawn():
    with Folder() as f, Folder() as root:
        with Provider(wants(("a", "exec", {"command": "echo hi"}))) as p, \
                with_tools(p, f.path, root=root.path) as d, \
                Client(d.address("unix", "koine")) as k:
            answer = later(Gateway(d).refused, "/v1/chat/completions",
                           {"messages": [user("Work")]})
            wait_until(lambda: k.call("approval.list")["approvals"], "the question")
            d.stop()
            same(answer.result(PATIENCE), (503, "koined is stopping"))
        with Provider() as p, with_tools(p, f.path, root=root.path) as d, \
                Client(d.address("unix", "koine")) as k:
            wait_until(lambda: not k.call("approval.list")["approvals"], "that it is withdrawn")


def test_settings_of_tools():
    for args, words in ((("gateway.tools=exec",), b"gateway.folder"),
                        (("gateway.tools=memory,fly",), b"unknown tool 'fly'")):
        done = run_koined("--check", *(w for a in args for w in ("--set", a)))
        check(done.returncode != 0 and words in done.stderr + done.stdout, "%r", done)


# ---- jobs ----


def test_jobs():
    job = {"name": "Report", "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"},
           "payload": {"kind": "agentTurn", "message": "Say hello"},
           "delivery": {"mode": "none"}}
    with Folder() as f:
        with daemon(root=f.path) as d:
            g = Gateway(d)
            made = g.get("/cron/add", job)
            same({k: made["job"][k] for k in job}, job)
            id = made["jobId"]
            wait_until(lambda: g.get("/cron/status")["next_check"], "that it is armed")
            same({k: v for k, v in g.get("/cron/status").items() if k != "next_check"}, {
                "running": True, "total_jobs": 1, "enabled": 1, "disabled": 0, "due_now": 0})
            for wrong in ({}, dict(job, schedule={"kind": "at", "at": "2030-01-01"}),
                          dict(job, schedule={"kind": "cron", "expr": "often"}),
                          dict(job, payload={"kind": "systemEvent", "text": "a"}),
                          dict(job, schedule={"kind": "every", "everyMs": -1}),
                          dict(job, schedule={"kind": "every"}), dict(job, schedule={"kind": "every", "everyMs": "1000"}),
                          dict(job, payload={"kind": "agentTurn"}), dict(job, payload={"kind": "agentTurn", "message": ""}),
                          dict(job, payload={"kind": "agentTurn", "message": "\0"}), [], "job", dict(job, schedule=None)):
                same(g.refused("/cron/add", wrong)[0], 400, wrong)
            same(g.refused("/cron/add", dict(job, payload={"kind": "agentTurn", "message": "\0"})),
                 (400, "prompt has a NUL byte"))
            where = {"kind": "cron", "expr": "0 9 * * *", "tz": "Mars/Olympus"}
            same(g.refused("/cron/add", dict(job, schedule=where)),
                 (400, "schedule: time zone not found: 'Mars/Olympus'"))
            same(g.refused("/cron/run", {"jobId": "nope"}), (404, "job not found: nope"))
            same(g.refused("/cron/run", {}), (400, "jobId is required"))
            same(g.get("/cron/run", {"jobId": id})["job"]["state"]["runs"], 1)
        with daemon(root=f.path) as d:
            g = Gateway(d)
            kept = g.get("/cron/list")
            same([(j["id"], j["enabled"]) for j in kept], [(id, True)], "list")
            same({k: kept[0][k] for k in job}, job)
            changed = g.get("/cron/update", {"jobId": id, "patch": {
                "enabled": False, "delivery": None, "name": "Off"}})["job"]
            same((changed["enabled"], changed["name"], "delivery" in changed),
                 (False, "Off", False))
            same(g.refused("/cron/update", {"jobId": id, "patch": {"schedule": "never"}})[0], 400)
            same(g.get("/cron/status")["disabled"], 1)
            same(g.get("/cron/remove", {"jobId": id}), {
                "success": True, "ok": True, "jobId": id})
            same(g.get("/cron/list"), [])
        with daemon(root=f.path) as d:
            same(Gateway(d).get("/cron/list"), [])


def test_jobs_in_the_originals_shapes():
    job = {"name": "Report", "schedule": {"kind": "cron", "expr": "0 9 ? * *", "tz": "UTC"},
           "sessionTarget": "isolated", "payload": {"message": "Say hello"}, "ok": "mine"}
    with daemon() as d:
        g = Gateway(d)
        made = g.get("/cron/add", {"job": job})
        same((made["ok"], made["success"], made["id"]), (True, True, made["jobId"]))
        same({k: made["job"][k] for k in job if k != "ok"},
             {k: made[k] for k in job if k != "ok"})
        check(made["createdAt"].endswith("Z") and made["createdAt"] == made["updatedAt"],
              "%r", made)
        changed = g.get("/cron/update", {"jobId": made["id"], "patch": {
            "schedule": {"expr": "0 10 * * ?", "tz": None}, "payload": {"message": "Bye"}}})
        same((changed["schedule"], changed["payload"]),
             ({"kind": "cron", "expr": "0 10 * * ?"}, {"message": "Bye"}))
        same(g.refused("/cron/add", {"job": dict(job, sessionTarget="main")})[0], 400)


# ---- the page ----


def transcript():
    """(method, path, body, status, answer) of each exchange on the gateway's page."""
    with open(os.path.join(SOURCE, "doc", "dialects", "gateway.md"), encoding="utf-8") as f:
        return re.findall(r"^--> (\w+) (\S+) ?(.*)\n<-- (\d+) (.*)$", f.read(), re.M)


def test_what_the_page_says():
    exchanges = transcript()
    check(len(exchanges) > 10, "only %d exchanges", len(exchanges))
    with daemon() as d:
        g = Gateway(d)
        for method, path, body, status, answer in exchanges:
            c, r = g.open(path, body or None, method)
            with contextlib.closing(c):
                got = r.read().decode()
            same(r.status, int(status), "status of %s (%s)" % (path, got))
            fits = ".*".join(re.escape(part) for part in answer.split("\u2026"))
            check(re.fullmatch(fits, got), "%s says %s, not %s", path, got, answer)


# ---- OpenAI's own package ----


def test_openais_own_package():
    node = installed("node", "nodejs")
    need(os.path.join(PACKAGES, "node_modules", "openai"))
    with Provider(OPENAI.answer("One", ".", input=3, output=2),
                  OPENAI.answer("Two", ".", input=4, output=2),
                  wants(("c1", "weather", {"city": "Oslo"})),
                  wants(("c2", "weather", {"city": "Oslo"})),
                  OPENAI.answer("Rain.")) as p, with_model(p) as d:
        done = subprocess.run([node, os.path.join(HERE, "openai_client.mjs"), PACKAGES,
                               "http://" + place(d), TOKEN], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)
        same((done.returncode, done.stderr), (0, b""), "node's end")
        out = json.loads(done.stdout)
    same((sorted(out["models"]), out["model"]["id"]), (["model", "recall"], "model"))
    same((out["whole"]["choices"][0]["message"]["content"], out["whole"]["usage"]["total_tokens"]),
         ("One.", 5))
    out["stream"]["pieces"] = "".join(out["stream"]["pieces"])
    same(out["stream"], {"pieces": "Two.", "finish": "stop", "usage": {
        "prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}})
    same((out["helper"]["finish_reason"],
          out["helper"]["message"]["tool_calls"][0]["function"]["arguments"]),
         ("tool_calls", '{"city": "Oslo"}'))
    same(out["runner"], {"calls": [{"city": "Oslo"}], "answer": "Rain."})
    same((out["refused"]["name"], out["refused"]["status"], out["refused"]["param"]),
         ("BadRequestError", 400, "messages"))
    same((out["stranger"]["name"], out["stranger"]["message"]),
         ("AuthenticationError", "401 unauthorized"))


if __name__ == "__main__":
    main(globals())
