"""
Where the agents live in these tests: a home of their own, a koined, the scripted model, and a machine
whose network is loopback alone.
"""
import contextlib
import ctypes
import fcntl
import glob
import json
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time

from harness import KOINE, SOURCE, Daemon, Failure, check, same, wait_until
from model import Model
from test_manager import handing_over

PACKAGES = os.path.join(SOURCE, "build", "agents", "node_modules")
# For one turn of an agent: they take seconds, on a busy machine more.
PATIENCE = 180.0
FACT = "The spare key of the lighthouse is under the blue stone."
QUESTION = "where is the key of the lighthouse"


# ---- what npm has brought ----


def package(pattern):
    """A file of a package; without musl, since Debian has glibc."""
    found = [path for path in glob.glob(os.path.join(PACKAGES, pattern)) if "musl/" not in path]
    check(found, "npm has brought no %s; ./dev agents installs it", pattern)
    return found[0]


def node():
    """A Node that is new enough for all of them, where npm has one for this machine."""
    found = glob.glob(os.path.join(PACKAGES, "node-linux-*/bin/node"))
    return found[0] if found else shutil.which("node")


# ---- the network ----


def shut_network():
    """
    From here on this process and its children have a network of their own, with nothing in it but
    loopback: whatever an agent tries to reach, it cannot. False where the kernel does not allow it.
    """
    new_user, new_net = 0x10000000, 0x40000000
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_net | (new_user if uid != 0 else 0)) != 0:
        return False
    if uid != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (uid, uid)),
                           ("gid_map", "%d %d 1" % (gid, gid))):
            with open("/proc/self/" + name, "w") as f:
                f.write(text)
    set_flags, up = 0x8914, 1
    with socket.socket() as s:
        fcntl.ioctl(s, set_flags, struct.pack("16sh14x", b"lo", up))
    return True


# ---- processes ----


def of_home(path):
    """Processes that have this home: whatever an agent has started."""
    mark = ("HOME=%s" % path).encode()
    out = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != os.getpid():
                with open("/proc/%s/environ" % name, "rb") as f:
                    if mark in f.read().split(b"\0"):
                        out.append(int(name))
        except OSError:
            pass
    return out


class Run:
    """A program that runs to its end. For a `with`."""

    def __init__(self, command, env, folder):
        self.command = command
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=self.out, stderr=self.err, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.out.close()
        self.err.close()

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read().decode(errors="replace")

    def finish(self, code=0):
        try:
            got = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            got = "none"
        self.said = self.text(self.out) + self.text(self.err)
        check(got == code, "%s: exit code %s\n%s", self.command[:3], got, self.said[-2000:])
        return self.said


class Screen:
    """The agent on a terminal of its own, with a prompt. For a `with`."""

    def __init__(self, command, world):
        self.model = world.model
        self.shown = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(world.folder)
                os.execvpe(command[0], command, world.env)
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 150, 0, 0))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        end = time.monotonic() + 10
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.02)
        self.reader.join(PATIENCE)
        os.close(self.fd)

    def read(self):
        with contextlib.suppress(OSError):
            while part := os.read(self.fd, 65536):
                self.shown += part

    def press(self, keys):
        os.write(self.fd, keys)

    def wait_shown(self, text):
        """Words are drawn with spaces that the terminal need not be sent."""
        wait_until(lambda: text in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\s", b"", self.shown),
                   "%r on the screen, not %r" % (text, self.shown[-2000:]), PATIENCE)

    def finish(self):
        wait_until(lambda: self.model.ended, "the end of the script", PATIENCE)


# ---- everything together ----


