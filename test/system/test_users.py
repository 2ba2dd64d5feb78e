#!/usr/bin/env python3
"""Other users of the machine stay outside, whatever the file's mode says."""
import os
import shutil
import socket
import stat
import subprocess

from harness import KOINE, KOINED, PATIENCE, Daemon, Skip, check, main, request, same

NOBODY = 65534


def as_nobody(path):
    """What another user gets there: an errno name, "ended", or an answer's text."""
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writable, try_ping(path).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as f:
        out = f.read()
    os.waitpid(child, 0)
    return out


def try_ping(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    try:
        s.connect(path)
    except PermissionError:
        return "EACCES"
    try:
        s.sendall(request("ping") + b"\n")
        return s.recv(4096).decode() or "ended"
    except (BrokenPipeError, ConnectionResetError):
        return "ended"


def open_the_way(d):
    os.chmod(d.root, 0o711)
    os.chmod(d.socket_path, 0o666)


def test_another_user_cannot_connect():
    with Daemon() as d:
        same(as_nobody(d.socket_path), "EACCES")
        # in a folder that lets everybody through, the file's mode still holds
        os.chmod(d.root, 0o711)
        same(as_nobody(d.socket_path), "EACCES")
        d.alive()


def test_another_user_is_not_served_even_if_the_mode_lets_him():
    with Daemon() as d:
        open_the_way(d)
        same(as_nobody(d.socket_path), "ended")
        same(d.calls(), 0, "calls")
        same(sum(e["refused"] for e in d.status()["listeners"]), 1, "refused")
        d.alive()


def test_another_user_who_is_allowed_is_served():
    with Daemon("--set", "koine.allow_uids=65534") as d:
        open_the_way(d)
        check('"pong":true' in as_nobody(d.socket_path), "not served")


def test_allowing_one_user_allows_no_other():
    with Daemon("--set", "koine.allow_uids=1234, 1235") as d:
        open_the_way(d)
        same(as_nobody(d.socket_path), "ended")


def test_root_is_served_by_a_daemon_of_another_user():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")

    def become():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    class Theirs(Daemon):
        def start(self):
            os.chown(self.root, NOBODY, NOBODY)
            super().start()

    if not reachable(NOBODY):
        raise Skip("another user cannot run koined where it was built")
    with Theirs(preexec_fn=become) as d:
        same(os.stat(d.socket_path).st_uid, NOBODY, "owner")
        same(stat.S_IMODE(os.stat(d.socket_path).st_mode), 0o600, "mode")
        d.alive()
        check('"pong":true' in as_nobody(d.socket_path), "its own user is not served")


def test_a_socket_that_is_not_ours_is_not_waited_for():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    if not reachable(NOBODY) or not shutil.which("strace") or os.environ.get("KOINE_SANITIZED"):
        raise Skip("koine cannot be watched here")
    with Daemon() as d:
        done = subprocess.run(
            ["strace", "-qq", "-e", "trace=connect", KOINE, "--socket", d.socket_path,
             "memory", "list"], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True,
            timeout=PATIENCE)
    same(done.returncode, 69, "exit code (%r)" % done.stderr)
    check(b"Permission denied" in done.stderr, "words: %r", done.stderr)
    same(done.stderr.count(b"connect("), 1, "tries")


def reachable(uid):
    child = os.fork()
    if child == 0:
        os.setuid(uid)
        os._exit(0 if os.access(KOINED, os.X_OK) else 1)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main(globals())
