#!/usr/bin/env python3
"""
Programs as agents, well and badly behaved. None of them outlives its turn, nor what it
has started, nor the daemon's stop.
"""
import contextlib
import os
import signal
import sys

from harness import PATIENCE, Daemon, Folder, check, children, descriptors, main, same, wait_until
from nexus_client import Nexus, Stream, later, result
from provider import agent_flags


class Program:
    """A script in Python that a daemon runs as its agent; for a `with`."""

    def __init__(self, text, **keys):
        self.text = text
        self.keys = dict({"interrupt_time": 1, "terminate_time": 1}, **keys)

    def __enter__(self):
        self.folder = Folder().__enter__()
        self.path = self.folder("program.py")
        with open(self.path, "w") as out:
            out.write("import os, sys, signal, time, json, subprocess\n"
                      "mark = %r\n"
                      "def say(text):\n"
                      "    sys.stdout.write(text)\n"
                      "    sys.stdout.flush()\n"
                      "def tell(name):\n"
                      "    open(os.path.join(mark, name), 'w').close()\n" % self.folder.path +
                      self.text)
        return self

    def __exit__(self, *exc):
        self.folder.__exit__(*exc)

    def flags(self, **keys):
        words = "%s %s" % (sys.executable, self.path)
        if keys.pop("argument", True):
            words += " {prompt}"
        return ["--agent", "program", *agent_flags("program", kind="command", command=words,
                                                    **dict(self.keys, **keys))]

    def daemon(self, *args, announced=(), **keys):
        return Daemon(*self.flags(**keys), *args, announced=announced)

    def told(self, name):
        """Waits until the program has come to a place."""
        wait_until(lambda: os.path.exists(self.folder(name)), "the program to tell '%s'" % name)

    def running(self):
        """Pids of all that run this script."""
        out = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open("/proc/%s/cmdline" % name, "rb") as f:
                if self.path.encode() in f.read().split(b"\0")[:2]:
                    out.append(int(name))
        return out

    def check_gone(self):
        wait_until(lambda: self.running() == [], "processes to be gone: %r" % self.running())


def check_no_children(d):
    """Those it took in are reaped a moment after they are gone."""
    wait_until(lambda: children(d.pid) == [], "children to be reaped")


# ---- well behaved ----


def test_what_it_prints_is_the_answer():
    with Program("say('You said: ' + sys.argv[-1])\n") as program, program.daemon() as d:
        n = Nexus(d)
        for text in ("Hello", "two words", "$(reboot) `x` 'a' \"b\" ; | > é", "--help", "-"):
            check(n.says(text).rstrip("\n").endswith(text.rstrip()), "%r", text)
        program.check_gone()
        check_no_children(d)


def test_the_question_by_stdin():
    with Program("q = sys.stdin.read()\nsay('%d bytes, ' % len(q.encode()) + q[-5:])\n") as program:
        with program.daemon(input="stdin", argument=False) as d:
            n = Nexus(d)
            check(n.says("a question").endswith("stion"), "%r", n.said())
            answer = n.says("x" * 500000 + "the end")
            check(int(answer.split()[0]) > 500000 and answer.endswith("e end"), "%r", answer)


def test_text_streams_as_it_is_printed():
    with Program("say('one ')\ntell('one')\n"
                 "while not os.path.exists(os.path.join(mark, 'go')): time.sleep(0.005)\n"
                 "say('two')\n") as program, program.daemon() as d:
        with Stream(d, "Hi") as s:
            s.until("one ")
            program.told("one")
            with open(program.folder("go"), "w"):
                pass
            same(s.answer()["content"], "one two")


STREAM_JSON = r'''
def line(**o): say(json.dumps(o) + "\n")
line(type="system", subtype="init", session_id="s")
def says(*content): line(type="assistant", message={"role": "assistant", "content": content})
says({"type": "text", "text": "First. "})
say("not json at all\n")
says({"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
     {"type": "text", "text": "x" * 300000})
line(type="result", subtype="success", is_error=False, result="First. " + "x" * 300000,
     usage={"input_tokens": 11, "output_tokens": 22})
'''


def test_stream_json_lines():
    with Program(STREAM_JSON) as program, program.daemon(output="stream-json") as d:
        with Stream(d, "Hi") as s:
            r = s.answer()
        check("First. " in r["content"], "%.80r", r["content"])
        same(r["content"].count("x"), 300000, "of the long text")
        same((r["tokens"].get("input"), r["tokens"].get("output")), (11, 22))


