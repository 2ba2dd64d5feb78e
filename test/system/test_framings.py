#!/usr/bin/env python3
"""One socket, three framings: recognised, cut anywhere, answered in order."""
import contextlib
import json
import os
import threading

from harness import (FRAMINGS, SOURCE, Daemon, Folder, Http, Length, Line, check, main,
                     post, request, same, shared)

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
ECHO = request("debug.echo", '{"n":[1,"\\u00e9"]}', id=7)
HEALTH = request("health", id='"h"')


def echo_answer(framing, client):
    got = json.loads(framing.read(client))
    same(got, {"jsonrpc": "2.0", "result": {"n": [1, "é"]}, "id": 7})


def test_unix_socket_answers_a_line_a_frame_and_a_post():
    with shared() as d:
        for framing in FRAMINGS:
            with d.connect() as c:
                for _ in range(3):
                    c.send(framing.wrap(ECHO))
                    echo_answer(framing, c)


def test_tcp_socket_answers_a_line_a_frame_and_a_post():
    with shared(listen=EVERYWHERE) as d:
        for framing in FRAMINGS:
            with d.connect("tcp") as c:
                c.send(framing.wrap(ECHO))
                echo_answer(framing, c)


def test_http_socket_answers_a_post():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(Http.wrap(ECHO))
            echo_answer(Http, c)


def test_http_socket_speaks_nothing_but_http():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(Line.wrap(ECHO))
            same(c.read_response().status, 400, "status")
            c.ended()
        same(d.calls(), 0, "calls")


def test_post_is_served_at_root_and_rpc():
    with shared(listen=EVERYWHERE) as d:
        for kind in ("unix", "http", "tcp"):
            for path in ("/", "/rpc"):
                with d.connect(kind) as c:
                    r = post(c, ECHO, path=path)
                    same(r.status, 200, "status")
                    same(json.loads(r.body)["id"], 7)
                    check(r.header("Content-Type").startswith("application/json"), "no JSON type")


def cut_everywhere(kind, framing):
    data = framing.wrap(ECHO)
    with shared(listen=EVERYWHERE) as d:
        for cut in range(1, len(data)):
            with d.connect(kind) as c:
                c.send(data[:cut])
                d.settle()
                c.send(data[cut:])
                echo_answer(framing, c)
                c.half_close()
                c.ended()


def test_a_line_may_be_cut_at_every_byte():
    cut_everywhere("unix", Line)


def test_a_frame_may_be_cut_at_every_byte():
    cut_everywhere("unix", Length)


def test_a_post_may_be_cut_at_every_byte():
    cut_everywhere("unix", Http)


def test_a_post_over_tcp_may_be_cut_at_every_byte():
    cut_everywhere("http", Http)


def test_messages_may_come_byte_by_byte():
    with shared() as d:
        for framing in FRAMINGS:
            with d.connect() as c:
                for message in (ECHO, HEALTH):
                    for byte in framing.wrap(message):
                        c.send(bytes([byte]))
                        d.settle()
                    check(b'"result"' in framing.read(c), "no result")


def test_a_chunked_post_may_be_cut_at_every_byte():
    data = (b"POST /rpc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5;a=b\r\n" + ECHO[:5] + b"\r\n%x\r\n" % (len(ECHO) - 5) + ECHO[5:] +
            b"\r\n0\r\nT: x\r\n\r\n")
    with shared() as d:
        for cut in range(1, len(data)):
            with d.connect() as c:
                c.send(data[:cut])
                d.settle()
                c.send(data[cut:])
                echo_answer(Http, c)


def test_ten_thousand_requests_in_one_write_are_answered_in_order():
    n = 10000
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("unix", Http), ("tcp", Line),
                              ("http", Http)):
            data = b"".join(framing.wrap(request("debug.echo", "[%d]" % i, id=i))
                            for i in range(n))
            with d.connect(kind) as c:
                sender = threading.Thread(target=c.send, args=(data,))
                sender.start()
                try:
                    for i in range(n):
                        same(framing.read(c), b'{"jsonrpc":"2.0","result":[%d],"id":%d}' % (i, i))
                finally:
                    sender.join()


