"""
Several koined on several hosts over one PostgreSQL server, which all of these tests share.

The tests are in hosts_*.py; each is given the server, if it wants one. Those of what hosts do for people are in
test_hosts_work.py.
"""
import functools
import inspect
import sys

import hosts_contention
import hosts_fences
import hosts_playground
import hosts_refusals
import hosts_sharing
import hosts_storm
import hosts_weather
from harness import EVERYTHING, ONLY_MEASURED, SANITIZED, Failure, Skip, main
from hosts import HostsServer

ROOMS = [] if ONLY_MEASURED and not EVERYTHING else [hosts_sharing, hosts_refusals, hosts_contention, hosts_storm]
# What takes whole leases is judged as people run it, and without the delays of a sanitizer.
if not SANITIZED:
    ROOMS += [hosts_fences, hosts_weather, hosts_playground]
HOSTS = 4


def tests_of(room, server):
    for name, test in vars(room).items():
        if name.startswith("test_"):
            wants = inspect.signature(test).parameters
            yield name, functools.partial(test, server) if wants else test


def run(rooms):
    try:
        with HostsServer(HOSTS) as shared:
            main({name: test for room in rooms for name, test in tests_of(room, shared)})
    except Skip as why:
        print("skip hosts: %s" % why)
        print("0 passed, 0 failed, 1 skipped")
    except Failure as why:
        print("FAIL hosts: %s" % why)
        sys.exit(1)


if __name__ == "__main__":
    run(ROOMS)
