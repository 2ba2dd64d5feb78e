"""What the parts of the bench share that need all cores and a real disk: memory,
chat, tasks and sessions.

Client and server run wherever the machine puts them. The store lies in the build folder;
sockets lie in the temporary folder, since their paths must be short.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile

from servers import Server


def file_system(folder):
    """What kind of file system a folder is on: the mount with the longest fitting path."""
    folder = os.path.realpath(folder)
    best, kind = "", "unknown"
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            left, _, right = line.partition(" - ")
            point = left.split()[4]
            fits = folder == point or folder.startswith(point.rstrip("/") + "/")
            if fits and len(point) >= len(best):
                best, kind = point, right.split()[0]
    return kind


def own_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return int(re.search(r"^Private_Dirty:\s+(\d+)", f.read(), re.M)[1])


class Part:
    """One part: `name` marks its rows; `steps` are what it goes through, in order."""

    name = None

    def __init__(self, bench, build, koined, prepare):
        self.bench = bench  # takes what is found, and what fails
        self.arguments = bench.arguments
        self.programs = os.path.join(build, "bench")
        self.koined = os.path.abspath(koined)
        self.prepare = prepare
        self.disk = tempfile.mkdtemp(prefix=self.name + "-", dir=os.path.abspath(self.programs))
        self.rounds = 1 if self.arguments.quick else 3

    def steps(self):
        raise NotImplementedError

    def run(self):
        try:
            for step in self.steps():
                try:
                    step()
                except (RuntimeError, OSError) as error:
                    self.bench.fail(f"{self.name}: {error}")
                for server in list(self.bench.servers):
                    self.bench.stop(server)
        finally:
            shutil.rmtree(self.disk, ignore_errors=True)

    def record(self, row, column, round_, **found):
        self.bench.record({"part": self.name, "row": row, "column": column, "round": round_,
                           **found})

    def program(self, name, *arguments):
        done = subprocess.run([os.path.join(self.programs, name), *map(str, arguments)],
                              capture_output=True, text=True, preexec_fn=self.prepare)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip()}")
        return done.stdout

    def built(self, name):
        """The path of something in the build folder, if it is there."""
        path = os.path.join(os.path.dirname(os.path.abspath(self.programs)), name)
        return path if os.path.exists(path) else None

    def measure(self, name, *arguments):
        """What a program says in its one line of JSON."""
        return json.loads(self.program(name, *arguments))

    def measure_sync(self):
        """What one small write costs on this disk, now."""
        found = self.measure("sync", os.path.join(self.disk, "sync"), 0.3)
        return {"file_system": file_system(self.disk), **found}

    def start(self, server, folder):
        self.bench.servers.append(server)
        server.start(folder, self.prepare)
        return server

    def sockets(self, name):
        folder = os.path.join(self.bench.folder, f"{self.name[0]}-{name}")
        os.makedirs(folder, exist_ok=True)
        return folder

    def start_koined(self, name, dialects, *arguments, env=None):
        """A daemon over the store of that name, as it was left if it was there before."""
        data = os.path.join(self.disk, name)
        sockets = self.sockets(name)
        os.makedirs(data, exist_ok=True)
        channels = {d: (f"unix:{sockets}/{d}.sock", []) for d in dialects}
        listen = [x for d, (address, _) in channels.items() for x in ("--listen", f"{d}={address}")]
        argv = [self.koined, "--root", data, *listen, *arguments]
        return self.start(Server("koined", argv, channels, env), data)
