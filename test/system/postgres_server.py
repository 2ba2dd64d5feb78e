"""
A PostgreSQL server of a test's own, in a folder that goes with it, on loopback only, or at an address of
a network of ours (hosts_network.py).
"""
import atexit
import contextlib
import glob
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import Failure, Skip, wait_until
from libpq import query


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    if not found or not shutil.which("psql"):
        if os.environ.get("CI"):
            raise Failure("there is no PostgreSQL server here")
        raise Skip("there is no PostgreSQL server here")
    return found[-1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """For a `with`. The server refuses to be root's, so it is the user postgres's there."""

    def __init__(self, options="", wrapper=(), address="127.0.0.1"):
        # No machine loses its power here: what a server has written is there after it was killed.
        self.options = "-c fsync=off " + options
        self.made = []
        self.wrapper = list(wrapper)
        self.address = address

    def __enter__(self):
        self.bin = programs()
        self.folder = tempfile.mkdtemp(prefix="koine-pg-")
        self.port = free_port()
        self.as_user = self.wrapper
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = [*self.wrapper, "setpriv", "--reuid=%d" % user.pw_uid,
                            "--regid=%d" % user.pw_gid, "--clear-groups"]
        self.make()
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        self.run("initdb", "-D", self.folder + "/data", "-A", "trust", "-U", "koine", "--no-sync",
                 "-E", "UTF8", "--locale=C.UTF-8")
        with open(self.folder + "/data/pg_hba.conf", "a") as f:
            f.write("host all all samenet trust\n")

    def run(self, program, *words):
        done = subprocess.run([*self.as_user, os.path.join(self.bin, program), *words], cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise Failure("%s: %s" % (program, done.stdout.decode()[-1000:]))
        return done.stdout.decode()

    def start(self):
        options = ("-k %s -p %d -c listen_addresses=%s -c max_connections=200"
                   " -c shared_buffers=32MB %s" % (self.folder, self.port, self.address, self.options))
        # Its output must not be a pipe, which the server would hold open.
        with open(os.devnull, "wb") as nowhere:
            done = subprocess.run([*self.as_user, self.bin + "/pg_ctl", "-D", self.folder + "/data",
                                   "-o", options, "-l", self.folder + "/log", "-w", "-t", "60", "start"],
                                  cwd="/", stdin=subprocess.DEVNULL, stdout=nowhere, stderr=nowhere)
        if done.returncode != 0:
            with open(self.folder + "/log") as f:
                raise Failure("the server does not start: %s" % f.read()[-1000:])

    def stop(self, mode="immediate"):
        self.run("pg_ctl", "-D", self.folder + "/data", "-w", "-m", mode, "stop")

    def hold_commits(self):
        """From here on a commit is done, but not answered: it waits for a standby that never comes."""
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        self.sql("SELECT pg_reload_conf()")
        # That takes a moment: until one of our own waits. It ends with the server, or when commits are free again.
        for n in itertools.count():
            probe = subprocess.Popen([*self.wrapper, "psql", "-qX", "-d", self.url("postgres"), "-c",
                                      "CREATE TABLE probe_%d_%d ()" % (os.getpid(), time.monotonic_ns())],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda: probe.poll() is not None or self.held("psql"), "a probe's commit")
            if probe.poll() is None:
                threading.Thread(target=probe.wait, daemon=True).start()
                return

    def held(self, program="koined"):
        """How many commits wait."""
        return int(self.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                            " AND application_name = '%s'" % program))

    def free_commits(self):
        """As soon as it is restarted, or reads its settings again."""
        self.sql("ALTER SYSTEM RESET synchronous_standby_names")

    def url(self, name, user="koine"):
        return "postgresql://%s@%s:%d/%s" % (user, self.address, self.port, name)

    def sql(self, text, name="postgres"):
        """By the server's socket, which is in no network."""
        try:
            return query("postgresql://koine@/%s?host=%s&port=%d" % (name, self.folder, self.port), text).strip()
        except RuntimeError as why:
            raise Failure("%s: %s" % (text, why)) from None

    def database(self, name):
        """A new one, and its address."""
        self.sql("CREATE DATABASE %s" % name)
        self.made.append(name)
        return self.url(name)


running = []


@contextlib.contextmanager
def shared_server():
    """One for all tests of a program, since to make one takes seconds. What a test made there goes with it."""
    if not running:
        running.append(Server().__enter__())
        atexit.register(running[0].__exit__)
    server = running[0]
    try:
        yield server
    finally:
        while server.made:
            server.sql("DROP DATABASE %s WITH (FORCE)" % server.made.pop())
