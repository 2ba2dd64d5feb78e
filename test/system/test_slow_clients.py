#!/usr/bin/env python3
"""Clients that never read, dribble, come and go, or are too many: the others are served."""
import itertools
import json
import os
import resource
import select
import signal
import socket
import threading
import time

from harness import (MIB, PATIENCE, SANITIZED, SOURCE, Client, Daemon, Failure, Http, Length, Line, Skip,
                     check, cpu_seconds, descriptors, main, note, peak_rss, post,
                     raise_descriptor_limit, request, rss, same, wait_until)
from test_events import add, add_many, listener

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
PING = request("ping")


def served(client, n=20):
    """While the others go on as they do. How long it took at most is for the reader."""
    slowest = 0.0
    for _ in range(n):
        start = time.monotonic()
        client.ping()
        slowest = max(slowest, time.monotonic() - start)
    return slowest


class Flood(threading.Thread):
    """Sends without reading, until it is stopped or the daemon takes no more."""

    def __init__(self, client, data):
        super().__init__(daemon=True)
        self.client = client
        self.data = data
        self.stopped = False
        self.sent = 0
        self.error = None
        client.socket.settimeout(0.1)
        self.start()

    def run(self):
        while not self.stopped:
            try:
                self.sent += self.client.socket.send(self.data)
            except socket.timeout:
                continue
            except OSError as why:
                self.error = why
                return

    def stop(self):
        self.stopped = True
        self.join()
        self.client.close()


