"""The rows of completion: what a person waits for at a Tab. A bash that runs already is told a line, and
asks koine what its last word may become, as dist/completions has it; in turn with it starts a
program that does nothing. The daemon has 1,000 tasks and 1,000 memories.
"""

import os
import shutil
import socket
import subprocess
import sys
import time

from hook import percentiles, run_once
from part import Part

TABS = 100  # of each, in one round
FILLED = 1000
LINES = {"commands": "koine ", "options": "koine task add --", "tasks": "koine task show ",
         "memories": "koine memory show ", "methods": "koine call "}
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dist", "completions",
                      "koine.bash")
BASH = """
source "$1"
compopt() { :; }
while IFS= read -r COMP_LINE; do
	read -ra COMP_WORDS <<<"$COMP_LINE"
	[[ $COMP_LINE != *' ' ]] || COMP_WORDS+=("")
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_POINT=${#COMP_LINE} COMP_TYPE=63
	COMPREPLY=()
	_koine
	echo "${#COMPREPLY[@]}"
done
"""


def fill(path):
    """Everything at once, then as many answers."""
    requests = "".join(
        '{"jsonrpc":"2.0","id":1,"method":"task.add","params":{"prompt":"fix number %d of the tests","delay":'
        '86400}}\n{"jsonrpc":"2.0","id":2,"method":"memory.add","params":{"content":"number %d is in Oslo"}}\n'
        % (i, i) for i in range(FILLED))
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(requests.encode())
        with s.makefile("rb") as answers:
            for _ in range(2 * FILLED):
                line = answers.readline()
                if b'"result"' not in line:
                    raise RuntimeError(f"koined has answered {line!r}")


class CompleteBench(Part):
    name = "complete"

    def steps(self):
        return (self.run_all,)

    def run_all(self):
        server = self.start_koined("store", ("koine",))
        path = server.channels["koine"][0][len("unix:"):]
        fill(path)
        env = {"PATH": os.path.dirname(self.koined) + os.pathsep + os.environ["PATH"],
               "HOME": self.disk, "KOINE_SOCKET": path, "LC_ALL": "C.UTF-8"}
        with subprocess.Popen(["bash", "--norc", "-c", BASH, "bash", SCRIPT], env=env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bash:
            for round_ in range(self.rounds):
                print("complete", file=sys.stderr)
                self.measure_round(bash, env, round_)

    def measure_round(self, bash, env, round_):
        """In turn, so that what else the machine does meets all of them."""
        took = {row: [] for row in LINES}
        nothing = []
        for _ in range(TABS):
            for row, line in LINES.items():
                began = time.perf_counter_ns()
                print(line, file=bash.stdin, flush=True)
                n = int(bash.stdout.readline())
                took[row].append(time.perf_counter_ns() - began)
                if n < 10:
                    raise RuntimeError(f"{line!r} has {n} candidates")
            nothing.append(run_once([shutil.which("true")], env)[0])
        for row, times in took.items():
            self.record(row, "bash", round_, **percentiles(times))
            self.record(row, "nothing", round_, **percentiles(nothing))
