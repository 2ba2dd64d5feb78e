#!/usr/bin/env python3
"""An idle daemon sleeps: nothing wakes it without clients, and their number does not matter."""
import os
import time

from harness import Client, Daemon, Failure, main, note, only_in_a_file, raise_descriptor_limit

EACH = 40  # clients of a dialect


def switches(pid):
    """How often any of its threads went to sleep, which is how often one was woken."""
    n = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread)) as f:
            n += sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt"))
    return n


def quiet_window(pid, a_second, seconds=3):
    """Waits for a time in which it is woken at most so often. What comes once a minute, or just
    after the start, spoils one such time; what comes again and again spoils all of them."""
    only_in_a_file("a host among several tells that it lives, and asks what others did")
    seen = []
    for _ in range(12):
        before, start = switches(pid), time.monotonic()
        time.sleep(seconds)
        seen.append(switches(pid) - before)
        # On a busy machine it was longer.
        if seen[-1] <= a_second * (time.monotonic() - start + 0.5):
            return seen[-1]
    raise Failure("woken %r times within %.1f s each" % (seen, seconds))


def test_without_clients_nothing_wakes_it():
    with Daemon() as d:
        quiet_window(d.pid, 0)


def test_nor_after_clients_were_there():
    with Daemon() as d:
        with d.connect() as c:
            c.call("memory.add", {"content": "the kettle is blue"})
            c.call("memory.search", {"query": "kettle"})
            c.call("event.subscribe", {})
        quiet_window(d.pid, 0)


def test_idle_clients_wake_it_twice_a_second_at_most():
    raise_descriptor_limit()
    with Daemon("--set", "listen.gateway=on", "--set", "listen.embedding=on") as d:
        d.clients += [Client(address) for _, address in d.addresses for _ in range(EACH)]
        d.settle()
        n = quiet_window(d.pid, 2)
        note("%d clients: woken %d times within 3 s" % (len(d.clients), n))


if __name__ == "__main__":
    main(globals())