def test_clients_that_never_read_cost_little_and_hold_up_nobody():
    discover = request("rpc.discover")
    with Daemon(listen=EVERYWHERE) as d:
        other = d.connect()
        other.ping()
        before = rss(d.pid)
        floods = []
        for i in range(20):
            framing = (Line, Length, Http)[i % 3]
            floods.append(Flood(d.connect("unix" if i % 2 else "tcp"),
                                framing.wrap(discover) * 200))
        # Each has sent more than is read of one that does not read.
        wait_until(lambda: all(f.sent > 0 for f in floods), "all to have begun")
        slowest = max(served(other) for _ in range(10))
        grown = peak_rss(d.pid) - before
        for f in floods:
            check(f.is_alive(), "a client was cut: %s", f.error)
            f.stop()
        note("20 clients that never read: %.1f MiB, slowest ping of another %.0f ms" %
             (grown / MIB, slowest * 1000))
        check(grown < 64 * MIB, "memory grew by %d MiB", grown // MIB)
        served(other)


def test_subscribers_that_never_read_share_what_waits_for_them():
    agent = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
    with Daemon("--set", "session.program=" + agent) as d:
        for _ in range(20):
            d.connect(dialect="hld").call("Subscribe")
        c = d.connect(dialect="hld")
        before = rss(d.pid)
        s = c.call("launchSession", {"query": "lines 400 60000"})["session_id"]
        wait_until(lambda: c.call("getSessionState", {"session_id": s})["session"]["status"] ==
                   "completed", "its end")
        # Each has the first hundred before it.
        wait_until(lambda: sum(e["dropped"] for e in d.status()["listeners"]) > 20 * 250, "drops")
        grown = peak_rss(d.pid) - before
        note("20 subscribers that never read: %.1f MiB" % (grown / MIB))
        check(SANITIZED or grown < 64 * MIB, "grown by %d MiB", grown // MIB)


def test_clients_that_never_read_are_not_read_any_more():
    with Daemon() as d:
        c = d.connect()
        flood = Flood(c, Line.wrap(request("rpc.discover")) * 200)
        sent = -1

        def stands_still():
            nonlocal sent
            before, sent = sent, flood.sent
            time.sleep(0.2)
            return before == flood.sent

        wait_until(stands_still, "the daemon to stop reading")
        idle = cpu_seconds(d.pid)
        time.sleep(0.5)
        check(cpu_seconds(d.pid) - idle < 0.25, "it spins")
        check(flood.is_alive(), "the client was cut: %s", flood.error)
        flood.stop()


def test_a_large_answer_that_is_not_read_holds_up_nobody():
    text = '["%s"]' % ("x" * 8000000)
    with Daemon() as d:
        other = d.connect()
        slow = d.connect()
        slow.send(Length.wrap(request("debug.echo", text)))
        served(other)
        got = json.loads(slow.read_frame())
        same(len(got["result"][0]), 8000000, "length")


def test_large_answers_that_nobody_reads_are_bounded_in_sum():
    size = 15 * MIB
    echo = Line.wrap(request("debug.echo", '["%s"]' % ("x" * size)))
    with Daemon() as d:
        reader = d.connect()
        reader.send(echo)
        d.settle()
        before = rss(d.pid)
        silent = [d.connect() for _ in range(20)]
        for c in silent:
            c.send(echo)
            d.settle()
            # Whoever reads is not cut.
            reader.need(len(reader.got) + 1)
        peak = peak_rss(d.pid) - before
        same(len(json.loads(reader.read_line())["result"][0]), size, "length")

        def cut():
            d.settle()
            return d.log().count(b"slow client disconnected") >= 16

        wait_until(cut, "the silent to be cut")
        grown = rss(d.pid) - before
        note("20 large answers that are never read: %.1f MiB, at most %.1f" %
             (grown / MIB, peak / MIB))
        check(grown < 96 * MIB and peak < 384 * MIB, "memory grew by %d MiB", grown // MIB)
        same(len(json.loads(silent[-1].read_line())["result"][0]), size, "length")
        check(len(silent[0].read_rest()) < size, "the slowest was not cut")


def test_long_answers_that_nobody_reads_wait_to_be_made():
    """Made by the readers' threads: what finds no room waits for it, and short ones go on."""
    n, bits, each = (400, 56, 250) if not SANITIZED else (40, 8, 250)
    # Perturbed, the allocator would touch all that is reserved; the figure is of what is used.
    with Daemon("--set", "limits.total_queue_bytes=%d" % ((64 if not SANITIZED else 8) * MIB),
                env={"MALLOC_PERTURB_": "0"}) as d:
        other = d.connect()
        for i in range(bits):
            other.call("memory.add", {"content": "%d " % i + "x" * (each * 1024)})
        ask = request("memory.list", '{"limit":100}')
        size = len(other.call_text(ask))
        check(size > bits * each * 1024, "%d bytes", size)
        before = rss(d.pid)
        silent = [d.connect() for _ in range(n)]
        for c in silent:
            c.send(ask + b"\n")
        pings = []
        while b"slow client disconnected" not in d.log():
            start = time.monotonic()
            other.ping()
            pings.append(time.monotonic() - start)
            same(other.call("memory.stats")["total"], bits, "memories")
            time.sleep(0.01)
        peak = peak_rss(d.pid) - before
        note("%d who ask for %.1f MiB and never read: at most %.1f MiB; a ping beside them took %.1f ms"
             " in the middle, %.1f at most" % (n, size / MIB, peak / MIB, sorted(pings)[len(pings) // 2]
                                              * 1000, max(pings) * 1000))
        check(peak < 128 * MIB, "memory grew by %d MiB", peak // MIB)
        for c in silent:
            c.close()
        same(len(other.call_text(ask)), size, "bytes of the answer to one who reads")


def test_many_who_read_large_answers_all_get_them():
    size = 15 * MIB
    echo = Line.wrap(request("debug.echo", '["%s"]' % ("x" * size)))
    with Daemon() as d:
        clients = [d.connect() for _ in range(12)]
        # One sends after the other, and all of them read all the time, however slow the machine is.
        sender = threading.Thread(target=lambda: [c.send(echo) for c in clients], daemon=True)
        sender.start()
        reading = {c.socket: c for c in clients}
        while reading:
            ready = select.select(list(reading), [], [], PATIENCE)[0]
            check(ready, "nothing comes for %d of them", len(reading))
            for c in [reading[s] for s in ready]:
                c.need(len(c.got) + 1)
                if c.got.endswith(b"\n"):
                    del reading[c.socket]
        sender.join()
        for c in clients:
            same(len(json.loads(c.read_line())["result"][0]), size, "length")


def test_a_slow_reader_gets_everything_in_the_end():
    n = 3000
    with Daemon(listen=EVERYWHERE) as d:
        for kind, framing in (("unix", Line), ("tcp", Length), ("http", Http)):
            c = d.connect(kind)
            pad = "x" * 1000
            data = b"".join(framing.wrap(request("debug.echo", '[%d,"%s"]' % (i, pad), id=i))
                            for i in range(n))
            sender = threading.Thread(target=c.send_all_it_takes, args=(data,), daemon=True)
            sender.start()
            for i in range(n):
                if i % 500 == 0:
                    time.sleep(0.05)
                got = json.loads(framing.read(c))
                same((got["id"], got["result"][0]), (i, i))
            sender.join()
            c.half_close()
            c.ended()


def test_a_request_that_dribbles_is_cut_after_its_time():
    with Daemon("--set", "limits.read_timeout=1", "--set", "limits.linger=1",
                listen=EVERYWHERE) as d:
        other = d.connect()
        end = time.monotonic() + PATIENCE
        dribblers = {kind: d.connect(kind) for kind in ("http", "tcp", "unix")}
        head = itertools.chain(b"POST / HTTP/1.1\r\nHost: localhost\r\nX-A: ", itertools.repeat(97))
        left = dict(dribblers)
        while left:
            check(time.monotonic() < end, "not cut: %r", list(left))
            byte = bytes([next(head)])
            for kind, c in list(left.items()):
                if not c.send_all_it_takes(byte):
                    del left[kind]
                    continue
                c.socket.setblocking(False)
                try:
                    part = c.socket.recv(65536)
                    c.got += part
                    if not part:
                        del left[kind]
                except (BlockingIOError, ConnectionResetError):
                    pass
                c.socket.settimeout(10)
            served(other, 1)
            time.sleep(0.05)
        for c in dribblers.values():
            same(bytes(c.got[:12]), b"HTTP/1.1 408", "status line")
        same(d.calls() - other_calls(d), 0, "calls")


def other_calls(d):
    return sum(e["calls"] for e in d.status()["listeners"] if e["address"].startswith("unix")) \
        - d.asked


def test_a_body_that_dribbles_is_cut_after_its_time():
    with Daemon("--set", "limits.read_timeout=1", "--set", "limits.linger=1",
                listen=EVERYWHERE) as d:
        clients = []
        for head in (b"Content-Length: 1000", b"Transfer-Encoding: chunked"):
            c = d.connect("http")
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
            clients.append(c)
        for c in clients:
            same(c.read_response().status, 408, "status")
            c.ended()


def test_a_message_that_does_not_go_on_is_cut():
    with Daemon("--set", "limits.read_timeout=1", "--set", "limits.linger=1",
                listen=EVERYWHERE) as d:
        for kind in ("unix", "tcp"):
            line, frame, silent = (d.connect(kind) for _ in range(3))
            silent.ping()
            line.send(b'{"jsonrpc":')
            frame.send(b"\0\0\1\0{")
            check("message timed out: received fewer than" in line.read_line().decode(), "not told why")
            line.ended()
            check("message timed out: received fewer than" in frame.read_frame().decode(), "not told why")
            frame.ended()
            # Who has nothing under way may say nothing for as long as it likes.
            silent.ping()


def is_told(c):
    """Whether something came, or the end."""
    return bool(select.select([c.socket], [], [], 0)[0])


def test_half_sent_messages_are_bounded_in_sum():
    n, size = (100, 15 * MIB) if not SANITIZED else (10, 1 * MIB)
    limit = 64 * MIB if not SANITIZED else 4 * MIB
    half = b'{"a":"' + b"x" * size
    with Daemon("--set", "limits.total_input_bytes=%d" % limit) as d:
        before = rss(d.pid)
        clients = []
        for _ in range(n):
            clients.append(d.connect())
            clients[-1].send_all_it_takes(half)
        d.settle()
        cut = sum(is_told(c) for c in clients)
        check(b"incomplete messages use more than" in d.log(), "nothing is logged")
        check(cut >= n - limit // size - 1, "%d of %d cut", cut, n)
        grown, peak = rss(d.pid) - before, peak_rss(d.pid) - before
        note("%d half-sent lines of %d MiB: %.1f MiB, at most %.1f" %
             (n, size // MIB, grown / MIB, peak / MIB))
        check(peak < 96 * MIB, "memory grew by %d MiB", peak // MIB)
        # The first, which have been there for longest, have left; an honest one is served.
        check(b"incomplete messages" in clients[0].read_rest(), "not told why")
        with d.connect() as c:
            c.send(Line.wrap(request("debug.echo", '["%s"]' % ("y" * size))))
            same(len(json.loads(c.read_line())["result"][0]), size, "length")


def test_messages_of_calls_that_wait_are_bounded_in_sum():
    """A call keeps its whole message until it is answered, members that nobody reads included."""
    def ask(c, i, size):
        c.send(Line.wrap(request("approval.request", {"tool": "t%d" % i, "input": {}, "unread": "x" * size})))

    limit = 64 * MIB
    with Daemon("--set", "limits.total_call_bytes=%d" % limit) as d, d.connect() as person:
        person.ping()
        before = rss(d.pid)
        clients = [d.connect() for _ in range(12)]
        for i, c in enumerate(clients):
            ask(c, i, 15 * MIB)
        d.settle()
        for c in clients[:4]:
            check(not is_told(c), "a call was refused")
        for c in clients[4:]:
            check(b"calls in flight use" in c.read_line(), "a call was not refused")
        check(rss(d.pid) - before < limit + 32 * MIB, "memory grew by %d MiB", (rss(d.pid) - before) // MIB)
        # Small ones are served, and one that ends makes room.
        ask(clients[4], 4, 1000)
        wait_until(lambda: person.call("approval.list")["pending"] == 5, "the small one")
        first = [a["id"] for a in person.call("approval.list")["approvals"] if a["tool"] == "t0"][0]
        person.call("approval.withdraw", {"id": first})
        check(b"superseded" in clients[0].read_line(), "the first was not told")
        ask(clients[5], 5, 15 * MIB)
        wait_until(lambda: person.call("approval.list")["pending"] == 5, "the large one")


def test_batches_of_small_calls_that_wait_are_bounded_in_sum():
    """All of a batch is kept while one of its calls waits, so a small call in it counts as the whole batch."""
    with Daemon("--set", "limits.total_call_bytes=%d" % (4 * MIB)) as d, d.connect() as person:
        clients = [d.connect() for _ in range(6)]
        for i, c in enumerate(clients):
            c.send(Line.wrap(b"[%s,%s]" % (
                request("approval.request", {"tool": "t%d" % i, "input": {}}),
                request("ping", {"unread": "x" * (3 * MIB // 2)}))))
        d.settle()
        same(person.call("approval.list")["pending"], 2, "batches of 1.5 MiB that wait")
        for c in clients[2:]:
            answers = json.loads(c.read_line())
            check("calls in flight use" in answers[0]["error"]["message"] and "result" in answers[1], "%r", answers)


def test_a_connection_over_http_that_says_nothing_is_cut():
    with Daemon("--set", "limits.read_timeout=1", listen=EVERYWHERE) as d:
        c = d.connect("http")
        c.read_rest()


def test_a_connection_that_was_served_may_be_quiet():
    with Daemon("--set", "limits.read_timeout=1", listen=EVERYWHERE) as d:
        kept = [d.connect(kind) for kind in ("http", "tcp", "unix")]
        lines = d.connect()
        lines.ping()
        for c in kept:
            same(post(c, PING).status, 200, "status")
        time.sleep(2.2)
        lines.ping()
        for c in kept:
            same(post(c, PING).status, 200, "status")


def test_a_call_that_takes_longer_than_reading_may_is_answered():
    with Daemon("--set", "limits.read_timeout=1", listen=EVERYWHERE) as d:
        c = d.connect("http")
        same(post(c, request("debug.sleep", {"ms": 1800})).status, 200, "status")


def test_coming_and_going_leaves_nothing_behind():
    n = 5000 if not SANITIZED else 1500
    with Daemon(listen=EVERYWHERE) as d:
        def churn(times):
            for i in range(times):
                c = Client(d.address(("unix", "tcp", "http")[i % 3]))
                if i % 5 == 0:
                    c.send(Http.wrap(PING))
                    c.read_response()
                elif i % 5 == 1:
                    c.send(Http.wrap(PING)[:20])
                elif i % 5 == 2:
                    c.send(Http.wrap(PING) * 3)
                if i % 7 == 0:
                    c.reset()
                c.close()
            wait_until(lambda: d.status()["connections"] == 1, "the connections to end")

        churn(300)
        fds, before = len(descriptors(d.pid)), rss(d.pid)
        churn(n)
        wait_until(lambda: len(descriptors(d.pid)) <= fds, "the descriptors to be closed")
        grown = rss(d.pid) - before
        check(grown < 4 * MIB, "memory grew by %d KiB", grown // 1024)


def test_ten_thousand_idle_connections_are_cheap():
    limit = raise_descriptor_limit()
    n = min(10000, limit - 200) if not SANITIZED else min(1000, limit - 200)
    if n < 500:
        raise Skip("only %d descriptors" % limit)
    with Daemon(listen=EVERYWHERE) as d:
        other = d.connect()
        other.ping()
        before = rss(d.pid)
        crowd = [Client(d.address()) for _ in range(n)]
        try:
            wait_until(lambda: d.status()["connections"] >= n, "all to be accepted")
            each = (rss(d.pid) - before) / n
            note("%d idle connections: %d bytes each" % (n, each))
            check(each < 10240, "%d bytes for an idle connection", each)
            served(other)
            idle = cpu_seconds(d.pid)
            time.sleep(0.5)
            check(cpu_seconds(d.pid) - idle < 0.25, "idle connections cost time")
            for c in crowd[::100]:
                c.ping()
            # those that have spoken go back to costing nothing
            for c in crowd:
                c.send(PING + b"\n")
            for c in crowd:
                check(b"pong" in c.read_line(), "no pong")
            each = (rss(d.pid) - before) / n
            check(each < 10240, "%d bytes for a connection that was served", each)
        finally:
            for c in crowd:
                c.close()
        wait_until(lambda: d.status()["connections"] == 2, "all to end")


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (44, 44))


def test_out_of_descriptors_it_serves_those_inside_and_waits():
    with Daemon(listen=EVERYWHERE, preexec_fn=few_descriptors,
                announced=["koined has no free file descriptors"]) as d:
        crowd = [d.connect() for _ in range(100)]
        served = []

        def ask():
            for c in crowd:
                if c not in served and not c.got:
                    c.socket.settimeout(0.02)
                    try:
                        c.got += c.socket.recv(4096)
                    except socket.timeout:
                        continue
                    served.append(c)
            return len(served) >= 10

        for c in crowd:
            c.send(PING + b"\n")
        wait_until(ask, "those inside to be served")
        for c in crowd:
            c.socket.settimeout(10)
        for c in served:
            c.read_line()
        inside = served[:10]
        start = cpu_seconds(d.pid)
        for _ in range(10):
            for c in inside:
                c.ping()
            time.sleep(0.1)
        check(cpu_seconds(d.pid) - start < 0.5, "it spins")
        # room comes back, and those who waited get in
        waiting = [c for c in crowd if c not in served]
        check(waiting, "nobody had to wait")
        for c in served:
            c.close()
        for c in waiting[:10]:
            check(b"pong" in c.read_line(), "no pong")
        for c in waiting:
            c.close()
        wait_until(lambda: d.status()["connections"] == 1, "room")
        d.alive()
        http = d.connect("http")
        same(post(http, PING).status, 200, "status")


def test_connections_wait_in_a_long_backlog():
    """A daemon that is busy for a moment refuses nobody."""
    with open("/proc/sys/net/core/somaxconn") as f:
        n = min(2000, int(f.read()), raise_descriptor_limit() - 100)
    with Daemon() as d:
        os.kill(d.pid, signal.SIGSTOP)
        try:
            crowd = []
            for _ in range(n):
                c = socket.socket(socket.AF_UNIX)
                c.setblocking(False)
                crowd.append(c)
                c.connect(d.socket_path)
        except BlockingIOError:
            raise Failure("connection %d is refused" % len(crowd)) from None
        finally:
            os.kill(d.pid, signal.SIGCONT)
            for c in crowd:
                c.close()
        d.alive()


def test_a_subscriber_that_does_not_read_falls_behind_and_recovers():
    with Daemon() as d:
        slow, quick = listener(d), listener(d)
        slow.subscribe()
        quick.subscribe()
        before = rss(d.pid)
        w = d.connect()
        for i in range(20):
            add_many(w, 500, i * 500)
            same([e["seq"] for e in quick.events(500)], list(range(i * 500 + 1, i * 500 + 501)))
        grown = rss(d.pid) - before
        check(grown < 16 * MIB, "grew by %d MiB", grown // MIB)
        same([e["seq"] for e in slow.events(10000)], list(range(1, 10001)))
        add(w, "caught up")
        same(slow.event()["seq"], 10001)
        same(sum(l["dropped"] for l in d.status()["listeners"]), 0, "dropped")


if __name__ == "__main__":
    main(globals(), measured=(
        "clients_that_never_read_cost_little_and_hold_up_nobody",
        "subscribers_that_never_read_share_what_waits_for_them",
        "clients_that_never_read_are_not_read_any_more",
        "large_answers_that_nobody_reads_are_bounded_in_sum",
        "long_answers_that_nobody_reads_wait_to_be_made",
        "half_sent_messages_are_bounded_in_sum",
        "messages_of_calls_that_wait_are_bounded_in_sum",
        "coming_and_going_leaves_nothing_behind",
        "ten_thousand_idle_connections_are_cheap",
        "out_of_descriptors_it_serves_those_inside_and_waits",
        "a_subscriber_that_does_not_read_falls_behind_and_recovers",))
