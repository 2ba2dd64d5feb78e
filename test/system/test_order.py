#!/usr/bin/env python3
"""Answers in order, cancels that overtake, and connections that do not wait for each other."""
import json
import threading

from harness import (Client, Daemon, Http, Length, Line, check, main, post, request,
                     same, shared, wait_until)

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
PING = request("ping")
LONG = 3000000
CANCELLED = -32800


def sleep(ms, id=1):
    return request("debug.sleep", {"ms": ms}, id=id)


def cancel(id, own='"c"'):
    return request("rpc.cancel", '{"id":%s}' % id, id=own)


def test_a_fast_call_waits_for_the_slow_one_before_it():
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("tcp", Line), ("http", Http)):
            c = d.connect(kind)
            c.send(framing.wrap(sleep(80, 1)) + framing.wrap(request("ping", id=2))
                   + framing.wrap(sleep(1, 3)) + framing.wrap(request("health", id=4)))
            same([json.loads(framing.read(c))["id"] for _ in range(4)], [1, 2, 3, 4], "order")


def test_a_fast_call_waits_for_the_batch_before_it():
    with shared() as d:
        c = d.connect()
        c.send(b"[" + sleep(50, 1) + b"," + sleep(1, 2) + b"]\n" + request("ping", id=3) + b"\n")
        same([a["id"] for a in json.loads(c.read_line())], [1, 2], "order")
        same(json.loads(c.read_line())["id"], 3, "order")


def test_a_slow_notification_holds_its_place():
    with shared() as d:
        c = d.connect()
        c.send(sleep(50, None) + b"\n" + request("ping", id=2) + b"\n")
        same(json.loads(c.read_line())["id"], 2)
        c.quiet(0.1)


def test_cancel_overtakes_and_both_are_answered():
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("tcp", Line)):
            c = d.connect(kind)
            c.send(framing.wrap(sleep(LONG, 1)) + framing.wrap(request("ping", id=2)))
            c.quiet(0.05)
            c.send(framing.wrap(cancel("1")))
            got = {a["id"]: a for a in (json.loads(framing.read(c)) for _ in range(3))}
            same(got[1]["error"]["code"], CANCELLED, "code")
            same(got["c"]["result"], {"cancelled": True})
            check(got[2]["result"]["pong"], "no pong")


def test_cancel_in_the_same_write_finds_its_call():
    with shared() as d:
        c = d.connect()
        c.send(sleep(LONG, 1) + b"\n" + cancel("1") + b"\n")
        got = {a["id"]: a for a in (json.loads(c.read_line()) for _ in range(2))}
        same(got[1]["error"]["code"], CANCELLED, "code")
        same(got["c"]["result"], {"cancelled": True})


def test_a_waiting_call_is_cancelled_without_being_run():
    with shared() as d:
        c = d.connect()
        c.send(sleep(300, 1) + b"\n" + sleep(LONG, '"w"') + b"\n" + sleep(1, 3) + b"\n"
               + cancel('"w"') + b"\n")
        got = [json.loads(c.read_line()) for _ in range(4)]
        by_id = {a["id"]: a for a in got}
        same(by_id["w"]["error"]["code"], CANCELLED, "code")
        same(by_id["c"]["result"], {"cancelled": True})
        same([a["id"] for a in got if a["id"] in (1, 3)], [1, 3], "order of the others")
        same(by_id[1]["result"], {"slept_ms": 300})


def test_cancel_of_nothing_says_so():
    with shared() as d:
        c = d.connect()
        same(c.call("rpc.cancel", {"id": 99}), {"cancelled": False})
        same(c.call("rpc.cancel", [99]), {"cancelled": False})
        c.ping()
        same(c.call("rpc.cancel", {"id": 1}, id=2), {"cancelled": False})


def test_cancel_knows_ids_as_they_were_sent():
    with shared() as d:
        c = d.connect()
        c.send(sleep(LONG, '"1"') + b"\n" + cancel("1") + b"\n")
        same(json.loads(c.read_line())["result"], {"cancelled": False})
        c.send(cancel('"1"') + b"\n")
        same({json.loads(c.read_line())["id"] for _ in range(2)}, {"1", "c"})


def test_cancel_does_not_reach_other_connections():
    with shared() as d:
        a, b = d.connect(), d.connect()
        a.send(sleep(400, 1) + b"\n")
        d.settle()
        same(b.call("rpc.cancel", {"id": 1}, id=2), {"cancelled": False})
        same(json.loads(a.read_line())["result"], {"slept_ms": 400})


def test_a_call_in_a_batch_is_cancelled_and_the_batch_goes_on():
    with shared() as d:
        c = d.connect()
        c.send(b"[" + sleep(LONG, 1) + b"," + request("debug.echo", "[2]", id=2) + b"]\n"
               + cancel("1") + b"\n")
        got = [json.loads(c.read_line()) for _ in range(2)]
        batch = next(a for a in got if isinstance(a, list))
        same(batch[0]["error"]["code"], CANCELLED, "code")
        same(batch[1]["result"], [2])


def test_a_call_with_the_id_null_can_be_cancelled():
    with shared() as d:
        c = d.connect()
        c.send(sleep(LONG, "null") + b"\n" + cancel("null") + b"\n")
        got = {str(a["id"]): a for a in (json.loads(c.read_line()) for _ in range(2))}
        same(got["None"]["error"]["code"], CANCELLED, "code")
        same(got["c"]["result"], {"cancelled": True})