def test_a_line_of_any_length():
    with Program("say('y' * 3000000)\n") as program, program.daemon() as d:
        same(len(Nexus(d).says("Hi")), 3000000, "length")


def test_it_runs_where_and_as_it_is_told():
    with Program("say(os.getcwd() + ' ' + str(os.getpgid(0) == os.getpid()) + ' ' +"
                 " str(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1]))\n") as program:
        with program.daemon(cwd=program.folder.path) as d:
            cwd, group, fds = Nexus(d).says("Hi").strip().split(" ", 2)
            same((cwd, group), (os.path.realpath(program.folder.path), "True"))
            same(fds, "[0, 1, 2]", "descriptors that it inherits")


# ---- badly behaved ----


def test_a_program_that_does_not_exist():
    with Daemon("--agent", "program", *agent_flags("program", kind="command",
                                                   command="/nowhere/no-such-program -p"),
                announced=["agent unavailable  agent=program "]) as d:
        n = Nexus(d)
        for _ in range(2):
            error = n.refused("send", {"content": "Hi"})
            same(error.code, -32603)
            check("no-such-program" in error.message, "%r", error.message)
        with Stream(d, "Hi", agent="recall") as s:
            s.answer()
        check_no_children(d)


def test_a_program_that_fails_tells_why():
    with Program("say('half ')\nsys.stderr.write('cannot find the model\\n')\nsys.exit(1)\n") \
            as program, program.daemon() as d:
        n = Nexus(d)
        error = n.refused("send", {"content": "Hi"})
        same(error.code, -32603)
        check("cannot find the model" in error.message, "%r", error.message)
        same(n.said(), [("user", "Hi"), ("assistant", "half ")], "kept")
    with Program("sys.stderr.write('z' * 5000000)\nsys.exit(1)\n") as program, \
            program.daemon() as d:
        error = Nexus(d).refused("send", {"content": "Hi"})
        check(len(error.message) < 10000, "%d letters of stderr", len(error.message))
    with Program("os.kill(os.getpid(), signal.SIGSEGV)\n") as program, program.daemon() as d:
        error = Nexus(d).refused("send", {"content": "Hi"})
        check("signal" in error.message.lower() or "SIG" in error.message, "%r", error.message)


def test_a_program_that_says_nothing():
    with Program("pass\n") as program, program.daemon() as d:
        n = Nexus(d)
        same(n.says("Hi"), "")
        same(n.said()[0], ("user", "Hi"))


def test_output_that_is_no_text():
    with Program("sys.stdout.buffer.write(b'a\\xff\\xfe\\x00b\\xc3')\n") as program, \
            program.daemon() as d:
        n = Nexus(d)
        content = n.says("Hi")
        check(content.startswith("a") and "b" in content, "%r", content)
        same(n.messages()[-1]["content"], content)


def test_output_without_end():
    with Program("while True: say('on and on ' * 10000)\n") as program, program.daemon() as d:
        with Stream(d, "Hi") as s:
            r = s.answer()
        same(r["stop"], "length")
        check(7 << 20 < len(r["content"]) <= 8 << 20, "%d bytes", len(r["content"]))
        program.check_gone()
        d.alive()


def test_a_program_that_takes_too_long():
    with Program("say('half ')\ntime.sleep(1000)\n") as program, \
            program.daemon(total_timeout=1) as d:
        n = Nexus(d)
        error = n.refused("send", {"content": "Hi"})
        check("second" in error.message or "time" in error.message.lower(), "%r", error.message)
        program.check_gone()
        same(n.said()[-1], ("assistant", "half "), "kept")


def cancelled(d, program, want="half "):
    """Cancels the turn once its first word is there; the words that were kept."""
    n = Nexus(d)
    with Stream(d, "Hi", request_id="r") as s:
        s.until("half ")
        program.told("ready")
        same(n.cancel("r")["cancelled"], True)
        r = s.answer()
    same(r["stop"], "cancelled")
    check(r["content"].startswith(want), "%r", r["content"])
    program.check_gone()
    check_no_children(d)
    return r["content"]


def test_cancel_interrupts():
    with Program("say('half ')\n"
                 "def stop(*a):\n    tell('interrupted')\n    sys.exit(0)\n"
                 "signal.signal(signal.SIGINT, stop)\ntell('ready')\n"
                 "while True: signal.pause()\n",
                 interrupt_time=60) as program, program.daemon() as d:
        cancelled(d, program)
        program.told("interrupted")


