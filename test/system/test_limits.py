#!/usr/bin/env python3
"""Everything has a limit, and who goes over it is told so and hurts nobody."""
import json
import random
import struct
import time

from harness import (MESSAGE_MAX, MIB, Daemon, Http, Length, Line, check, main, peak_rss, post,
                     request, rss, same, shared, wait_until)

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
PING = request("ping")
STOP = request("daemon.stop", id='"tail"')


def padded(size):
    return PING + b" " * (size - len(PING))


def error_of(text):
    return json.loads(text)["error"]


def grew_little(d, before, most=64 * MIB, now=peak_rss):
    grown = now(d.pid) - before
    check(grown < most, "memory grew by %d MiB", grown // MIB)


def test_a_frame_of_exactly_the_limit_is_served():
    with shared() as d:
        c = d.connect()
        c.send(Length.wrap(padded(MESSAGE_MAX)))
        check(b'"pong":true' in c.read_frame(), "no pong")
        c.send(Length.wrap(PING))
        check(b'"pong":true' in c.read_frame(), "not usable afterwards")


def test_a_line_of_exactly_the_limit_is_served():
    with shared() as d:
        c = d.connect()
        c.send(padded(MESSAGE_MAX) + b"\n" + PING + b"\n")
        check(b'"pong":true' in c.read_line(), "no pong")
        check(b'"pong":true' in c.read_line(), "not usable afterwards")


def test_a_body_of_exactly_the_limit_is_served():
    with shared() as d:
        c = d.connect()
        for headers in ("", "Expect: 100-continue\r\n"):
            c.send(Http.wrap(padded(MESSAGE_MAX), headers=headers))
            r = c.read_response()
            if headers:
                r = c.read_response() if r.status == 100 else r
            same(r.status, 200, "status")


def test_a_frame_over_the_limit_is_refused_from_its_header():
    with shared() as d:
        for n in (MESSAGE_MAX + 1, 1 << 28, (1 << 32) - 1):
            with d.connect() as c:
                c.send(struct.pack(">I", n))
                error = error_of(c.read_frame())
                same(error["code"], -32004, "code")
                check(str(n) in error["message"], "no size in %r", error)
                c.ended()
        d.alive()


def test_a_refused_frame_is_told_so_even_if_its_body_comes_first():
    with shared() as d:
        with d.connect() as c:
            c.send_all_it_takes(Length.wrap(padded(MESSAGE_MAX + 1)))
            same(error_of(c.read_frame())["code"], -32004, "code")
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")


def test_an_empty_frame_is_a_parse_error_and_the_connection_goes_on():
    with shared() as d:
        c = d.connect()
        c.send(struct.pack(">I", 0) + Length.wrap(PING))
        same(error_of(c.read_frame())["code"], -32700, "code")
        check(b'"pong":true' in c.read_frame(), "no pong")


def test_announced_lengths_allocate_nothing():
    with Daemon(listen=EVERYWHERE) as d:
        before = rss(d.pid)
        clients = []
        for _ in range(100):
            c = d.connect()
            c.send(struct.pack(">I", MESSAGE_MAX) + b"{")
            clients.append(c)
            c = d.connect("http")
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{"
                   % MESSAGE_MAX)
            clients.append(c)
            c = d.connect("http")
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                   b"%x\r\n{" % MESSAGE_MAX)
            clients.append(c)
        d.settle()
        grew_little(d, before, 8 * MIB)
        for c in clients:
            c.close()


def test_the_largest_length_with_four_bytes_sent_costs_nothing():
    with Daemon() as d:
        before = rss(d.pid)
        for _ in range(50):
            c = d.connect()
            c.send(b"\xff\xff\xff\xff")
            same(error_of(c.read_frame())["code"], -32004, "code")
        grew_little(d, before, 8 * MIB)


def overlong_line(tail):
    return b'{"jsonrpc":"2.0","method":"ping","params":["' + b"x" * MESSAGE_MAX + tail


def test_an_overlong_line_is_refused_and_its_tail_never_run():
    with shared() as d:
        with d.connect() as c:
            c.send_all_it_takes(overlong_line(b"\n" + STOP + b"\n" + PING + b"\n"))
            error = error_of(c.read_line())
            same(error["code"], -32004, "code")
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")
        d.alive()