def test_a_client_may_write_ten_thousand_pings_before_it_reads():
    n = 10000
    with shared() as d, d.connect() as c:
        c.send(b"".join(Line.wrap(request("ping", id=i)) for i in range(n)))
        for i in range(n):
            answer = Line.read(c)
            check(answer.endswith(b'"id":%d}' % i) and b"pong" in answer, "%r", answer)


def test_half_close_is_answered_and_then_ended():
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("unix", Http), ("tcp", Line),
                              ("http", Http)):
            with d.connect(kind) as c:
                c.send(framing.wrap(request("debug.sleep", {"ms": 30})) + framing.wrap(ECHO))
                c.half_close()
                check(b"slept_ms" in framing.read(c), "the sleep is not answered")
                echo_answer(framing, c)
                c.ended()


def test_last_line_without_newline_is_answered_at_the_end():
    with shared() as d:
        with d.connect() as c:
            c.send(ECHO)
            c.quiet(0.1)
            c.half_close()
            echo_answer(Line, c)
            c.ended()


def test_half_a_frame_at_the_end_is_not_answered():
    with shared() as d:
        with d.connect() as c:
            c.send(Length.wrap(ECHO)[:-1])
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")


def test_end_without_a_byte_is_ended_quietly():
    with shared(listen=EVERYWHERE) as d:
        for kind in ("unix", "tcp", "http"):
            with d.connect(kind) as c:
                c.half_close()
                c.ended()


def test_blank_lines_and_carriage_returns_are_no_requests():
    with shared() as d:
        with d.connect() as c:
            c.send(b"\n\r\n  \n" + ECHO + b"\r\n\n" + ECHO + b"\n")
            echo_answer(Line, c)
            echo_answer(Line, c)
            c.half_close()
            c.ended()


def test_ids_come_back_byte_for_byte():
    ids = ("12345678901234567890", "1e2", "0.1", '"\\u0061"', "-0", "null", "9223372036854775807",
           '"\\/"', '""', '"\\ud83d\\ude00"', "1E+0400", "-1.50", '"%s"' % ("x" * 5000))
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("http", Http)):
            with d.connect(kind) as c:
                for id in ids:
                    c.send(framing.wrap(request("debug.echo", "[]", id=id)))
                    same(framing.read(c), b'{"jsonrpc":"2.0","result":[],"id":%s}' % id.encode())
                    # an error's, and a later answer's too
                    c.send(framing.wrap(request("no.such", id=id)))
                    check(framing.read(c).endswith(b'"id":%s}' % id.encode()), "id of an error")
                    c.send(framing.wrap(request("debug.sleep", '{"ms":0}', id=id)))
                    same(framing.read(c),
                         b'{"jsonrpc":"2.0","result":{"slept_ms":0},"id":%s}' % id.encode())


def test_generic_requests_get_their_exact_answers():
    with open(os.path.join(SOURCE, "test", "vectors", "jsonrpc-generic.json")) as f:
        vectors = json.load(f)["cases"]
    check(len(vectors) > 20, "too few vectors")
    with shared(listen=EVERYWHERE) as d:
        clients = {}
        for v in vectors:
            for kind, framing in (("unix", Line), ("unix", Length), ("unix", Http),
                                  ("http", Http)):
                if framing is Line and "\n" in v["send"]:
                    continue
                c = clients.get((kind, framing))
                if c is None:
                    c = clients[kind, framing] = d.connect(kind)
                exact_answer(c, framing, v)


def exact_answer(c, framing, v):
    where = "%s over %s" % (v["name"], framing.name)
    mark = request("debug.echo", '["after"]', id=0)
    c.send(framing.wrap(v["send"].encode()) + framing.wrap(mark))
    if framing is Http:
        r = c.read_response()
        same(r.status, v.get("http_status", 200), "status of " + where)
        same(r.body.decode(), v["expect"] or "", where)
    elif v["expect"] is not None:
        same(framing.read(c).decode(), v["expect"], where)
    # Nothing stands between it and the next: the connection goes on.
    same(framing.read(c), b'{"jsonrpc":"2.0","result":["after"],"id":0}', "after " + where)


def test_half_a_request_in_gob_is_closed_and_others_served():
    gob = bytes.fromhex("35ff81030101075265717565737401ff82000102010d536572766963654d6574686f64"
                        "010c00010353657101060000000fff8201")
    with shared() as d:
        with d.connect() as c:
            c.send(gob)
            c.half_close()
            c.ended()
        d.alive()


