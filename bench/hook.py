"""The rows of hooks: the whole cost of `koine hook` to the agent that starts it, from its start to
its end, when a policy of koined answers. Beside it a hook in Python that reads its input and does
nothing, and a program that does nothing at all, in turn in one run.
"""

import json
import os
import shutil
import sys
import time

from part import Part

STARTS = 200  # of each, in one round
INPUT = json.dumps({"session_id": "bench", "transcript_path": "/tmp/t", "cwd": "/tmp",
                    "permission_mode": "default", "hook_event_name": "PreToolUse",
                    "tool_name": "Bash", "tool_use_id": "t1",
                    "tool_input": {"command": "git status", "description": "looks"}}).encode()
PYTHON = "import sys; sys.stdin.buffer.read()"
POLICY = ("--set", "policy.bench.verdict=allow", "--set", "policy.bench.tool=Bash")


def percentiles(times):
    times = sorted(times)
    return {"p50_ns": times[len(times) // 2], "p99_ns": times[len(times) * 99 // 100]}


def read_all(fd):
    out = b""
    while part := os.read(fd, 65536):
        out += part
    return out


def run_once(argv, env):
    """Starts it as an agent does, and waits for its end: the time, and what it has printed."""
    given, to_child = os.pipe()
    from_child, printed = os.pipe()
    os.write(to_child, INPUT)
    os.close(to_child)
    actions = [(os.POSIX_SPAWN_DUP2, given, 0), (os.POSIX_SPAWN_DUP2, printed, 1)]
    began = time.perf_counter_ns()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
    os.close(printed)
    out = read_all(from_child)
    status = os.waitpid(pid, 0)[1]
    took = time.perf_counter_ns() - began
    os.close(given)
    os.close(from_child)
    if status != 0:
        raise RuntimeError(f"{argv[0]} has ended with {status}")
    return took, out


class HookBench(Part):
    name = "hook"

    def steps(self):
        return (self.run_all,)

    def run_all(self):
        server = self.start_koined("store", ("koine",), *POLICY)
        path = server.channels["koine"][0][len("unix:"):]
        koine = os.path.join(os.path.dirname(self.koined), "koine")
        hooks = {"koine": [koine, "hook", "--socket", path],
                 "python": [sys.executable, "-c", PYTHON], "nothing": [shutil.which("true")]}
        for round_ in range(self.rounds):
            print("hook", file=sys.stderr)
            self.measure_round(hooks, round_)

    def measure_round(self, hooks, round_):
        """In turn, so that what else the machine does meets all of them."""
        env = {"PATH": os.environ["PATH"], "HOME": self.disk}
        took = {column: [] for column in hooks}
        for _ in range(STARTS):
            for column, argv in hooks.items():
                ns, out = run_once(argv, env)
                took[column].append(ns)
                if column == "koine" and b'"permissionDecision":"allow"' not in out:
                    raise RuntimeError(f"koine hook has answered {out!r}")
        for column, times in took.items():
            self.record("answer", column, round_, **percentiles(times))