def test_an_overlong_line_that_waits_with_its_tail_runs_nothing():
    with shared() as d:
        with d.connect() as c:
            c.send_all_it_takes(overlong_line(b""))
            same(error_of(c.read_line())["code"], -32004, "code")
            c.send_all_it_takes(b"\n" + STOP + b"\n")
            c.send_all_it_takes(STOP + b"\n")
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")
        d.alive()


def test_an_overlong_line_without_an_end_does_not_fill_memory():
    with Daemon("--set", "limits.linger=1") as d:
        before = rss(d.pid)
        with d.connect() as c:
            part = b"x" * MIB
            sent = 0
            while sent < 200 and c.send_all_it_takes(part):
                sent += 1
            grew_little(d, before)
        d.alive()


def test_a_refused_client_that_keeps_sending_is_cut():
    with Daemon("--set", "limits.linger=1") as d:
        for first in (b"\xff\xff\xff\xff", b"POST / HTTP/1.1\r\nbroken\r\n"):
            with d.connect() as c:
                c.send(first)
                end = time.monotonic() + 15
                while c.send_all_it_takes(b" " * 65536):
                    check(time.monotonic() < end, "it is still read")
        wait_until(lambda: d.status()["connections"] == 1, "the connections to end")


def test_deep_nesting_is_an_error_and_nothing_more():
    with shared() as d:
        c = d.connect()
        for opening in (b"[", b'{"a":', b'[{"":'):
            c.send(Length.wrap(opening * 100000))
            same(error_of(c.read_frame())["code"], -32700, "code")
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            c.send(Length.wrap(b'{"jsonrpc":"2.0","method":"debug.echo","id":1,"params":'
                               + opening * 100000 + b"1" + closing * 100000 + b"}"))
            same(error_of(c.read_frame())["code"], -32700, "code")
        # what people do send is served
        c.send(Length.wrap(request("debug.echo", "[" * 64 + "]" * 64)))
        check("result" in json.loads(c.read_frame()), "64 levels are refused")


DEPTH = 512


def ask_deep(d, dialect, text):
    """What comes back for a request, in the dialect's own framing: a status, and JSON."""
    wrap, read = {"koine": (Line.wrap, Line.read), "ash": (Length.wrap, Length.read),
                  "hld": (Line.wrap, Line.read), "aiwg": (Line.wrap, Line.read)}.get(
                      dialect, (None, None))
    if wrap:
        c = d.connect("unix", dialect)
        c.send(wrap(text))
        return 200, json.loads(read(c))
    path = {"nexus": "/", "gateway": "/memory/store", "embedding": "/v1/embeddings"}[dialect]
    headers = "Content-Type: application/json\r\nAuthorization: Bearer a-token-of-some-length\r\n"
    r = post(d.connect("http", dialect), text, path, headers=headers)
    return r.status, json.loads(r.body)


def test_every_dialect_takes_what_is_512_deep_and_says_so_of_more():
    with Daemon("--set", "listen.gateway=on", "--set", "listen.embedding=on",
                env={"OPENCLAW_UI_TOKEN": "a-token-of-some-length"}) as d:
        for dialect in "koine", "ash", "hld", "aiwg", "nexus":
            for deep in DEPTH, DEPTH + 1:
                inner = b"[" * (deep - 2) + b"]" * (deep - 2)
                _, told = ask_deep(d, dialect, b'{"jsonrpc":"2.0","id":1,"method":"no.such",'
                                   b'"params":{"x":' + inner + b"}}")
                want = -32601 if deep == DEPTH else -32700
                same(told["error"]["code"], want, "%s: %d levels" % (dialect, deep))
        for dialect, body in ("gateway", b'{"text":"a deep one","x":'), \
                             ("embedding", b'{"input":"a deep one","model":"koine-hash","x":'):
            for deep in DEPTH, DEPTH + 1:
                inner = b"[" * (deep - 1) + b"]" * (deep - 1)
                status, told = ask_deep(d, dialect, body + inner + b"}")
                same(status, 200 if deep == DEPTH else 400, "%s: %d levels: %r" %
                     (dialect, deep, told))