class World:
    """
    One agent, connected or not, with everything around it. For a `with`.

    seconds: how long a question waits for an answer, if not for as long as people need. No flag of
    koine connect says that, so it is put into the files by hand.

    Here the test is the person, and the agent is a process that it starts: so koined's own rule of who
    may decide is in force.
    """

    def __init__(self, agent, seconds=0):
        self.agent = agent
        self.seconds = seconds
        self.daemon = None
        self.sockets = []
        self.model = Model()

    def __enter__(self):
        # Not below /tmp: Codex keeps no helpers of its own there.
        self.home = tempfile.mkdtemp(prefix="agents-home-", dir=os.path.join(SOURCE, "build"))
        self.folder = os.path.join(self.home, "work")
        for name in ("bin", "tmp", "work"):
            os.mkdir(os.path.join(self.home, name))
        self.model.__enter__()
        try:
            daemon = Daemon("--set", "approval.agents_decide=no", *self.agent.settings(self),
                            **self.given())
            self.daemon = daemon.__enter__()
            self.settle_in()
        except BaseException:
            self.__exit__(Failure)
            raise
        return self

    def given(self):
        """The sockets of an agent whose port for MCP a service manager holds."""
        if not self.agent.port_is_held:
            return {}
        own, port = socket.socket(socket.AF_UNIX), socket.socket()
        own.bind(self("tmp", "koine.sock"))
        port.bind(("127.0.0.1", 0))
        self.sockets = [own, port]
        for one in self.sockets:
            one.listen(16)
        return handing_over(own, port, names="koine:mcp")

    def settle_in(self):
        self.env = {"HOME": self.home, "PATH": self("bin") + ":/usr/bin:/bin", "LANG": "C.UTF-8",
                    "TERM": "xterm-256color", "TMPDIR": self("tmp"), "NO_COLOR": "1",
                    "KOINE_SOCKET": self.daemon.socket_path, **self.agent.environment(self)}
        subprocess.run(["git", "init", "--quiet", self.folder], env=self.env, check=True)
        line = self.agent.program()
        self.write("bin/" + self.agent.name, '#!/bin/sh\nexec %s "$@"\n' % " ".join(line), 0o755)
        for name, text in self.agent.files(self).items():
            self.write(name, text)

    def __exit__(self, kind, *exc):
        try:
            left = self.end_processes()
            if self.daemon:
                self.daemon.__exit__(kind, *exc)
            self.model.__exit__(kind, *exc)
        finally:
            for one in self.sockets:
                one.close()
            shutil.rmtree(self.home, ignore_errors=True)
        if kind is None:
            check(not left, "processes are left: %s", left)
            check(not os.path.exists(self.home), "files are left in %s", self.home)

    def end_processes(self):
        """Ends what the agent has left behind; the names of those that did not go by themselves."""
        names = {}
        end = time.monotonic() + 10
        while of_home(self.home) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in of_home(self.home):
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    names[pid] = f.read().replace(b"\0", b" ").decode()[:200]
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        wait_until(lambda: not of_home(self.home), "the end of what the agent started")
        return names

    def __call__(self, *names):
        return os.path.join(self.home, *names)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self(name)), exist_ok=True)
        with open(self(name), "w", newline="", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self(name), mode)

    def read(self, name):
        """A file as text; None if there is none."""
        if not os.path.exists(self(name)):
            return None
        with open(self(name), newline="", encoding="utf-8") as f:
            return f.read()

    # -- what people do --

    def koine(self, *args):
        done = subprocess.run([KOINE, *args], env=self.env, cwd=self.folder, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=PATIENCE, text=True)
        same(done.returncode, 0, "exit code of %r (%r, %r)" % (args, done.stdout, done.stderr))
        return done.stdout

    def connect(self, *args):
        return self.koine("connect", self.agent.name, "--yes", *args)

    def run(self, *args):
        """The agent with these arguments, to its end; what it said."""
        with Run([self.agent.name, *args], self.env, self.folder) as r:
            return r.finish()

    def shell(self, line):
        with Run(["sh", "-c", line], self.env, self.folder) as r:
            return r.finish()

    def play(self, name):
        """A turn in which the model plays that script."""
        with self.agent.start(self, "Please play " + name) as run:
            run.finish()

    def ask_for_a_command(self):
        """Connects; the script "run" then makes a file, whose path is returned."""
        marker = os.path.join(self.folder, "marker")
        self.model.scripts["run"] = [self.agent.shell("touch " + marker), "Ran."]
        self.model.scripts["edit"] = [self.agent.edit(self(self.agent.edits)), "Edited."]
        self.agent.connect(self)
        return marker

    def question(self):
        """The one that waits for a human, once there is one."""
        [asked] = wait_until(lambda: json.loads(self.koine("approvals", "--json")),
                             "a question in the inbox", PATIENCE)
        return asked

    def ends(self):
        """What became of everything that was asked, oldest first."""
        asked = json.loads(self.koine("approvals", "--all", "--json"))
        return [a["status"] for a in sorted(asked, key=lambda a: a["created_at"])]

    def replace(self, names, old, new):
        """In those files of the home, by hand."""
        texts = {name: self.read(name) or "" for name in names}
        check(any(old in text for text in texts.values()), "there is no %r in %s", old, names)
        for name, text in texts.items():
            if old in text:
                self.write(name, text.replace(old, new))