def test_two_clients_in_different_framings_do_not_mix():
    with shared() as d:
        a, b, e = d.connect(), d.connect(), d.connect()
        for i in range(50):
            for c, framing in ((a, Line), (b, Length), (e, Http)):
                c.send(framing.wrap(request("debug.echo", '["%s"]' % framing.name, id=i)))
            for c, framing in ((e, Http), (b, Length), (a, Line)):
                same(json.loads(framing.read(c)),
                     {"jsonrpc": "2.0", "result": [framing.name], "id": i})


@contextlib.contextmanager
def lines_on_tcp():
    with Folder() as folder:
        os.makedirs(folder(".aiwg", "daemon"), mode=0o700)
        with Daemon("--listen", "hld=tcp:127.0.0.1:0", "--listen", "aiwg=tcp:127.0.0.1:0",
                    root=folder.path, listen=EVERYWHERE) as d:
            yield d


PAGE = (b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: http://evil.example\r\n"
        b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n")
NO_OBJECTS = (b"post / http/1.1\r\nHost: localhost\r\n\r\n", b"Host: localhost\r\n", b"hello\n",
              b"1\n", b'"x"\n', b"null\n", b"{bad}\n", b"\r\n \n" + b"GARBAGE\n", b"}\n")


def test_a_web_page_cannot_speak_lines():
    with lines_on_tcp() as d:
        for dialect in ("hld", "aiwg", "koine"):
            line = request("health" if dialect == "hld" else "ping") + b"\n"
            for cut in (False, True):
                with d.connect("tcp", dialect) as c:
                    head = PAGE % (80, len(line))
                    for part in (head, line) if cut else (head + line,):
                        c.send_all_it_takes(part)
                    got = c.read_rest()
                    check(b'"result"' not in got, "%s ran it: %r", dialect, got)
        same(d.calls(), 0, "calls")


def test_on_tcp_a_first_line_that_is_no_object_is_the_last():
    with lines_on_tcp() as d:
        for dialect in ("hld", "aiwg", "koine"):
            line = request("health" if dialect == "hld" else "ping") + b"\n"
            for first in NO_OBJECTS + ((b"[%s]\n" % line[:-1],) if dialect == "hld" else ()):
                with d.connect("tcp", dialect) as c:
                    c.send_all_it_takes(first + line)
                    got = c.read_rest()
                    same(got.count(b"\n"), 1, "%s, %r: answers %r" % (dialect, first, got))
                    check(b'"error"' in got and b'"result"' not in got, "%r", got)
            # It is not waited for: nothing that begins so is an object.
            with d.connect("tcp", dialect) as c:
                c.send(b"GET\t")
                check(b'"error"' in c.read_rest(), "no error")
            # Behind a first one that is, a mistake is a mistake and no more.
            with d.connect("tcp", dialect) as c:
                c.send(line + b"hello\n" + line)
                for word in ("result", "error", "result"):
                    check(word in json.loads(c.read_line()), "no %s", word)
        same(d.calls(), 3 * 3, "calls")


def test_on_a_unix_socket_a_mistake_in_the_first_line_is_a_mistake_and_no_more():
    with shared() as d:
        with d.connect() as c:
            c.send(b"hello\n" + ECHO + b"\n")
            check("error" in json.loads(c.read_line()), "no error")
            echo_answer(Line, c)


TLS_HELLO = bytes.fromhex("16030100d8010000d40303") + bytes(64)


def test_a_tls_hello_is_refused_at_once():
    """Without an end of line, and shorter than it says: whoever waited would not answer."""
    with lines_on_tcp() as d:
        for kind, dialect in (("http", "koine"), ("tcp", "koine"), ("unix", "koine"), ("tcp", "hld"),
                              ("tcp", "aiwg")):
            for hello in (TLS_HELLO, TLS_HELLO[:2]):
                with d.connect(kind, dialect) as c:
                    c.send(hello)
                    got = c.read_rest()
                    check(b"TLS" in got, "%s %s: %r", dialect, kind, got)
        same(d.calls(), 0, "calls")
        check(b"TLS" in d.log(), "not logged")


if __name__ == "__main__":
    main(globals())