def test_how_deep_is_a_setting():
    with Daemon("--set", "limits.json_depth=1024") as d:
        c = d.connect()
        for deep, key in (1024, b"result"), (1025, b"error"):
            c.send(request("debug.echo", "[" * (deep - 1) + "]" * (deep - 1)) + b"\n")
            check(b'"%s"' % key in c.read_line(), "%d levels", deep)


def test_more_values_than_the_limit_are_an_error():
    with Daemon() as d:
        c = d.connect()
        before = rss(d.pid)
        c.send(Length.wrap(request("debug.echo", "[" + "0," * 1000001 + "0]")))
        same(error_of(c.read_frame())["code"], -32004, "code")
        c.send(Length.wrap(b"[" + b"[]," * 2000000 + b"[]]"))
        same(error_of(c.read_frame())["code"], -32004, "code")
        c.send(Length.wrap(PING))
        check(b'"pong":true' in c.read_frame(), "no pong")
        # the memory of a large message goes back with it
        grew_little(d, before, 8 * MIB, now=rss)


def test_a_batch_over_the_limit_is_refused_whole():
    with Daemon(env={"KOINE_LIMITS_BATCH": "3"}) as d:
        c = d.connect()
        three = b"[" + b",".join([PING] * 3) + b"]"
        four = b"[" + b",".join([PING] * 4) + b"]"
        same(len(json.loads(c.call_text(three))), 3, "answers")
        before = d.calls()
        same(error_of(c.call_text(four))["code"], -32004, "code")
        same(d.calls(), before, "calls")


def test_an_answer_over_the_limit_is_an_error_and_the_connection_goes_on():
    with Daemon("--set", "limits.reply_bytes=4096") as d:
        c = d.connect()
        same(error_of(c.call_text(request("debug.echo", '["%s"]' % ("x" * 5000), id=4)))["code"],
             -32004, "code")
        # one by one they fit, together they do not
        echo = request("debug.echo", '["%s"]' % ("x" * 3000))
        same(error_of(c.call_text(b"[" + echo + b"," + echo + b"]"))["code"], -32004, "code")
        c.ping()


def test_a_body_over_the_limit_is_refused_from_its_header():
    with Daemon(listen=EVERYWHERE) as d:
        for kind in ("unix", "http", "tcp"):
            for n in (MESSAGE_MAX + 1, 10 ** 15, 10 ** 30):
                with d.connect(kind) as c:
                    c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % n)
                    r = c.read_response()
                    same(r.status, 413, "status")
                    same(r.header("Connection"), "close", "Connection")
                    error_of(r.body)
                    c.ended()
        same(d.calls(), 0, "calls")


def test_a_refused_body_is_told_so_even_if_it_comes_first():
    with Daemon(listen=EVERYWHERE) as d:
        for kind in ("unix", "http"):
            with d.connect(kind) as c:
                c.send_all_it_takes(Http.wrap(padded(MESSAGE_MAX + 1)))
                same(c.read_response().status, 413, "status")
        same(d.calls(), 0, "calls")


def test_chunks_over_the_limit_are_refused_by_their_announced_size():
    with Daemon(listen=EVERYWHERE) as d:
        for size in (b"%x" % (MESSAGE_MAX + 1), b"ffffffffffffffff", b"7fffffffffffffff"):
            with d.connect("http") as c:
                c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"1\r\n \r\n" + size + b"\r\n")
                same(c.read_response().status, 413, "status")
                c.ended()


