#!/usr/bin/env python3
"""The scripted provider does what its scripts say; the tests of the agents rest on that."""
import http.client
import json
import socket

from harness import Folder, check, main, same
from provider import (ANTHROPIC, OPENAI, Late, Provider, Reply, close, cut, dribble,
                      endless, head, plain, raw, shred, silence)


def ask(p, body=None, method="POST", path="/v1/chat/completions"):
    c = http.client.HTTPConnection("127.0.0.1", p.port, timeout=20)
    body = body or {"messages": [{"role": "user", "content": "q"}]}
    c.request(method, path, json.dumps(body), {"Authorization": "Bearer k"})
    return c


def events(data):
    """The payloads of a stream, read by the letter of its description."""
    out = []
    for block in data.decode().split("\n\n"):
        lines = [one[len("data: "):] for one in block.split("\n") if one.startswith("data: ")]
        if lines:
            out.append("\n".join(lines))
    return out


def test_plays_its_scripts_in_order_then_the_default():
    with Provider(plain(503, "busy", ("Retry-After", "1")), default=plain(200, "{}")) as p:
        c = ask(p)
        r = c.getresponse()
        same((r.status, r.getheader("Retry-After"), r.read()), (503, "1", b"busy"))
        for _ in range(2):  # on the same connection
            c.request("POST", "/", "{}")
            same(c.getresponse().read(), b"{}")
        same([a.path for a in p.asked], ["/v1/chat/completions", "/", "/"])
        c.close()


def test_keeps_what_was_asked():
    with Provider(default=plain(200, "{}")) as p:
        ask(p, {"messages": [{"role": "system", "content": "S"},
                             {"role": "user", "content": "q"}]}).getresponse().read()
        same(OPENAI.history(p.last), ("S", [("user", "q")]))
        same(p.last.headers["authorization"], "Bearer k")
        ask(p, {"system": [{"type": "text", "text": "S"}],
                "messages": [{"role": "user", "content": "q"}]}).getresponse().read()
        same(ANTHROPIC.history(p.last), ("S", [("user", "q")]))
        ask(p, method="GET", path="/v1/models").getresponse().read()
        same((len(p.asked), len(p.probes)), (2, 1))


def test_streams_are_what_the_providers_send():
    with Provider(OPENAI.answer("a", "b", input=5, output=2)) as p:
        got = events(ask(p).getresponse().read())
        same(got[-1], "[DONE]")
        chunks = [json.loads(e) for e in got[:-1]]
        same("".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]),
             "ab")
        same(chunks[-1]["usage"]["prompt_tokens"], 5)
    with Provider(ANTHROPIC.answer("a", "b", input=5, output=2)) as p:
        got = [json.loads(e) for e in events(ask(p).getresponse().read())]
        same(got[0]["type"], "message_start")
        same("".join(e["delta"]["text"] for e in got if e["type"] == "content_block_delta"), "ab")
        same((got[-2]["usage"]["output_tokens"], got[-1]["type"]), (2, "message_stop"))


def test_a_gate_waits_for_the_test():
    with Provider() as p:
        gate = p.gate()
        p.play(Reply(b"one", gate, b"two"))
        r = ask(p).getresponse()
        gate.arrived()
        same(r.read1(100), b"one")
        check(not p.last.ended.is_set(), "it went on")
        gate.open()
        same(r.read(), b"two")


def test_every_piece_is_a_chunk_of_its_own():
    with Provider(Reply(*shred("é".encode(), 1))) as p:
        with socket.create_connection(("127.0.0.1", p.port)) as s:
            s.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            got = b""
            while not got.endswith(b"0\r\n\r\n"):
                got += s.recv(1000)
        same(got.partition(b"\r\n\r\n")[2], b"1\r\n\xc3\r\n1\r\n\xa9\r\n0\r\n\r\n")


CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "x"}
QUESTION = {"role": "user", "content": "q"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
USED = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}
SAID = {"role": "assistant", "content": "a"}
EMPTY = {"role": "user", "content": ""}


def test_refuses_what_the_real_providers_refuse():
    with Provider(default=plain(200, "{}")) as p:
        for path, good, bad in (
                (OPENAI.path,
                 ([QUESTION], [QUESTION, CALL, RESULT], [QUESTION, CALL, RESULT, SAID]),
                 ([QUESTION, CALL], [QUESTION, RESULT], [CALL, QUESTION], [CALL, RESULT, RESULT])),
                (ANTHROPIC.path, ([QUESTION], [QUESTION, USE, USED], [QUESTION, SAID, QUESTION]),
                 ([QUESTION, USE], [USED], [SAID, QUESTION], [QUESTION, USE, QUESTION], [EMPTY]))):
            for messages, want in [(m, 200) for m in good] + [(m, 400) for m in bad]:
                c = ask(p, {"messages": messages, "max_tokens": 1}, path=path)
                same(c.getresponse().status, want, "status for %r" % messages)
                c.close()


def fails(p):
    try:
        ask(p).getresponse().read()
    except (http.client.HTTPException, ConnectionError):
        return True
    return False


def test_breaks_off_where_it_is_told():
    with Provider(Reply(cut), Reply(head, cut), Reply(b"half", cut), Reply(b"half", close),
                  Reply(raw(b"HTTP/9.9 what\r\n\r\n"), close), Reply(raw(b"\x16\x03\x01"), close),
                  plain(200, "ok")) as p:
        same([fails(p) for _ in range(7)], [True] * 6 + [False])


def test_notices_that_the_client_leaves():
    with Provider(Reply(silence), Reply(endless(b"x" * 65536)), Reply(dribble(b"x" * 1000, 0.01)),
                  Reply(head, silence)) as p:
        for n in range(1, 5):
            c = ask(p)
            p.wait_asked(n)
            c.close()
            p.asked[n - 1].left()
        try:
            p.wait_asked(5, patience=0.01)
        except Late:
            return
        check(False, "asked once too often")


def test_serves_a_unix_socket():
    with Folder() as f, Provider(plain(200, "{}"), unix=f("p.sock")) as p:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f("p.sock"))
            s.sendall(b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
            check(s.recv(1000).startswith(b"HTTP/1.1 200"), "no answer")
        same(p.url, "unix:" + f("p.sock"))


if __name__ == "__main__":
    main(globals())