def test_calls_end_quietly_when_their_client_has_left():
    with shared(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("unix", Length), ("tcp", Line), ("http", Http)):
            batch = b"[" + sleep(20) + b"," + PING + b"," + sleep(20, 2) + b"]"
            for first in (sleep(100), batch):
                for leave in (Client.close, Client.reset):
                    c = d.connect(kind)
                    c.send(framing.wrap(first) + framing.wrap(sleep(1)) + framing.wrap(PING))
                    d.settle()
                    leave(c)
        wait_until(lambda: d.status()["calls_in_flight"] == 0, "the calls to end")
        wait_until(lambda: d.status()["connections"] == 2, "the connections to end")
        d.alive()


def test_a_client_that_has_left_is_noticed_while_its_call_runs():
    with Daemon() as d:
        for framing in (Line, Length, Http):
            c = d.connect()
            c.send(framing.wrap(sleep(LONG)))
            d.settle()
            c.close()
        wait_until(lambda: d.status()["connections"] == 2, "the connections to end")
        same(d.status()["calls_in_flight"], 3, "calls that go on")
        # And none of them holds up the stop, which would be a warning in the log.


def test_what_waits_behind_a_call_is_done_though_the_client_has_left():
    with shared() as d:
        c = d.connect()
        before = d.calls()
        c.send(Line.wrap(request("debug.sleep", {"ms": 200}, id=None)) +
               Line.wrap(request("debug.echo", [1], id=None)) * 5)
        c.close()
        wait_until(lambda: d.calls() == before + 6, "the notifications to be run")


def test_a_client_that_leaves_before_its_answer_ends_no_daemon():
    """SIGPIPE, or a reset, while the answer is written."""
    with shared(listen=EVERYWHERE) as d:
        for i in range(60):
            kind, framing = (("unix", Line), ("tcp", Length), ("http", Http))[i % 3]
            c = d.connect(kind)
            c.send(framing.wrap(request("debug.echo", '["%s"]' % ("x" * 200000))) * 2)
            c.close()
        d.alive()
        wait_until(lambda: d.status()["connections"] == 1, "the connections to end")


def test_a_method_name_cannot_forge_a_log_line():
    with shared() as d:
        c = d.connect()
        c.send(request("x\\n2000-01-01T00:00:00.000Z err   forged  reason=\\u001b[31m") + b"\n")
        same(json.loads(c.read_line())["error"]["code"], -32601, "code")
        check(b"forged" in d.log(), "not logged at all")
        for line in d.log().splitlines():
            check(not line.startswith(b"2000-"), "a forged line: %r", line)
            check(b"\x1b" not in line, "an escape sequence: %r", line)


def test_two_connections_do_not_wait_for_each_other():
    with shared(listen=EVERYWHERE) as d:
        slow, fast, http = d.connect(), d.connect(), d.connect("http")
        slow.send(sleep(400) + b"\n")
        d.settle()
        for _ in range(20):
            fast.ping()
            same(post(http, PING).status, 200, "status")
        check(not slow.got, "answered too early")
        slow.quiet(0)
        same(json.loads(slow.read_line())["result"], {"slept_ms": 400})


def test_one_client_that_floods_does_not_starve_another():
    with shared() as d:
        flooder, other = d.connect(), d.connect()
        stop = threading.Event()
        flooded = [0]  # bytes of answers

        def send():
            while not stop.is_set() and flooder.send_all_it_takes(Line.wrap(PING) * 500):
                pass

        def read():
            while not stop.is_set():
                n = len(flooder.socket.recv(1 << 20))
                flooded[0] += n
                if n == 0:
                    return

        threads = [threading.Thread(target=send, daemon=True),
                   threading.Thread(target=read, daemon=True)]
        for t in threads:
            t.start()
        try:
            # It is answered each time although there is always more of the other's to read: while a
            # hundred pings come back, the flood has not ended, nor been held up for their sake.
            for _ in range(100):
                before = flooded[0]
                other.ping()
                wait_until(lambda: flooded[0] > before, "the flood to go on")
        finally:
            stop.set()
            for t in threads:
                t.join()


def test_more_calls_than_may_wait_are_all_answered_in_order():
    n = 500
    with Daemon("--set", "limits.waiting=8") as d:
        c = d.connect()
        c.send(sleep(50, 0) + b"\n" + b"".join(sleep(0, i) + b"\n" for i in range(1, n)))
        same([json.loads(c.read_line())["id"] for _ in range(n)], list(range(n)), "order")


def test_what_cannot_be_read_is_refused_in_its_turn():
    with shared() as d:
        c = d.connect()
        c.send(sleep(50, 1) + b"\n{broken\n" + request("ping", id=3) + b"\n")
        same(json.loads(c.read_line())["id"], 1)
        same(json.loads(c.read_line())["error"]["code"], -32700, "code")
        same(json.loads(c.read_line())["id"], 3)


def test_a_stream_that_is_refused_still_answers_what_came_before():
    with shared() as d:
        c = d.connect()
        c.send(Length.wrap(sleep(50, 1)) + Length.wrap(request("ping", id=2)) + b"\xff\xff\xff\xff")
        same(json.loads(c.read_frame())["id"], 1)
        same(json.loads(c.read_frame())["id"], 2)
        same(json.loads(c.read_frame())["error"]["code"], -32004, "code")
        c.ended()


if __name__ == "__main__":
    main(globals())
