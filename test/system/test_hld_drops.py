#!/usr/bin/env python3
"""
Many who listen at hld's socket to an agent that says much. One of them never lets a hundred events
wait and misses none, however many there are; what the others miss is counted, event by event: what
one was told and what was dropped for it is all that there was.
"""
import contextlib
import os
import re
import select
import socket
import sys
import time

from harness import (PATIENCE, SANITIZED, SOURCE, Daemon, Folder, check, main, note, same,
                     wait_until)

SUBSCRIBERS = 50
# KOINE_SOAK: the whole number; with sanitizers that takes too long for every day.
LINES = 100000 if os.environ.get("KOINE_SOAK") or not SANITIZED else 5000
WINDOW = 90  # lines that may be on their way to the careful one
READ = 1 << 18
HEARTBEAT = b'"type":"heartbeat"'  # whoever hears nothing else for a while gets one: it is no event
LINE = re.compile(rb'"content":"line (\d+)"')
ENDED = re.compile(rb"subscription ended .*subscription=(\S+) sent=(\d+) dropped=(\d+)")


class Subscriber:
    def __init__(self, d):
        self.client = d.connect(dialect="hld")
        # So that what waits for it soon waits with the daemon.
        self.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.id = self.client.call("Subscribe")["subscription_id"]
        self.n_events = 0
        self.rest = b""

    def read(self):
        """Whole lines of what has come; b"" for none."""
        data = self.client.socket.recv(READ)
        check(data, "%s: the daemon has hung up", self.id)
        whole, mark, rest = (self.rest + data).rpartition(b"\n")
        self.rest = rest
        self.n_events += whole.count(b"\n") + len(mark) - whole.count(HEARTBEAT)
        return whole + mark

    def glance(self):
        if select.select([self.client.socket], [], [], 0)[0]:
            self.read()


class Publisher:
    """The other end of the paced agent."""

    def __init__(self, folder):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(folder("leave"))
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.n_sent = 0

    def accept(self):
        self.socket = self.listener.accept()[0]

    def allow(self, n):
        n = min(n, LINES - self.n_sent)
        if n == 0:
            return
        self.n_sent += n
        self.socket.sendall(b"." * n)
        if self.n_sent == LINES:
            self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()
        self.listener.close()


def listen_to_all(careful, sluggish, publisher):
    """How many events there were; every line must have come, in its turn."""
    heard = 0
    publisher.allow(WINDOW)
    while True:
        text = careful.read()
        numbers = LINE.findall(text)
        if numbers:
            same((int(numbers[0]), int(numbers[-1])), (heard + 1, heard + len(numbers)), "lines")
            heard += len(numbers)
            publisher.allow(len(numbers))
            # A different one each time: it reads a little, far too seldom.
            sluggish[heard // WINDOW % len(sluggish)].glance()
        if b'"new_status":"completed"' in text:
            same(heard, LINES, "lines heard")
            return careful.n_events
        check(b'"new_status":"failed"' not in text, "it failed: %r", text)


def dropped_in_all(d):
    return next(e["dropped"] for e in d.status()["listeners"] if e["dialect"] == "hld")


def read_the_rest(d, subscribers, wanted):
    """What still waits for them, until all was either told or dropped. How much was dropped."""
    end = time.monotonic() + 3 * PATIENCE
    by_socket = {s.client.socket: s for s in subscribers}
    dropped = dropped_in_all(d)
    while sum(s.n_events for s in subscribers) + dropped < wanted:
        check(time.monotonic() < end, "%d events were told, %d dropped, of %d",
              sum(s.n_events for s in subscribers), dropped, wanted)
        told = sum(s.n_events for s in subscribers)
        for ready in select.select(list(by_socket), [], [], 0.1)[0]:
            by_socket[ready].read()
        if sum(s.n_events for s in subscribers) == told:
            dropped = dropped_in_all(d)
    same(sum(s.n_events for s in subscribers) + dropped, wanted, "events told and dropped")
    return dropped


def endings(d):
    return {found[1].decode(): (int(found[2]), int(found[3]))
            for found in map(ENDED.search, d.log().splitlines()) if found}


@contextlib.contextmanager
def paced_daemon():
    with Folder() as f:
        publisher = Publisher(f)
        agent = "%s %s %s" % (sys.executable, os.path.join(SOURCE, "test", "system",
                                                           "paced_agent.py"), f("leave"))
        with Daemon("--listen", "koine=unix:" + f("koine.sock"), "--listen",
                    "hld=unix:" + f("hld.sock"), "--log-level", "debug", "--set",
                    "session.program=" + agent, "--set", "hld.heartbeat=1") as d:
            yield d, publisher


def test_who_keeps_up_misses_nothing_and_what_others_miss_is_counted():
    began = time.monotonic()
    with paced_daemon() as (d, publisher):
        subscribers = [Subscriber(d) for _ in range(SUBSCRIBERS)]
        careful, others = subscribers[0], subscribers[1:]
        d.connect(dialect="hld").call("launchSession", {"query": "speak"})
        publisher.accept()
        published = listen_to_all(careful, others[:9], publisher)
        publisher.close()
        same(published, LINES + 3, "events")  # it runs, what it was asked, it is completed
        # Who takes nothing is given a moment before it loses anything.
        wait_until(lambda: dropped_in_all(d) > 0, "somebody who misses something")
        dropped = read_the_rest(d, subscribers, SUBSCRIBERS * published)
        same(careful.n_events, published, "events of the careful one")
        for s in subscribers:
            s.client.close()
        missed = [s for s in others if s.n_events < published]
        ended = wait_until(lambda: len(endings(d)) >= len(missed) and endings(d), "their ends")
        for s in missed:
            told, lost = ended.pop(s.id, (None, None))
            same((told, lost), (s.n_events, published - s.n_events), "what is logged of " + s.id)
        same(ended, {}, "ends of those who missed nothing")
        same(dropped_in_all(d), sum(published - s.n_events for s in others), "dropped in all")
    note("%d events to %d, %d dropped, in %.1f s" % (published, SUBSCRIBERS, dropped,
                                                     time.monotonic() - began))


if __name__ == "__main__":
    main(globals())