def test_cancel_kills_what_ignores_it():
    with Program("signal.signal(signal.SIGINT, signal.SIG_IGN)\nsay('half ')\ntell('ready')\n"
                 "time.sleep(1000)\n", interrupt_time=0) as program, program.daemon() as d:
        cancelled(d, program)
    with Program("for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
                 "say('half ')\ntell('ready')\ntime.sleep(1000)\n",
                 interrupt_time=0, terminate_time=0) as program, program.daemon() as d:
        cancelled(d, program)


GRANDCHILD = ("signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
              "if os.fork() == 0:\n"
              "    if os.fork() == 0:\n"
              "        tell('ready')\n"
              "        time.sleep(1000)\n"
              "    time.sleep(1000)\n")


def test_grandchildren_go_with_a_cancel():
    with Program(GRANDCHILD + "say('half ')\ntime.sleep(1000)\n", interrupt_time=0,
                 terminate_time=0) as program, program.daemon() as d:
        cancelled(d, program)


def test_grandchildren_that_keep_stdout_open_hold_nobody():
    with Program(GRANDCHILD + "while not os.path.exists(os.path.join(mark, 'ready')):"
                 " time.sleep(0.005)\nsay('done')\n",
                 interrupt_time=0, terminate_time=0) as program, program.daemon() as d:
        n = Nexus(d)
        same(n.says("Hi"), "done")
        program.check_gone()
        check_no_children(d)
        same(n.says("Hi again"), "done")
        program.check_gone()


def test_turns_leave_no_descriptor():
    with Program("say('ok')\n") as program, program.daemon() as d:
        n = Nexus(d)
        n.says("Hi")
        before = len(descriptors(d.pid))
        for _ in range(10):
            n.says("Hi")
        wait_until(lambda: len(descriptors(d.pid)) <= before, "descriptors to be closed")


# ---- the daemon's stop ----


def stops(program, how):
    # Turns have some time to end by themselves; here they would not.
    with program.daemon("--set", "limits.stop_time=3") as d:
        n = Nexus(d)
        sent = later(n.send, "Hi", "r")
        program.told("ready")
        wait_until(lambda: n.messages()[-1]["content"] == "half ", "the first word")
        if how == "shutdown":
            same(n.call("shutdown"), {"success": True})
        else:
            d.signal(signal.SIGTERM)
        r = result(sent)
        same((r["content"], r.get("cancelled")), ("half ", True))
        same(d.wait_exit(), 0, "exit status")
        same(program.running(), [], "processes that outlive the daemon")


def test_no_child_survives_an_orderly_stop():
    for how in ("SIGTERM", "shutdown"):
        with Program("say('half ')\ntell('ready')\ntime.sleep(1000)\n") as program:
            stops(program, how)


def test_no_stubborn_child_survives_an_orderly_stop():
    text = ("for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):"
            " signal.signal(s, signal.SIG_IGN)\n"
            "if os.fork() == 0:\n    time.sleep(1000)\n"
            "say('half ')\ntell('ready')\ntime.sleep(1000)\n")
    for how in ("SIGTERM", "shutdown"):
        with Program(text, interrupt_time=0, terminate_time=0) as program:
            stops(program, how)


def test_no_child_survives_whatever_time_it_would_have():
    with Program("for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
                 "if os.fork() == 0:\n    time.sleep(1000)\n"
                 "say('half ')\ntell('ready')\ntime.sleep(1000)\n",
                 interrupt_time=3600, terminate_time=3600) as program, Folder() as f:
        with Daemon(*program.flags(), "--set", "limits.stop_time=1", root=f.path) as d:
            n = Nexus(d)
            sent = later(n.send, "Hi")
            program.told("ready")
            wait_until(lambda: n.messages()[-1]["content"] == "half ", "the first word")
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
            same(program.running(), [], "processes that outlive the daemon")
            sent.exception(PATIENCE)
            # It may say that it could not wait for the program any longer.
            d.announced = [w for w in ("shutdown timed out",) if w.encode() in d.log()]
        with Daemon(*program.flags(), root=f.path) as d:
            same(Nexus(d).said(), [("user", "Hi"), ("assistant", "half ")], "kept")


if __name__ == "__main__":
    main(globals())
