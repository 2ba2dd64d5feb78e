"""
A folder whose claude is a shell, daemons in it, and a look at the processes they leave.

`claude -p [--agent NAME] -- PROMPT` runs PROMPT in /bin/sh, in the project's folder; without a
PROMPT it keeps its standard input in the file $KEEP names. $WORLD is the folder.
"""
import contextlib
import os

from harness import Daemon, Folder, check, same, wait_until
from test_aiwg import connect

CLAUDE = """#!/bin/sh
[ "$1" = -p ] || exit 99
shift
if [ "$1" = --agent ]; then
	AGENT=$2
	shift 2
fi
export AGENT
if [ $# = 0 ]; then
	exec cat >"$WORLD/input"
fi
[ "$1" = -- ] || exit 98
exec /bin/sh -c "$2"
"""

# A prompt that ends when the file is there, however long that takes.
UNTIL = 'while [ ! -e "$WORLD/%s" ]; do sleep 0.02; done'


def read_bytes(path):
    with contextlib.suppress(OSError), open(path, "rb") as f:
        return f.read()
    return b""


def dead(pid):
    return read_bytes("/proc/%d/stat" % pid).rpartition(b")")[2].split()[:1] in ([], [b"Z"], [b"X"])


class World(Folder):
    def __enter__(self):
        super().__enter__()
        self.path = os.path.realpath(self.path)
        os.mkdir(self("bin"))
        self.program("claude", CLAUDE)
        os.mkdir(self("root"))
        return self

    def __exit__(self, *exc):
        try:
            if exc[0] is None:
                same(self.processes(), {}, "processes that are left")
        finally:
            super().__exit__(*exc)

    def program(self, name, text):
        with open(self("bin", name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self("bin", name), 0o755)
        return self("bin", name)

    def touch(self, *names):
        with open(self(*names), "w", encoding="utf-8"):
            pass
        return self(*names)

    def read(self, *names):
        return read_bytes(self(*names)).decode(errors="replace")

    def env(self, **more):
        return {"PATH": self("bin") + ":" + os.environ["PATH"], "WORLD": self.path, **more}

    def daemon(self, *args, env=None, **opts):
        settings = [a for a in args if "=" in a and not a.startswith("-")]
        rest = [a for a in args if a not in settings]
        for setting in settings:
            rest += ["--set", setting]
        return Daemon(*rest, root=self("root"), env=self.env(**(env or {})), **opts)

    def processes(self, also=b"\0"):
        """Of this world, and not ours: by their arguments, environment or folder. Pid to arguments."""
        mark, found = self.path.encode(), {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            if pid == os.getpid() or dead(pid):
                continue
            words = read_bytes("/proc/%d/cmdline" % pid)
            environ = b"\0" + read_bytes("/proc/%d/environ" % pid)
            folder = b""
            with contextlib.suppress(OSError):
                folder = os.readlink(b"/proc/%d/cwd" % pid)
            if also in environ + words and mark in words + environ + folder and not dead(pid):
                found[pid] = words.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def agents(self, d):
        """Those that run for a task."""
        return {pid: words for pid, words in self.processes().items() if pid != d.pid}


@contextlib.contextmanager
def world(*args, **opts):
    """A daemon in a world, and a client of its project: (world, daemon, client)."""
    with World() as w, w.daemon(*args, **opts) as d:
        yield w, d, connect(d)


def state(c, task):
    return c.call("task.get", {"taskId": task})["state"]


def until(c, task, wanted):
    wait_until(lambda: state(c, task) == wanted, "%s to be %s" % (task, wanted))


def add(k, prompt, **params):
    """On koine's socket."""
    return k.call("task.add", {"prompt": prompt, **params})["id"]


def end(k, task, **params):
    """When it has."""
    return k.call("task.wait", {"id": task, **params})


def says(w, *names):
    """Waits for a file of the world that has a line, and reads it."""
    text = wait_until(lambda: next((t for t in [w.read(*names)] if t.endswith("\n")), None),
                      "a line in %s" % "/".join(names))
    check(text, "nothing in it")
    return text
