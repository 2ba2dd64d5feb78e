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

from harness import TEMPLATE, Failure, create_database, missing, run_koined, servers_cpu, wait_until
from libpq import query


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
    if not found or not shutil.which("psql"):
        missing("PostgreSQL server")
    return found[-1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """For a `with`. The server refuses to be root's, so it is the user postgres's there."""

    def __init__(self, options="", wrapper=(), address="127.0.0.1"):
        # No machine loses its power here: what a server has written is there after it was killed, page by page.
        # Commits stay synchronous, because tests kill servers and look for what was acknowledged.
        self.options = "-c fsync=off -c full_page_writes=off " + options
        self.made = []
        self.wrapper = list(wrapper)
        self.address = address

    def __enter__(self):
        self.bin = programs()
        self.folder = tempfile.mkdtemp(prefix="koine-pg-")
        self.as_user = self.wrapper
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = [*self.wrapper, "setpriv", "--reuid=%d" % user.pw_uid,
                            "--regid=%d" % user.pw_gid, "--clear-groups"]
        self.make()
        # As late as possible: until the server listens, others may take it.
        self.port = free_port()
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

    def note_cpu(self):
        """What the server has used. It is a child of init, so nobody here waits for it."""
        with contextlib.suppress(OSError, ValueError):
            with open(self.folder + "/data/postmaster.pid") as f:
                pid = int(f.readline())
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            servers_cpu.append(sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"))

    def stop(self, mode="immediate"):
        self.note_cpu()
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

    def local_url(self, name):
        """The address by the server's socket, which is in no network."""
        return "postgresql://koine@/%s?host=%s&port=%d" % (name, self.folder, self.port)

    def sql(self, text, name="postgres"):
        try:
            return query(self.local_url(name), text).strip()
        except RuntimeError as why:
            raise Failure("%s: %s" % (text, why)) from None

    def make_template(self):
        """Tables of koined's without data, which most databases here are copies of: see database_of()."""
        self.sql("CREATE DATABASE " + TEMPLATE)
        done = run_koined("--init-store", "--store", self.local_url(TEMPLATE))
        if done.returncode != 0:
            raise Failure("koined --init-store: %s" % done.stderr.decode())

    def store(self, name):
        """The address of a new database that has koined's tables."""
        if not self.sql("SELECT 1 FROM pg_database WHERE datname = '%s'" % TEMPLATE):
            self.make_template()
        return self.database(name, template=TEMPLATE)

    def database(self, name, template=None):
        """The address of a new database, which is empty unless it is a copy."""
        self.sql(create_database(name, template))
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
