#!/usr/bin/env python3
"""
The bench of a growing store: it can fill one, koined serves it, and every call of the bench is
answered. How long they take is the bench's matter, and not judged here.
"""
import os
import subprocess

from harness import check, main

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/growth")


def test_every_call_is_answered():
    done = subprocess.run([BENCH, "--sizes", "1000,2000", "--seconds", "0"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(done.returncode == 0, "%s%s", done.stdout, done.stderr)
    check("1,000" in done.stdout and "events: list events of a rare type" in done.stdout, "%s", done.stdout)


if __name__ == "__main__":
    main(globals())