def test_headers_over_their_limits_are_refused():
    with Daemon(listen=EVERYWHERE) as d:
        for head, status in (
                (b"POST /%s HTTP/1.1\r\nHost: localhost\r\n" % (b"a" * 9000), 414),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n" % (b"a" * 33000), 431),
                (b"POST / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 101, 431)):
            with d.connect("http") as c:
                c.send_all_it_takes(head + b"\r\n")
                same(c.read_response().status, status, "status")
                c.read_rest()


def test_binary_noise_ends_no_daemon():
    noise = random.Random(20240229)
    with Daemon(listen=EVERYWHERE) as d:
        before = rss(d.pid)
        for i in range(300):
            with d.connect(("unix", "tcp", "http")[i % 3]) as c:
                c.send_all_it_takes(noise.randbytes(noise.choice((1, 3, 16, 100, 5000))))
                c.half_close()
                c.read_rest()
        d.alive()
        grew_little(d, before, 16 * MIB)


def test_noise_behind_a_good_beginning_ends_no_daemon():
    noise = random.Random(4711)
    beginnings = (PING + b"\n", Length.wrap(PING), Http.wrap(PING), b"POST / HTTP/1.1\r\n",
                  b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
                  b"[", b"\0\0", b'{"jsonrpc":"2.0","method":"', b"PUT ")
    with Daemon(listen=EVERYWHERE) as d:
        for i in range(300):
            with d.connect(("unix", "tcp")[i % 2]) as c:
                c.send_all_it_takes(beginnings[i % len(beginnings)] + noise.randbytes(400))
                c.half_close()
                c.read_rest()
        d.alive()


def test_calls_over_the_limit_are_refused_and_room_comes_back():
    with Daemon("--set", "limits.calls=2") as d:
        a, b, c = d.connect(), d.connect(), d.connect()
        for client in (a, b):
            client.send(request("debug.sleep", {"ms": 3000000}) + b"\n")
        d.settle()
        same(error_of(c.call_text(request("debug.sleep", {"ms": 1})))["code"], -32003, "code")
        c.ping()
        a.send(request("rpc.cancel", {"id": 1}, id=2) + b"\n")
        same(error_of(a.read_line())["code"], -32800, "code")
        same(c.call("debug.sleep", {"ms": 1}), {"slept_ms": 1})
        b.send(request("rpc.cancel", {"id": 1}, id=2) + b"\n")
        b.read_line()


def test_connections_over_the_limit_wait_until_there_is_room():
    with Daemon("--set", "limits.connections=4", announced=["too many connections"]) as d:
        inside = [d.connect() for _ in range(4)]
        for c in inside:
            c.ping()
        outside = d.connect()
        outside.send(PING + b"\n")
        outside.quiet(0.3)
        inside[0].ping()
        inside.pop().close()
        check(b'"pong":true' in outside.read_line(), "no pong")


# ---- bounds of what a client may give ----

TASK = {"prompt": "x", "stash": True}
REQUEST = {"tool": "t", "input": {}}
SESSION = {"query": "q"}
ASK = {"content": "c", "agent": "recall"}
MEMORY = {"content": "c"}
NOTE = {"what": "started"}
GRANT = {"tool": "t", "verdict": "allow"}


def text(n):
    return "x" * n


def path(n):
    return "/" * n


def entries(n):
    return ["x"] * n


# Method, its other parameters, the field, the largest value or length, and what makes a value of that size.
BOUNDS = [
    ("task.add", TASK, "label", 80, text),
    ("task.add", TASK, "group", 128, text),
    ("task.add", TASK, "agent", 128, text),
    ("task.add", TASK, "prompt", 8 * MIB, text),
    ("task.add", TASK, "cwd", 4095, path),
    ("task.add", TASK, "env", 256, lambda n: {"V%d" % i: "" for i in range(n)}),
    ("task.add", TASK, "after", 64, lambda n: ["task-0000"] * n),
    ("task.add", TASK, "retries", 1000, int),
    ("task.run", {"stash": True}, "command", 4096, entries),
    ("task.run", {"stash": True}, "command", 131071, lambda n: [text(n)]),
    ("task.run", {"stash": True}, "command", MIB, lambda n: [text(99999)] * 10 + [text(n - 1000001)]),
    ("task.edit", {"id": "task-0000"}, "label", 80, text),
    ("task.pause", {}, "group", 128, text),
    ("task.parallel", {"group": "g"}, "parallel", 10000, int),
    ("task.output", {"id": "task-0000"}, "max", 1000000, int),
    ("memory.add", MEMORY, "user_id", 256, text),
    ("memory.add", MEMORY, "chat_id", 256, text),
    ("memory.add", MEMORY, "project", 2048, path),
    ("approval.create", REQUEST, "id", 128, text),
    ("approval.create", REQUEST, "tool", 256, text),
    ("approval.create", REQUEST, "session_id", 256, text),
    ("approval.create", REQUEST, "run_id", 256, text),
    ("approval.create", REQUEST, "agent", 256, text),
    ("approval.create", REQUEST, "origin", 4096, text),
    ("approval.create", REQUEST, "tool_use_id", 256, text),
    ("approval.create", REQUEST, "input", 50000, lambda n: {"list": [0] * (n - 2)}),
    ("approval.decide", {"id": text(128), "decision": "deny"}, "comment", 65536, text),
    ("approval.grant", GRANT, "tool", 256, text),
    ("approval.grant", GRANT, "pattern", 1024, text),
    ("approval.grant", GRANT, "session_id", 256, text),
    ("approval.grant", GRANT, "agent", 256, text),
    ("approval.grant", GRANT, "comment", 65536, text),
    ("approval.list", {}, "limit", 1000, int),
    # The quotes count.
    ("chat.stream", ASK, "request_id", 128, lambda n: text(n - 2)),
    ("chat.stream", ASK, "conversation", 128, text),
    ("chat.stream", ASK, "tools", 128, lambda n: [{"name": "t%d" % i} for i in range(n)]),
    ("chat.stream", {"agent": "recall"}, "content", 8 * MIB, text),
    ("chat.past", {}, "limit", 2000, int),
    ("event.list", {}, "types", 32, entries),
    ("event.list", {}, "types", 100, lambda n: [text(n)]),
    ("event.list", {}, "session_id", 256, text),
    ("event.list", {}, "run_id", 256, text),
    ("event.list", {}, "project", 4096, path),
    ("agent.note", NOTE, "agent", 256, text),
    ("agent.note", NOTE, "session_id", 256, text),
    ("agent.note", NOTE, "folder", 4096, path),
    ("agent.note", NOTE, "tool", 256, text),
    ("agent.note", NOTE, "tool_use_id", 256, text),
    ("session.launch", SESSION, "query", MIB, text),
    ("session.launch", SESSION, "title", 1000, text),
    ("session.launch", SESSION, "model", 1000, text),
    ("session.launch", SESSION, "permission_prompt_tool", 1000, text),
    ("session.launch", SESSION, "working_dir", 2048, path),
    ("session.launch", SESSION, "system_prompt", 102400, text),
    ("session.launch", SESSION, "append_system_prompt", 102400, text),
    ("session.launch", SESSION, "custom_instructions", 102400, text),
    ("session.launch", SESSION, "allowed_tools", 256, entries),
    ("session.launch", SESSION, "allowed_tools", 1000, lambda n: [text(n)]),
    ("session.launch", SESSION, "disallowed_tools", 256, entries),
    ("session.launch", SESSION, "max_turns", 2147483647, int),
    ("session.list", {}, "limit", 1000, int),
    ("session.paths", {}, "limit", 1000, int),
]


def answer_of(c, method, params):
    """Skips notifications."""
    c.send(request(method, params) + b"\n")
    while True:
        said = json.loads(c.read_line())
        if "id" in said:
            return said


def test_each_bound_is_exact_and_its_refusal_names_the_field():
    with Daemon("--set", "session.program=true") as d, d.connect() as c:
        c.call("task.add", TASK)
        session = {"id": c.call("session.launch", SESSION)["id"]}
        for method, others, field, most, make in BOUNDS + [("session.rename", session, "title", 1000, text),
                                                           ("session.events", session, "limit", 1000, int)]:
            what = "%s, %s of %d" % (method, field, most)
            answer = answer_of(c, method, {**others, field: make(most)})
            check("result" in answer, "%s: %r", what, answer)
            error = answer_of(c, method, {**others, field: make(most + 1)}).get("error")
            check(error and field in [error.get("data", {}).get("field"), *error["message"].split()],
                  "%s, and one more: %r", what, error)


if __name__ == "__main__":
    main(globals(), measured=(
        "announced_lengths_allocate_nothing",
        "the_largest_length_with_four_bytes_sent_costs_nothing",
        "an_overlong_line_without_an_end_does_not_fill_memory",
        "more_values_than_the_limit_are_an_error",
        "binary_noise_ends_no_daemon",))
