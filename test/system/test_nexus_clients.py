#!/usr/bin/env python3
"""
nexus as its users meet it: every curl line of the specification in a shell, the Python
client's habits, http.client, Node's fetch, and the web pages that must not get in.
"""
import asyncio
import http.client
import json
import os
import re
import subprocess

from harness import (PATIENCE, Client, Daemon, Folder, check, installed, main, post, request, run_koined, same,
                     wait_until)
from nexus_client import ClientError, Nexus, NexusClient, nexus_address
from provider import agent_flags

NODE_CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "node_client.mjs")


def slow_recall(ms=20):
    return ["--agent", "recall", *agent_flags("recall", kind="recall", word_delay=ms)]


def url_of(d, host="127.0.0.1"):
    return "http://%s:%s" % (host, nexus_address(d).rpartition(":")[2])


# ---- curl, as the specification has it ----


class Shell:
    """Pastes the specification's lines, with the port that this daemon has."""

    def __init__(self, d):
        self.port = nexus_address(d).rpartition(":")[2]

    def start(self, line):
        line = line.replace("http://localhost:8765", "http://localhost:" + self.port)
        # A proxy in the environment is not the specification's business.
        return subprocess.Popen(["bash", "-c", line.replace("curl ", "curl --noproxy '*' -sS ")],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def finish(process):
        out, err = process.communicate(timeout=PATIENCE)
        same((process.returncode, err), (0, ""), "curl's end")
        return out

    def run(self, line):
        return self.finish(self.start(line))


CURL = "curl -X POST http://localhost:8765 \\\n  "
HELLO = CURL + ("-H \"Content-Type: application/json\" \\\n"
                "  -d '{\"jsonrpc\":\"2.0\",\"method\":\"send\",\"params\":{\"content\":\"Hello\"},"
                "\"id\":1}'")


def d_line(text):
    return CURL + "-d '%s'" % text


SEND = '{"jsonrpc":"2.0","method":"send","params":{"content":"%s"},"id":%d}'
ESSAY = ('{"jsonrpc":"2.0","method":"send","params":{"content":"Write a long essay about the '
         'history of computing","request_id":"my-req-1"},"id":1}')
CANCEL = '{"jsonrpc":"2.0","method":"cancel","params":{"request_id":"my-req-1"},"id":2}'


def check_sent(answer, id):
    found = re.fullmatch(r'\{"jsonrpc":"2\.0","id":%d,"result":\{"content":(".*"),'
                         r'"request_id":("[^"]+")\}\}' % id, answer)
    check(found, "not as shown: %r", answer)
    return json.loads(found.group(1)), json.loads(found.group(2))


def test_every_curl_line_of_the_specification():
    with Daemon(*slow_recall(1)) as d:
        sh = Shell(d)
        first = check_sent(sh.run(HELLO), 1)
        again = check_sent(sh.run(d_line(SEND % ("Hello", 1))), 1)
        check(first[1] != again[1], "one request id for two")
        check_sent(sh.run(d_line(SEND % ("My name is Alice", 1))), 1)
        text, _ = check_sent(sh.run(d_line(SEND % ("What is my name?", 2))), 2)
        check("Alice" in text, "%r", text)
        check_sent(sh.run(d_line(SEND % ("Hi", 1))), 1)
        tokens = sh.run(d_line('{"jsonrpc":"2.0","method":"get_tokens","id":3}'))
        found = re.fullmatch(r'\{"jsonrpc":"2\.0","id":3,"result":\{"system":(\d+),"tools":(\d+),'
                             r'"messages":(\d+),"total":(\d+),"budget":8000,"available":6000\}\}',
                             tokens)
        check(found, "not as shown: %r", tokens)
        system, tools, messages, total = map(int, found.groups())
        same(system + tools + messages, total, "total")
        check(messages > 0, "no messages counted")
        same(sh.run(d_line('{"jsonrpc":"2.0","method":"unknown","id":4}')),
             '{"jsonrpc":"2.0","id":4,"error":{"code":-32601,'
             '"message":"Method not found: unknown"}}')
        same(sh.run(d_line('{"jsonrpc":"2.0","method":"send","params":{},"id":5}')),
             '{"jsonrpc":"2.0","id":5,"error":{"code":-32602,'
             '"message":"Missing required parameter: content"}}')
        answer = json.loads(sh.run(d_line(CANCEL)))
        same((answer["result"]["cancelled"], answer["result"]["request_id"]), (False, "my-req-1"))
        same(sh.run(d_line('{"jsonrpc":"2.0","method":"shutdown","id":2}')),
             '{"jsonrpc":"2.0","id":2,"result":{"success":true}}')
        same(d.wait_exit(), 0, "exit status")


def test_two_terminals_cancel():
    with Daemon(*slow_recall(100)) as d:
        sh, n = Shell(d), Nexus(d)
        long = sh.start(d_line(ESSAY))
        # The first words are there: what a person would see before they lose patience.
        wait_until(lambda: [m for m in n.messages() if m["role"] == "assistant" and m["content"]],
                   "the first words")
        same(sh.run(d_line(CANCEL)),
             '{"jsonrpc":"2.0","id":2,"result":{"cancelled":true,"request_id":"my-req-1"}}')
        answer = json.loads(sh.finish(long))
        same(answer["id"], 1)
        same(sorted(answer["result"]), ["cancelled", "content", "request_id"])
        same((answer["result"]["cancelled"], answer["result"]["request_id"]), (True, "my-req-1"))
        check(answer["result"]["content"], "nothing was kept")
        same(n.said(), [("user", "Write a long essay about the history of computing"),
                        ("assistant", answer["result"]["content"])])
        late = json.loads(sh.run(d_line(CANCEL)))["result"]
        same((late["cancelled"], late["request_id"]), (False, "my-req-1"))


# ---- the Python client ----


def test_the_python_client():
    for keep_alive in (True, False):
        with Daemon(*slow_recall(5)) as d:
            asyncio.run(converse(d, keep_alive))
            same(d.wait_exit(), 0, "exit status")


async def converse(d, keep_alive):
    async with NexusClient(url_of(d), keep_alive=keep_alive) as client:
        await client.send("My name is Alice")
        r = await client.send("What is my name?")
        check("Alice" in r["content"], "%r", r)
        same(await client.get_context(), {"message_count": 4, "system_prompt": True})
        tokens = await client.get_tokens()
        same(list(tokens), ["system", "tools", "messages", "total", "budget", "available"])
        await check_cancel(d, client, keep_alive)
        for call, want in ((client.cancel(), "RPC error -32602"),
                           (client.call("nothing"), "RPC error -32601: Method not found: nothing"),
                           (client.call("send"), "RPC error -32602: Missing required parameter")):
            try:
                await call
                check(False, "not refused: %s", want)
            except ClientError as why:
                check(str(why).startswith(want), "%r", str(why))
        same(await client.shutdown(), {"success": True})
        same(client.connections > 1, not keep_alive, "more than one connection")


async def check_cancel(d, client, keep_alive):
    """The send goes on one connection, its cancel comes on another."""
    async with NexusClient(url_of(d), keep_alive=keep_alive, path="/rpc") as second:
        for id in (7, "text"):
            sent = asyncio.ensure_future(client.send("What is my name, once more?", request_id=id))
            while not (await second.cancel(id))["cancelled"]:
                await asyncio.sleep(0.002)
            r = await sent
            same((r["cancelled"], r["request_id"]), (True, id))
        same((await second.cancel(7))["cancelled"], False)


def test_a_client_that_waits_only_so_long_can_cancel_then():
    async def impatient(d):
        async with NexusClient(url_of(d), timeout=0.2) as client:
            try:
                await client.send("a long one", request_id=1)
                check(False, "it was answered")
            except ClientError as why:
                check("timed out" in str(why), "%r", str(why))
            await client.disconnect()
            client.timeout = PATIENCE
            same(await client.cancel(1), {"cancelled": True, "request_id": 1})

    with Daemon(*slow_recall(60000)) as d:
        asyncio.run(impatient(d))
        n = Nexus(d)
        wait_until(lambda: n.messages()[-1]["state"] == "cancelled", "the end of the turn")


def test_the_client_can_read_every_refusal():
    async def refused(client, call, words):
        try:
            check(False, "it was answered: %r", await call)
        except ClientError as why:
            same(str(why), words, "what its user reads")

    async def wrong(d):
        async with NexusClient(url_of(d), path="/nowhere") as client:
            await refused(client, client.get_context(), "RPC error -32602: Not found. Use /, /rpc, "
                          "or /agent/{agent_id}.")
        async with NexusClient(url_of(d)) as client:
            size = len(json.dumps({"jsonrpc": "2.0", "method": "send", "id": 1, "params":
                                   {"content": "x" * 2000000}}, separators=(",", ":")))
            await refused(client, client.send("x" * 2000000), "RPC error -32700: Request body too "
                          "large: %d > 1048576" % size)
            same((await client.get_context())["message_count"], 0, "it goes on")
        async with NexusClient("http://127.0.0.1:" + url_of(d).rpartition(":")[2],
                               path="/agent/nobody") as client:
            await refused(client, client.send("x"), "RPC error -32602: Agent not found: nobody")

    with Daemon() as d:
        asyncio.run(wrong(d))


def test_http_client():
    for headers in ({}, {"Connection": "close"}, {"Connection": "keep-alive"}):
        with Daemon() as d:
            port = int(nexus_address(d).rpartition(":")[2])
            c = http.client.HTTPConnection("localhost", port, timeout=PATIENCE)

            def call(method, params=None):
                c.request("POST", "/rpc", request(method, params), headers)
                r = c.getresponse()
                same(r.status, 200)
                same(r.getheader("Content-Type"), "application/json; charset=utf-8")
                same(r.will_close, headers.get("Connection") == "close" or method == "shutdown",
                     "closing after " + method)
                return json.loads(r.read())["result"]

            call("send", {"content": "My name is Alice"})
            before = c.sock
            check("Alice" in call("send", {"content": "What is my name?"})["content"], "forgotten")
            same(before is not None and c.sock is before, headers.get("Connection") != "close",
                 "the connection was kept")
            same(call("get_context"), {"message_count": 4, "system_prompt": True})
            same(call("shutdown"), {"success": True})
            c.close()
            same(d.wait_exit(), 0, "exit status")


def test_many_clients_at_once():
    async def crowd(d):
        async def one(i):
            async with NexusClient(url_of(d), path="/agent/c%d" % i) as client:
                await client.send("My name is Number%d" % i)
                r = await client.send("What is my name?")
                check("Number%d" % i in r["content"], "%d: %r", i, r)
        await asyncio.gather(*[one(i) for i in range(40)])

    with Daemon() as d:
        n = Nexus(d)
        for i in range(40):
            n.call("create_agent", {"agent_id": "c%d" % i})
        asyncio.run(crowd(d))


# ---- Node ----


def node():
    return installed("node", "nodejs")


def test_nodes_fetch():
    for connection in ("keep-alive", "close"):
        with Daemon(*slow_recall(5)) as d:
            done = subprocess.run([node(), NODE_CLIENT, url_of(d), connection],
                                  capture_output=True, text=True, timeout=PATIENCE * 2)
            same((done.returncode, done.stderr), (0, ""), "node's end")
            check_node(json.loads(done.stdout), connection == "keep-alive")
            same(d.wait_exit(), 0, "exit status")


def check_node(out, keep_alive):
    check("Alice" in out["second"]["result"]["content"], "%r", out["second"])
    same(out["context"]["result"], {"message_count": 4, "system_prompt": True})
    same((out["tokens"]["result"]["budget"], out["tokens"]["result"]["available"]), (8000, 6000))
    same(out["missing"]["error"],
         {"code": -32602, "message": "Missing required parameter: content"})
    same(out["unknown"]["error"], {"code": -32601, "message": "Method not found: unknown"})
    same(out["cancel"]["result"], {"cancelled": True, "request_id": "long"})
    same(out["cancelled"]["result"]["cancelled"], True)
    same([out[k]["kept"] for k in ("first", "second", "tokens")], [keep_alive] * 3, "kept")
    same([r["reused"] for r in out["http"]], [False, keep_alive, keep_alive], "reused")
    same(out["shutdown"]["result"], {"success": True})


# ---- the token ----


def test_a_token_is_asked_for_where_one_is_set():
    with Folder() as f:
        with open(f("token"), "w") as out:
            out.write("nxk_correct-horse\n")
        os.chmod(f("token"), 0o600)
        with Daemon("--set", "nexus.token_file=" + f("token")) as d:
            n = Nexus(d)
            body = request("get_context")
            same(n.post(body)[0], 401, "status without a token")
            for wrong in ("Bearer nxk_wrong", "Bearer ", "Bearer nxk_correct-horses",
                          "Bearer nxk_correct-hors", "Basic nxk_correct-horse"):
                status, _, text = n.post(body, [("Authorization", wrong)])
                check(status in (401, 403), "%r: %d", wrong, status)
                check(b"message_count" not in text, "it answered")
            same(n.post(body, [("Authorization", "Bearer nxk_correct-horse")])[0], 200)

            async def with_token():
                async with NexusClient(url_of(d), token="nxk_correct-horse") as client:
                    await client.send("Hello")
                    same((await client.get_context())["message_count"], 2)

            asyncio.run(with_token())
            check(b"correct-horse" not in d.log(), "the token is in the log")
        for mode in (0o640, 0o644):
            os.chmod(f("token"), mode)
            done = run_koined("--root", f.path, "--set", "nexus.token_file=" + f("token"))
            check(done.returncode != 0 and b"token" in done.stderr, "%r", done)


# ---- web pages ----


SEND_BODY = request("send", {"content": "I am a web page"})


def refused_page(d, what, headers="", host="localhost", path="/", method="POST"):
    with Client(nexus_address(d)) as c:
        r = post(c, SEND_BODY, path=path, headers=headers, host=host, method=method)
        same(r.status, 403, "status for " + what)
        check(not any(name.startswith("access-control") for name in r.headers), "%r", r.head)
        check(b'"result"' not in r.body, "%r", r.body)


def test_web_pages_cannot_drive_an_agent():
    with Daemon() as d:
        n = Nexus(d)
        port = nexus_address(d).rpartition(":")[2]
        for path in ("/", "/rpc", "/agent/x", "/nowhere"):
            for host in ("evil.com", "evil.com:" + port, "localhost.evil.com", "0.0.0.0:" + port,
                         "foo.local", "192.168.0.1", "127.0.0.1.nip.io"):
                refused_page(d, "Host " + host, host=host, path=path)
            for origin in ("http://evil.com", "https://evil.com", "null", "file://",
                           "http://localhost:1", "https://localhost:" + port,
                           "http://localhost.evil.com:" + port):
                refused_page(d, "Origin " + origin, "Origin: %s\r\n" % origin, path=path)
                refused_page(d, "a form of " + origin,
                             "Origin: %s\r\nContent-Type: text/plain\r\n" % origin, path=path)
            for site in ("cross-site", "same-site"):
                refused_page(d, site, "Sec-Fetch-Site: %s\r\n" % site, path=path)
        # A page's question beforehand, whether it may.
        refused_page(d, "a preflight", "Origin: http://evil.com\r\n"
                     "Access-Control-Request-Method: POST\r\n", method="OPTIONS")
        same(n.count(), 0, "messages")
        for headers in ("", "Sec-Fetch-Site: none\r\n", "Content-Type: text/plain\r\n",
                        "Content-Type: application/x-www-form-urlencoded\r\n"):
            with Client(nexus_address(d)) as c:
                same(post(c, request("get_context"), headers=headers).status, 200, headers)


def test_only_loopback_is_bound():
    with Folder() as f:
        for host in ("0.0.0.0", "192.168.0.1", "example.com", "[::]"):
            done = run_koined("--root", f.path, "--listen", "nexus=http:%s:0" % host)
            check(done.returncode != 0, "it listens at %s", host)
            check(b"must bind to localhost only" in done.stderr, "%r", done.stderr)


if __name__ == "__main__":
    main(globals())
