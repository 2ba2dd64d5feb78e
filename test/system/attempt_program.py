"""
What a task runs: tells a journal that its attempt starts, every few milliseconds that it goes on, and that it stops.

attempt_program.py JOURNAL SECONDS. A line is "task attempt host what monotonic pid", in one write that no
other is mixed into.
"""
import os
import sys
import time

BEAT = 0.01


def main():
    journal = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    who = "%s %s %s" % (os.environ["KOINE_TASK"], os.environ.get("KOINE_ATTEMPT"), os.environ.get("TEST_HOST"))

    def tell(what):
        os.write(journal, b"%s %s %.6f %d\n" % (who.encode(), what.encode(), time.monotonic(), os.getpid()))

    tell("start")
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        time.sleep(BEAT)
        tell("beat")
    tell("stop")


main()
