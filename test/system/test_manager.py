#!/usr/bin/env python3
"""
What a service manager gives and hears: sockets, readiness, watchdog; and which
descriptors the daemon has and hands on.
"""
import os
import select
import signal
import socket
import subprocess

from harness import (KOINED, PATIENCE, Client, Daemon, Failure, Folder, check, clean_environment,
                     connect_when_up, descriptor_flags, descriptors, main, post, request,
                     run_koined, same)

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
PING = request("ping")
CLOEXEC = 0o2000000


# ---- the service manager ----


class Manager:
    """Gives sockets and hears what the daemon says of itself."""

    def __enter__(self):
        self.folder = Folder().__enter__()
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.folder("notify"))
        self.notify.settimeout(PATIENCE)
        return self

    def __exit__(self, *exc):
        self.notify.close()
        self.folder.__exit__(*exc)

    def hear(self):
        return self.notify.recv(4096).decode()


def handing_over(*sockets, names=None):
    """How Daemon starts a koined that finds these sockets from descriptor 3 on."""
    def arrange():
        # first out of the way: a source may stand where another must go
        copies = [os.dup2(s.fileno(), 100 + i) for i, s in enumerate(sockets)]
        for i, fd in enumerate(copies):
            os.dup2(fd, 3 + i)
            os.close(fd)

    env = {"LISTEN_FDS": str(len(sockets))}
    if names:
        env["LISTEN_FDNAMES"] = names
    return {"wrapper": ["/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"],
            "preexec_fn": arrange, "pass_fds": [3 + i for i in range(len(sockets))], "env": env}


def test_sockets_that_are_handed_over_are_served_and_left():
    with Folder() as folder:
        with socket.socket(socket.AF_UNIX) as s, socket.socket() as t:
            s.bind(folder("given.sock"))
            s.listen(16)
            t.bind(("127.0.0.1", 0))
            t.listen(16)
            with Daemon(**handing_over(s, t, names="koine:whatever")) as d:
                same(d.address(), "unix:" + folder("given.sock"), "address")
                d.alive()
                with d.connect("tcp") as c:
                    c.ping()
                check(not os.path.exists(os.path.join(d.root, "koine.sock")), "another socket")
            check(os.path.exists(folder("given.sock")), "the manager's socket was removed")
            # the next one takes it up again, with those who came in between
            waiting = Client("unix:" + folder("given.sock"))
            waiting.send(PING + b"\n")
            with Daemon(**handing_over(s)):
                check(b"pong" in waiting.read_line(), "no pong")
                waiting.close()


def test_a_tcp_socket_that_is_handed_over_has_the_same_door():
    with Folder() as folder:
        with socket.socket(socket.AF_UNIX) as s, socket.socket() as t:
            s.bind(folder("given.sock"))
            s.listen(16)
            t.bind(("127.0.0.1", 0))
            t.listen(16)
            with Daemon(**handing_over(s, t)) as d:
                with d.connect("tcp") as c:
                    same(post(c, PING, host="evil.com").status, 403, "status")
                with d.connect("tcp") as c:
                    same(post(c, PING).status, 200, "status")


def test_a_socket_that_is_handed_over_but_not_loopback_is_refused():
    with socket.socket() as t:
        t.bind(("0.0.0.0", 0))
        t.listen(16)
        try:
            with Daemon(**handing_over(t)):
                pass
        except Failure as why:
            check("0.0.0.0" in str(why), "%s", why)
        else:
            raise Failure("it listens everywhere")


def test_sockets_meant_for_another_process_are_not_taken():
    with Daemon(env={"LISTEN_FDS": "1", "LISTEN_PID": "1"}) as d:
        d.alive()
        check(d.socket_path.startswith(d.root), "it listens elsewhere")


def test_the_manager_hears_of_start_and_stop():
    with Manager() as m:
        with Daemon(env={"NOTIFY_SOCKET": m.folder("notify")}) as d:
            same(m.hear(), "READY=1")
            d.alive()
            d.signal(signal.SIGTERM)
            same(m.hear(), "STOPPING=1")


def test_the_manager_hears_nothing_of_a_start_that_fails():
    with Manager() as m:
        run_koined("--listen", "koine=unix:/dev/null/x", env={"NOTIFY_SOCKET": m.folder("notify")})
        check(not select.select([m.notify], [], [], 0)[0], "it said something")


def test_the_watchdog_is_fed():
    with Manager() as m:
        with Daemon(env={"NOTIFY_SOCKET": m.folder("notify"), "WATCHDOG_USEC": "100000"}):
            same(m.hear(), "READY=1")
            for _ in range(3):
                same(m.hear(), "WATCHDOG=1")


def test_the_watchdog_of_another_process_is_not_fed():
    with Manager() as m:
        with Daemon(env={"NOTIFY_SOCKET": m.folder("notify"), "WATCHDOG_USEC": "20000",
                         "WATCHDOG_PID": "1"}):
            same(m.hear(), "READY=1")
            check(not select.select([m.notify], [], [], 0.2)[0], "it was fed")


def test_a_manager_that_does_not_listen_holds_up_nothing():
    with Folder() as folder:
        for name in (folder("nothing"), "relative", "@no-such-abstract-name", "/" + "x" * 200):
            with Daemon(env={"NOTIFY_SOCKET": name}) as d:
                d.alive()


# ---- descriptors ----


def test_every_descriptor_is_closed_on_exec():
    with Daemon(listen=EVERYWHERE) as d:
        for kind in ("unix", "tcp", "http"):
            d.connect(kind)
        d.settle()
        for fd, what in descriptors(d.pid).items():
            if fd > 2:
                check(descriptor_flags(d.pid, fd) & CLOEXEC, "descriptor %d (%s)", fd, what)


def test_no_socket_takes_the_place_of_a_standard_descriptor():
    with Folder() as folder:
        for closed in ((0,), (0, 1, 2), (1, 2), (2,)):
            def close(closed=closed):
                for fd in closed:
                    os.close(fd)

            process = subprocess.Popen([KOINED, "--root", folder.path], preexec_fn=close,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       stdin=subprocess.DEVNULL, env=clean_environment())
            try:
                with connect_when_up(folder("koine.sock")) as c:
                    c.ping()
                    found = descriptors(process.pid)
                    for fd in (0, 1, 2):
                        same(found.get(fd), "/dev/null", "descriptor %d" % fd)
            finally:
                process.terminate()
                same(process.wait(PATIENCE), 0, "exit status")


def test_a_log_that_nobody_reads_any_more_ends_nothing():
    """stdout and stderr are pipes whose readers have gone."""
    with Folder() as folder:
        process = subprocess.Popen([KOINED, "--root", folder.path, "--log-level", "debug"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment())
        try:
            process.stdout.close()
            process.stderr.close()
            with connect_when_up(folder("koine.sock")) as c:
                for _ in range(50):
                    c.ping()
        finally:
            process.terminate()
            same(process.wait(PATIENCE), 0, "exit status")


if __name__ == "__main__":
    main(globals())
