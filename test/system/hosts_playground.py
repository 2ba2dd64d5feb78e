"""./dev hosts: what it prints is true, and nothing is left behind."""
import os
import re
import signal
import subprocess
import sys

import hosts_play
from harness import Client, Folder, check, same, wait_until
from task_world import dead, read_bytes


def of(folder):
    """Processes that name the folder, but for ourselves."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        words = read_bytes("/proc/%d/cmdline" % pid) + read_bytes("/proc/%d/environ" % pid)
        if pid != os.getpid() and folder.encode() in words and not dead(pid):
            found.append(pid)
    return found


def lines_until(stream, word):
    lines = []
    while not lines or lines[-1] != word:
        line = stream.readline().decode()
        check(line, "the end, after %r", lines)
        lines.append(line.strip())
    return lines


def test_the_playground_leaves_nothing_behind():
    with Folder() as f, subprocess.Popen(
            [sys.executable, hosts_play.__file__, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=dict(os.environ, TEST_FOLDER=f("hosts"), KOINE_HOST_LEASE="6")) as p:
        try:
            said = lines_until(p.stdout, "ready")
            server = re.search(r"host=([^&]+)&", "\n".join(said)).group(1)
            for name in ("alpha", "beta"):
                check(any(re.fullmatch(name + " +.* -s .*/%s/koine.sock" % name, line) for line in said), "%r", said)
                with Client("unix:" + f("hosts", name, "koine.sock")) as c:
                    same(len(c.call("host.list")["hosts"]), 2, "hosts that %s lists" % name)
            for order, answer in ((b"kill alpha", "done"), (b"kill alpha", "alpha is not running"),
                                  (b"start alpha", "done"), (b"start alpha", "alpha is running"),
                                  (b"freeze beta", "done"), (b"restart", "done")):
                p.stdin.write(order + b"\n")
                p.stdin.flush()
                same(p.stdout.readline().decode().strip(), answer, order)
            check(os.path.isdir(server), "no server in %s", server)
            p.send_signal(signal.SIGINT)
            same(p.stdout.readline(), b"stopped\n", "its last word")
            same(p.wait(60), 0, "exit status")
        finally:
            p.kill()
        check(not os.path.exists(server) and not os.path.exists(f("hosts")), "a folder is left")
        wait_until(lambda: of(f.path) == [], "all processes to end")
