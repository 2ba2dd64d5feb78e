#!/usr/bin/env python3
"""
A stand-in for claude in sessions: a program that takes its flags, prints stream-json as it does,
and does what its query says.

    koined --set session.program="python3 test/system/session_agent.py"
    session.launch {"query": "say Hi\nask Bash {\"command\": \"ls\"}\nsay Done"}

The query is what follows "--", or standard input if the last flag is --print. It prints an init
line, then does each line of the query in turn, then prints a result and exits with 0. A query
whose first word is no step is answered "You said: QUERY". SIGINT ends it with 130, as claude.

    say TEXT              an assistant's text
    think TEXT            what it thinks
    lines N [BYTES]       N texts, "line 1" to "line N", filled up to BYTES
    call TOOL [JSON]      a call, with that input; its id is toolu_1, toolu_2 …
    result TEXT           the result of the last call; fail TEXT: a bad one
    blocks JSON           the same, its content an array of blocks
    ask TOOL [JSON]       a call that a human must allow: waits, then prints its result
    question TEXT         asks a human (koine's socket only), and says the answer
    via hld PATH          how to ask: hld's socket (createApproval, getApproval)
    via koine PATH        koine's (approval.request); the default, at KOINE_SOCKET
    via hook COMMAND…     claude's PreToolUse hook
    tell argv|cwd|stdin   an assistant's text, in JSON
    tell env NAME         a variable, null if there is none
    tell mcp              what is in the file of --mcp-config
    raw TEXT              a line as it is
    half TEXT             the same without its end
    hex DIGITS            bytes as they are, without a line's end
    junk N                N bytes without a line's end
    err TEXT              a line on stderr
    touch PATH            makes a file: it has come so far
    wait PATH             until a file is there
    ignore INT TERM…      signals
    fork N [stubborn]     children, with its stdout, that do nothing; stubborn ones leave the
                          process group and ignore SIGINT and SIGTERM. Says their pids
    hang                  does nothing any more
    kill NAME             sends itself a signal
    end [JSON]            the result now; JSON are members in place of its own
    exit [N]              ends at once, without a result

As the first line, `bare` leaves out init and result, and `session ID` sets the id that it tells
(without: a fresh one, also when it resumes). Whatever waits gives up after two minutes.
"""
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid

PATIENCE_S = 120


def write(data):
    sys.stdout.buffer.write(data)


def give_up(what):
    sys.stderr.write("session_agent: %s\n" % what)
    sys.stdout.flush()
    os._exit(75)


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            give_up("waited in vain for " + what)
        time.sleep(0.01)


class Socket:
    """Requests and answers, a line each."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def call(self, method, params):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.lines.readline() or give_up("the daemon has hung up"))
        if "error" in answer:
            give_up("%s: %s" % (method, answer["error"]["message"]))
        return answer["result"]


def ask_koine(path, tool, tool_input, tool_use_id, session, kind="function_call"):
    params = {"tool": tool, "input": tool_input, "tool_use_id": tool_use_id, "kind": kind,
              "session_id": os.environ.get("KOINE_SESSION_ID", session), "agent": "claude"}
    if "KOINE_RUN_ID" in os.environ:
        params["run_id"] = os.environ["KOINE_RUN_ID"]
    return Socket(path).call("approval.request", {k: v for k, v in params.items() if v is not None})


def ask_hld(path, tool, tool_input, tool_use_id, _session):
    s = Socket(path)
    made = s.call("createApproval", {"run_id": os.environ["HUMANLAYER_RUN_ID"], "tool_name": tool,
                                     "tool_input": tool_input, "tool_use_id": tool_use_id})

    def decided():
        a = s.call("getApproval", {"approval_id": made["approval_id"]})["approval"]
        return a if a["status"] != "pending" else None

    return wait_until(decided, "a decision")


def ask_hook(command, tool, tool_input, tool_use_id, session):
    about = {"session_id": session, "cwd": os.getcwd(), "hook_event_name": "PreToolUse",
             "tool_name": tool, "tool_input": tool_input, "tool_use_id": tool_use_id}
    done = subprocess.run(shlex.split(command), input=json.dumps(about).encode(),
                          stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True)
    said = json.loads(done.stdout)["hookSpecificOutput"] if done.stdout.strip() else {}
    word = {"allow": "approved", "deny": "denied"}.get(said.get("permissionDecision"), "ask")
    return {"status": word, "comment": said.get("permissionDecisionReason")}


ASK = {"koine": ask_koine, "hld": ask_hld, "hook": ask_hook}


def child(stubborn):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(PATIENCE_S)
    signal.signal(signal.SIGINT, signal.SIG_IGN if stubborn else signal.SIG_DFL)
    if stubborn:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


class Agent:
    def __init__(self, argv):
        self.argv = argv
        self.stdin = None
        if "--" in argv:
            query = argv[argv.index("--") + 1]
        else:
            query = self.stdin = sys.stdin.buffer.read().decode()
        self.steps = [line.strip() for line in query.splitlines() if line.strip()]
        self.session = str(uuid.uuid4())
        self.via = ("koine", os.environ.get("KOINE_SOCKET", ""))
        self.n_calls = 0
        self.said = ""
        self.bare = False
        if not self.steps or not hasattr(self, "do_" + self.steps[0].split(" ")[0]):
            self.steps = []
            self.said = "You said: " + query

    # ---- lines ----

    def line(self, **members):
        members.setdefault("session_id", self.session)
        write(json.dumps(members).encode() + b"\n")

    def message(self, kind, block):
        about = {"type": "message", "role": kind, "content": [block]}
        if kind == "assistant":
            about.update(id="msg_%d" % os.getpid(), model=self.model())
        self.line(type=kind, message=about, parent_tool_use_id=None)

    def text(self, text):
        self.said = text
        self.message("assistant", {"type": "text", "text": text})

    def result(self, content, failed=False):
        self.message("user", {"type": "tool_result", "tool_use_id": "toolu_%d" % self.n_calls,
                              "content": content, "is_error": failed})

    def model(self):
        flags = self.argv
        return flags[flags.index("--model") + 1] if "--model" in flags else "claude-stand-in"

    def mcp_config(self):
        with open(self.argv[self.argv.index("--mcp-config") + 1], encoding="utf-8") as file:
            return json.load(file)

    def run(self):
        for first in ("session", "bare"):
            if self.steps and self.steps[0].split(" ")[0] == first:
                self.do(self.steps.pop(0))
        if not self.bare:
            self.line(type="system", subtype="init", cwd=os.getcwd(), tools=["Bash", "Edit"],
                      mcp_servers=[], model=self.model(), permissionMode="default",
                      apiKeySource="none")
        if self.said:
            self.text(self.said)
        for step in self.steps:
            self.do(step)
        if not self.bare:
            self.do_end("")
        sys.stdout.flush()

    def do(self, step):
        word, _, rest = step.partition(" ")
        getattr(self, "do_" + word, lambda _: give_up("no step '%s'" % word))(rest.strip())
        sys.stdout.flush()

    # ---- steps ----

    def do_session(self, rest):
        self.session = rest

    def do_bare(self, _):
        self.bare = True

    def do_say(self, rest):
        self.text(rest)

    def do_think(self, rest):
        self.message("assistant", {"type": "thinking", "thinking": rest, "signature": "x"})

    def do_lines(self, rest):
        n, size = (rest.split() + ["0"])[:2]
        for i in range(1, int(n) + 1):
            self.text(("line %d" % i).ljust(int(size), "."))

    def do_call(self, rest):
        tool, _, given = rest.partition(" ")
        self.n_calls += 1
        self.message("assistant", {"type": "tool_use", "id": "toolu_%d" % self.n_calls,
                                   "name": tool, "input": json.loads(given or "{}")})

    def do_result(self, rest):
        self.result(rest)

    def do_fail(self, rest):
        self.result(rest, failed=True)

    def do_blocks(self, rest):
        self.result(json.loads(rest))

    def do_via(self, rest):
        self.via = tuple(rest.split(" ", 1))

    def do_ask(self, rest):
        self.do_call(rest)
        sys.stdout.flush()
        tool, _, given = rest.partition(" ")
        way, place = self.via
        end = ASK[way](place, tool, json.loads(given or "{}"), "toolu_%d" % self.n_calls,
                       self.session)
        text = end["status"] + (": " + end["comment"] if end.get("comment") else "")
        self.result(text, failed=end["status"] != "approved")

    def do_question(self, rest):
        end = ask_koine(self.via[1], "question", {"msg": rest}, None, self.session,
                        kind="human_contact")
        self.text("%s: %s" % (end["status"], end.get("comment") or ""))

    def do_tell(self, rest):
        what, _, name = rest.partition(" ")
        told = {"argv": lambda: self.argv, "mcp": self.mcp_config, "cwd": os.getcwd,
                "env": lambda: os.environ.get(name),
                "stdin": lambda: sys.stdin.read() if self.stdin is None else self.stdin}
        self.text(json.dumps(told[what]()))

    def do_raw(self, rest):
        write(rest.encode() + b"\n")

    def do_half(self, rest):
        write(rest.encode())

    def do_hex(self, rest):
        write(bytes.fromhex(rest))

    def do_junk(self, rest):
        left = int(rest)
        while left > 0:
            write(b"x" * min(left, 1 << 16))
            left -= 1 << 16

    def do_err(self, rest):
        sys.stderr.write(rest + "\n")
        sys.stderr.flush()

    def do_touch(self, rest):
        with open(rest, "w"):
            pass

    def do_wait(self, rest):
        wait_until(lambda: os.path.exists(rest), rest)

    def do_ignore(self, rest):
        for name in rest.split():
            signal.signal(getattr(signal, "SIG" + name), signal.SIG_IGN)

    def do_fork(self, rest):
        n, _, how = rest.partition(" ")
        pids = [child(how == "stubborn") for _ in range(int(n))]
        self.text(" ".join(map(str, pids)))

    def do_hang(self, _):
        wait_until(lambda: False, "the end")

    def do_kill(self, rest):
        os.kill(os.getpid(), getattr(signal, "SIG" + rest))

    def do_end(self, rest):
        members = {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1200,
                   "duration_api_ms": 1000, "num_turns": self.n_calls + 1, "result": self.said,
                   "total_cost_usd": 0.05, "usage": {"input_tokens": 10, "output_tokens": 20}}
        self.line(**dict(members, **json.loads(rest or "{}")))
        self.bare = True

    def do_exit(self, rest):
        sys.stdout.flush()
        os._exit(int(rest or "0"))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    Agent(sys.argv[1:]).run()
