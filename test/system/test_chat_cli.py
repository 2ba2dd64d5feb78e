#!/usr/bin/env python3
"""
koine chat, send, cancel, tokens, agents, conversations and messages: on a terminal, in a
pipe, against a real koined; and against a scripted server for what a real one does not do.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import termios
import threading
import time

from harness import (KOINE, PATIENCE, SANITIZER, Client, Daemon, Failure, Folder, Skip, check, clean_environment,
                     main, missing, same, wait_until)

STATIC = os.environ.get("KOINE_STATIC") or os.path.join(os.path.dirname(KOINE), "koine-static")
SLOW = ("--set", "agent.recall.word_delay=100")
INTRO = "I am koine's offline responder"


def environment(**changes):
    env = {k: v for k, v in clean_environment().items()
           if k not in ("COLUMNS", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE")}
    env.update({"TERM": "xterm", "TZ": "UTC", "HOME": "/dev/null", "NO_COLOR": "1"})
    env.update(changes)
    return env


def of(daemon, **changes):
    return environment(KOINE_SOCKET=os.path.join(daemon.root, "koine.sock"), **changes)


class Done:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out.decode()
        self.err = err.decode()
        check(not SANITIZER.search(err), "sanitizer report: %s", self.err[:2000])


def koine(env, *args, stdin=b"", code=0, program=KOINE):
    done = subprocess.run([program, *args], input=stdin, capture_output=True, timeout=PATIENCE,
                          env=env)
    result = Done(done.returncode, done.stdout, done.stderr)
    same(result.code, code, "exit code of %r (%r, %r)" % (args, result.out, result.err))
    return result


class Running:
    """koine with pipes, while it runs."""

    def __init__(self, env, *args):
        self.process = subprocess.Popen([KOINE, *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.out = b""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdin, self.process.stdout, self.process.stderr):
            f.close()

    def expect(self, text):
        end = time.monotonic() + PATIENCE
        fd = self.process.stdout.fileno()
        while text.encode() not in self.out:
            left = end - time.monotonic()
            check(left > 0 and select.select([fd], [], [], left)[0], "no %r in %r", text, self.out)
            part = os.read(fd, 65536)
            check(part, "it ended before %r: %r", text, self.out)
            self.out += part

    def finish(self):
        out, err = self.process.communicate(timeout=PATIENCE)
        return Done(self.process.returncode, self.out + out, err)


class Terminal:
    """koine on a terminal of its own, as its controlling one, so that Ctrl-C is a signal."""

    def __init__(self, env, *args, columns=200, program=KOINE):
        pid, fd = pty.fork()
        if pid == 0:
            try:
                os.execve(program, [program, *args], env)
            finally:
                os._exit(127)
        self.pid = pid
        self.fd = fd
        self.got = b""
        self.all = b""
        self.status = None
        self.rows, self.columns = 24, columns
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def more(self, end):
        left = end - time.monotonic()
        if left <= 0 or not select.select([self.fd], [], [], left)[0]:
            raise Failure("nothing comes any more; so far %r" % self.all[-2000:])
        try:
            part = os.read(self.fd, 65536)
        except OSError:  # EIO: the other side is closed
            part = b""
        self.got += part
        self.all += part
        return part

    def expect(self, text):
        """Waits for it, and forgets all up to its end."""
        end = time.monotonic() + PATIENCE
        text = text.encode()
        while text not in self.got:
            check(self.more(end), "it ended before %r: %r", text, self.all[-2000:])
        before, _, self.got = self.got.partition(text)
        return before.decode(errors="replace")

    def type(self, text):
        os.write(self.fd, text.encode())

    def line(self, text):
        self.type(text + "\r")
        self.expect(text)

    def prompt(self, mark="> "):
        return self.expect(mark)

    def leave(self, code=0):
        end = time.monotonic() + PATIENCE
        while self.more(end):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        check(not SANITIZER.search(self.all), "sanitizer report: %r", self.all[-3000:])
        same(self.status, code, "exit code (%r)" % self.all[-2000:])
        return self.got.decode(errors="replace")


def messages(env, *name):
    return json.loads(koine(env, "messages", *name, "--json").out)


# ---- send ----


def test_send_prints_the_answer():
    with Daemon() as d:
        env = of(d)
        check(koine(env, "send", "My name is Alice.").out.startswith(INTRO), "an introduction")
        done = koine(env, "send", "What", "is", "my", "name?")
        check("Alice" in done.out and done.out.endswith("\n"), "%r", done.out)
        same(done.err, "", "stderr")
        same(done.out, koine(env, "send", "-", "--no-stream", stdin=b"What is my name?").out,
             "from stdin, without a stream")
        result = json.loads(koine(env, "send", "What is my name?", "--json", "-r", "r1").out)
        same((result["request_id"], result["conversation"], result["stop"]),
             ("r1", "default", "end"), "result")
        same(result["content"] + "\n", done.out, "content")
        check("cancelled" not in result, "%r", result)


def test_lists_of_conversations_say_what_their_limit_hides():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        for ended in (), ("--ended",):
            for name in "one", "two", "three":
                koine(env, "send", "-c", name, "hello")
                if ended:
                    c.call("destroy_agent", {"agent_id": name})
            # The default one is never ended.
            for n, said in ("2", "showing the first 2 (-n N for more)\n"), ("3" if ended else "4", ""):
                done = koine(env, "conversations", *ended, "-n", n)
                same((done.out.count("\n") - 1, done.err), (int(n), said), "%s %s" % (n, ended))


def test_ended_conversations_are_shown_and_purged():
    with Daemon() as d, d.connect() as c:
        env = of(d)
        koine(env, "send", "-c", "one", "My name is Alice.")
        c.call("destroy_agent", {"agent_id": "one"})
        lines = koine(env, "conversations", "--ended").out.splitlines()
        same(lines[0].split(), ["NUMBER", "MESSAGES", "AGENT", "ENDED", "NAME"], "titles")
        number = lines[1].split()[0]
        same((lines[1].split()[1], lines[1].split()[-1], len(lines)), ("2", "one", 2), "row")
        check("My name is Alice." in koine(env, "messages", "--ended", number).out, "messages")
        check("ended conversation not found: 99" in
              koine(env, "messages", "--ended", "99", code=1).err, "another")
        for wrong in ("delete",), ("delete", "x"), ("delete", number, "--all"), ("other",):
            koine(env, "conversation", *wrong, code=64)
        koine(env, "messages", "one", "--ended", number, code=64)
        same(koine(env, "conversation", "delete", number).out, "1 conversation deleted\n")
        same(koine(env, "conversation", "delete", "--all").out, "0 conversations deleted\n")
        same(len(koine(env, "conversations", "--ended").out.splitlines()), 1, "lines")


def test_conversations_are_apart():
    with Daemon() as d:
        env = of(d)
        koine(env, "send", "-c", "one", "My name is Alice.")
        koine(env, "send", "--conversation", "two", "My name is Bob.")
        check("Alice" in koine(env, "send", "-c", "one", "What is my name?").out, "one")
        check("Bob" in koine(env, "send", "-c", "two", "What is my name?").out, "two")
        lines = koine(env, "conversations").out.splitlines()
        same(lines[0].split(), ["MESSAGES", "AGENT", "CHANGED", "NAME"], "titles")
        same([line.split()[-1] for line in lines[1:]], ["two", "one", "default"],
             "the last changed first")
        same(len(koine(env, "conversations", "-n", "1").out.splitlines()), 2, "lines")
        shown = koine(env, "messages", "two").out
        check(re.search(r"(?m)^user, \d{4}-\d\d-\d\d \d\d:\d\d\nMy name is Bob\.\n\nassistant, ",
                        shown), "%r", shown)
        last = koine(env, "messages", "-c", "two", "-n", "1").out
        check(last.startswith("assistant, ") and last.count("assistant, ") == 1, "%r", last)
        same(koine(env, "messages").out, "", "the default one, where nothing was said")
        same(json.loads(koine(env, "messages", "--json").out), [], "the same as JSON")


def test_send_streams_and_an_interrupt_keeps_what_came():
    with Daemon(*SLOW) as d:
        env = of(d)
        with Running(env, "send", "hello there") as k:
            k.expect("koine's offline")
            k.process.send_signal(signal.SIGINT)
            done = k.finish()
        same(done.code, 130, "exit code (%r)" % done.err)
        same(done.err, "(cancelled)\n", "stderr")
        check("koine's offline" in done.out and "koine.conf(5)" not in done.out, "%r", done.out)
        kept = messages(env)[-1]
        same((kept["role"], kept["state"]), ("assistant", "cancelled"), "what is kept")
        same(kept["content"], done.out[:-1], "its text")
        check(", cancelled\n" in koine(env, "messages").out, "no mark")


def test_an_interrupted_json_is_whole():
    with Daemon(*SLOW) as d:
        env = of(d)
        with Running(env, "send", "hello there", "--json", "-r", "mine") as k:
            wait_until(lambda: "running" in [m["state"] for m in messages(env)], "the turn")
            k.process.send_signal(signal.SIGINT)
            done = k.finish()
        same(done.code, 130, "exit code (%r)" % done.err)
        result = json.loads(done.out)
        same((result["cancelled"], result["stop"], result["request_id"]),
             (True, "cancelled", "mine"), "result")


def test_cancel_from_elsewhere():
    with Daemon(*SLOW) as d:
        env = of(d)
        for id in ("story", "42"):
            with Running(env, "send", "-r", id, "-c", "c-" + id, "hello there") as k:
                k.expect("I am")
                same(koine(env, "cancel", id).out, "Cancelled: %s\n" % id, "cancel")
                same(k.finish().code, 130, "exit code")
        done = koine(env, "cancel", "story", code=1)
        same((done.out, done.err), ("", "koine: no such request in progress: story\n"), "twice")
        same(json.loads(koine(env, "cancel", "x", "--json", code=1).out)["cancelled"], False, "json")
        # An id that was sent as a number is found by its digits.
        with Client(d.address()) as c:
            c.send(b'{"jsonrpc":"2.0","method":"chat.stream","params":{"content":"hi","request_id":'
                   b'77,"conversation":"n"},"id":5}\n')
            wait_until(lambda: koine_ok(env, "cancel", "77"), "the turn")


def koine_ok(env, *args):
    return subprocess.run([KOINE, *args], capture_output=True, env=env,
                          timeout=PATIENCE).returncode == 0


def test_over_http_it_comes_whole_and_can_be_cancelled():
    with Daemon(*SLOW) as d:
        env = of(d)
        same(koine(env, "send", "hi", "-c", "x", "--framing", "http").out.startswith("I am"), True,
             "answer")
        with Running(env, "send", "hello there", "--framing", "http") as k:
            wait_until(lambda: "running" in [m["state"] for m in messages(env)], "the turn")
            k.process.send_signal(signal.SIGINT)
            same(k.finish().code, 130, "exit code")
        same(messages(env)[-1]["state"], "cancelled", "state")


def test_the_port_of_nexus_will_do():
    with Daemon() as d:
        port = dict(d.addresses).get("nexus")
        check(port, "nexus does not listen: %r", d.addresses)
        url = ("--url", "http://" + port[len("http:"):])
        env = environment()
        koine(env, "send", "My name is Alice.", *url)
        check("Alice" in koine(env, "send", "What is my name?", *url).out, "no Alice")
        check("total" in koine(env, "tokens", *url).out, "tokens")
        check("Alice" in koine(env, "messages", *url).out, "messages")
        base = url[1]
        for args, words in [
                (("send", "hi", "-c", "other"), "one conversation per URL; for another "
                                                "conversation, use --url %s/agent/NAME\n" % base),
                (("send", "hi", "-a", "recall"), "does not support --agent\n"),
                (("agents",), "cannot list agents"),
                (("tokens", "-c", "nope"), "koine: conversation not found: 'nope'\n")]:
            done = koine(env, *args, *url, code=1)
            check(words in done.err, "%r: %r", args, done.err)
        done = koine(env, "send", "hi", "--url", base + "/agent/nope", code=1)
        same(done.err, "koine: no conversation exists at this URL yet\n", "stderr")
        koine(env, "send", "hi", "--url", base + "/agent/default")


def test_a_chat_with_the_port_of_nexus_keeps_its_conversation():
    with Daemon() as d:
        port = dict(d.addresses)["nexus"]
        with Terminal(environment(), "chat", "--url", "http://" + port[len("http:"):]) as t:
            t.prompt()
            # Before anything was asked it cannot know.
            t.line("/new side")
            t.prompt("side> ")
            t.line("hello")
            t.expect("has one conversation")
            t.prompt()
            t.line("hello")
            t.expect("koine.conf(5)")
            t.prompt()
            t.line("/new side")
            t.expect("has one conversation")
            check("side" not in t.prompt(), "it went there")
            t.line("/agent recall")
            t.expect("cannot list agents")
            t.prompt()
            t.line("/quit")
            t.leave()


def test_time_is_limited_only_on_request():
    with Daemon(*SLOW) as d:
        env = of(d)
        done = koine(env, "send", "hello there", "-t", "0.5", code=75)
        same(done.err, "koine: timed out after 0.5 s; request cancelled\n", "stderr")
        check(done.out.startswith("I am"), "what came: %r", done.out)
        wait_until(lambda: messages(env)[-1]["state"] == "cancelled", "the turn to be cancelled")


def test_refusals_are_told():
    with Daemon() as d:
        env = of(d)
        rows = [
            (("send", "hi", "-a", "nobody"), 1, "agent not found: 'nobody'"),
            (("send", "hi", "-c", "no/name"), 1, "conversation"),
            (("tokens", "-c", "nowhere"), 1, "koine: conversation not found: 'nowhere'\n"),
            (("messages", "nowhere"), 1, "koine: conversation not found: 'nowhere'\n"),
            (("send",), 64, "send requires TEXT"),
            (("send", ""), 65, "the question is empty"),
            (("send", " \n"), 65, "the question is empty"),
            (("send", "-"), 65, "the question is empty"),
            (("send", b"a\xff"), 65, "not UTF-8: byte 2 is 0xff"),
            (("chat", "-c", "no name"), 64, "invalid conversation name 'no name'"),
            (("chat", "-c", ".."), 64, "invalid conversation name '..'"),
            (("chat", "-c", "x" * 129), 64, "invalid conversation name"),
            (("messages", "a", "-c", "b"), 64, "not both"),
            (("chat", "hi"), 64, "koine send TEXT"),
            (("cancel",), 64, "cancel requires"),
            (("tokens", "x"), 64, "takes no arguments"),
            (("messages", "a", "b"), 64, "at most one"),
            (("messages", "-n", "0"), 64, "invalid --limit '0': expected N, a positive integer"),
            (("send", "hi", "--agnet", "x"), 64, "did you mean --agent?"),
        ]
        for args, code, words in rows:
            done = koine(env, *args, code=code)
            check(words in done.err, "%r: %r", args, done.err)
            same(done.out, "", "stdout of %r" % (args,))


def test_tables_of_tokens_and_agents():
    with Daemon() as d:
        env = of(d)
        koine(env, "send", "My name is Alice.")
        rows = [line.split() for line in koine(env, "tokens").out.splitlines()]
        same([r[0] for r in rows], ["system", "tools", "messages", "total", "budget", "available"],
             "rows")
        n = {name: int(value) for name, value in rows}
        same(n["total"], n["system"] + n["tools"] + n["messages"], "total")
        check(n["messages"] > 0, "%r", n)
        same(json.loads(koine(env, "tokens", "--json").out), n, "json")
        lines = koine(env, "agents").out.splitlines()
        same(lines[0].split(), ["NAME", "KIND", "MODEL", "MS", "OK", "SAYS"], "titles")
        check(re.match(r"\*  recall +recall +\d+ +ok ", lines[1]), "%r", lines)
        agents = json.loads(koine(env, "agents", "--json").out)
        same([(a["name"], a["default"], a["ok"]) for a in agents], [("recall", True, True)], "json")


def test_the_table_of_agents_fits_the_terminal():
    agents = [
        {"name": "recall", "kind": "recall", "model": "", "default": True, "ok": True, "ms": 0,
         "text": "built in"},
        {"name": "prog", "kind": "command", "model": "/opt/some/where/prog", "default": False,
         "ok": True, "ms": 1, "text": "/opt/some/where/prog"},
        {"name": "far", "kind": "openai", "model": "a-model-of-a-long-name", "default": False,
         "ok": False, "ms": 10, "text": "agent 'far': cannot reach the provider at all"},
    ]

    with Scripted(lambda r: [{"id": r["id"], "result": {"agents": agents}}]) as s:
        wide = koine(s.env, "agents").out.splitlines()
        same(wide[2].split(), ["prog", "command", "/opt/some/where/prog", "1", "ok"], "a command")
        check(wide[3].endswith("  no  cannot reach the provider at all"), "%r", wide[3])
        for columns in (40, 80):
            with Terminal(dict(s.env, COLUMNS=str(columns)), "agents") as t:
                lines = t.leave().splitlines()
            same(len(lines), 4, "lines")
            check(max(map(len, lines)) <= columns, "wider than %d: %r", columns, lines)
            check("  no  cannot" in lines[3], "%r", lines)


# ---- chat in a pipe ----


def test_a_pipe_is_one_question_a_line():
    with Daemon() as d:
        env = of(d)
        koine(env, "send", "Hello.")
        done = koine(env, "chat", stdin="My name is Zoë.\n\n \nWhat is my name?".encode())
        lines = done.out.splitlines()
        same(len(lines), 2, "lines of %r" % done.out)
        check("Zoë" in lines[1], "%r", lines)
        same(done.err, "", "stderr")
        asked = [m["content"] for m in messages(env) if m["role"] == "user"]
        koine(env, "chat", stdin=b"/quit\n")
        same([m["content"] for m in messages(env) if m["role"] == "user"], asked + ["/quit"],
             "a slash is nothing special")


def test_a_refused_question_does_not_end_a_pipe():
    with Daemon() as d:
        env = of(d)
        done = koine(env, "chat", "-a", "nobody", stdin=b"one\ntwo\n", code=1)
        same(done.err.count("agent not found: 'nobody'"), 2, "refusals in %r" % done.err)
        done = koine(env, "chat", stdin=b"one\nt\xff\nthree\n", code=65)
        check("not UTF-8" in done.err, "%r", done.err)
        same([m["content"] for m in messages(env) if m["role"] == "user"], ["one"], "what came")


def test_a_daemon_that_dies_in_the_middle_is_told():
    with Daemon(*SLOW, exit_status=-signal.SIGKILL) as d:
        env = of(d)
        with Running(env, "chat") as k:
            k.process.stdin.write(b"hello\nhello again\n")
            k.process.stdin.flush()
            k.expect("I am")
            d.signal(signal.SIGKILL)
            done = k.finish()
        same(done.code, 69, "exit code")
        check(done.out.endswith("\n"), "%r", done.out)
        check("koine: " in done.err and "koine.sock" in done.err, "%r", done.err)


# ---- chat on a terminal ----


def test_a_prompt_streams():
    with Daemon(*SLOW) as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.line("hello there")
        t.expect(INTRO)
        # Seen while the turn is under way: it came in pieces.
        same(messages(of(d))[-1]["state"], "running", "state")
        t.expect("koine.conf(5)")
        t.prompt()
        t.type("\x04")
        t.leave()


def test_ctrl_c_cancels_the_answer_and_the_prompt_comes_back():
    with Daemon(*SLOW) as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.line("My name is Alice.")
        t.expect(INTRO)
        t.type("\x03")
        t.expect("(cancelled)")
        t.prompt()
        kept = messages(of(d))
        same([m["state"] for m in kept], ["cancelled", "cancelled"], "states")
        check(kept[-1]["content"].startswith(INTRO), "%r", kept)
        t.line("What is my name?")
        t.expect("Alice")
        t.prompt()
        t.type("\x04")
        t.leave()


def test_ctrl_c_at_the_prompt_clears_the_line():
    with Daemon() as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.type("never sent")
        t.expect("never sent")
        t.type("\x03")
        t.prompt()
        t.line("hello there")
        t.expect("koine.conf(5)")
        t.prompt()
        t.line("/quit")
        t.leave()
        same([m["content"] for m in messages(of(d)) if m["role"] == "user"], ["hello there"],
             "what was asked")


def test_slash_commands():
    with Daemon() as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.line("/help")
        for word in ("/tokens", "/messages", "/compact", "/agent", "/new", "/quit"):
            t.expect(word)
        t.prompt()
        t.line("My name is Alice.")
        t.expect("koine.conf(5)")
        t.prompt()
        t.line("/tokens")
        t.expect("available")
        t.prompt()
        t.line("/messages 1")
        check("user, " not in t.expect("assistant, "), "more than one")
        t.prompt()
        t.line("/history x")
        t.expect("requires a number")
        t.prompt()
        t.line("/compact")
        t.expect("nothing to compact")
        t.prompt()
        t.line("/agents")
        t.expect("recall")
        t.prompt()
        t.line("/agent nobody")
        t.expect("agent not found: 'nobody'")
        t.prompt()
        t.line("/agent recall")
        t.expect("Using agent recall")
        t.prompt()
        t.line("/agent")
        t.expect("default agent")
        t.prompt()
        t.line("/quit now")
        t.expect("/quit takes no argument")
        t.prompt()
        t.line("/tokens extra")
        t.expect("/tokens takes no argument")
        t.prompt()
        t.line("/new bad name")
        t.expect("invalid conversation name 'bad name'")
        check("bad" not in t.prompt(), "it went there")
        t.line("/new side")
        t.prompt("side> ")
        t.line("/tokens")
        t.expect("conversation not found: 'side'")
        t.prompt("side> ")
        t.line("What is my name?")
        t.prompt("side> ")
        t.line("/new")
        t.expect("chat-2")
        t.prompt()
        t.line("/new default")
        t.prompt("default> ")
        t.line("/conversations")
        t.expect("side")
        t.prompt("default> ")
        t.line("/tokns")
        t.expect("did you mean /tokens?")
        t.prompt()
        t.line("//etc is a folder")
        t.prompt()
        t.type("\x04")
        t.leave()
        env = of(d)
        same(messages(env)[-2]["content"], "/etc is a folder", "what was said")
        same(len(messages(env, "side")), 2, "messages at the side")


def test_history_is_kept_for_its_owner():
    if os.environ.get("KOINE_EDITS") == "0":
        missing("libedit in koine")
    with Daemon() as d, Folder() as state:
        env = of(d, XDG_STATE_HOME=state.path)
        with Terminal(env, "chat") as t:
            t.prompt()
            for text in ("My name is Zoë.", "/help", "what else"):
                t.line(text)
                t.prompt()
            t.type("\x04")
            t.leave()
        path = state("koine", "history")
        same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
        same(stat.S_IMODE(os.stat(state("koine")).st_mode), 0o700, "mode of the folder")
        with open(path, encoding="utf-8") as f:
            same(f.read(), "My name is Zoë.\n/help\nwhat else\n", "history")
        with Terminal(env, "chat", "-c", "later") as t:
            t.prompt("later> ")
            t.type("\x1b[A\x1b[A\x1b[A")
            t.expect("My name is Zoë.")
            t.type("\x05 Yes.\r")
            t.prompt("later> ")
            t.type("\x04")
            t.leave()
        same(messages(env, "later")[0]["content"], "My name is Zoë. Yes.", "from the history")


def test_the_static_one_has_a_prompt_too():
    if not os.access(STATIC, os.X_OK):
        raise Skip("there is no static koine here")
    with Daemon() as d, Terminal(of(d), "chat", program=STATIC) as t:
        t.prompt()
        t.line("Grüße")
        t.prompt()
        t.type("\x04")
        t.leave()
        same(messages(of(d))[0]["content"], "Grüße", "what was said")


def test_a_daemon_that_dies_leaves_the_prompt():
    with Daemon(*SLOW) as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.line("hello there")
        t.expect(INTRO)
        d.signal(signal.SIGKILL)
        t.expect("koine: ")
        t.prompt()
        d.wait_exit()
        t.line("are you there?")
        t.expect("koine: cannot connect")
        t.prompt()
        t.line("/tokens")
        t.expect("koine: cannot connect")
        t.prompt()
        d.stop()
        d.start()
        d.wait_ready()
        t.line("hello again")
        t.expect("Noted.")
        t.prompt()
        t.type("\x04")
        t.leave()


def test_a_prompt_whose_server_is_gone_ends_with_that():
    with Daemon() as d, Terminal(of(d), "chat") as t:
        t.prompt()
        d.stop()
        t.line("hello there")
        t.expect("koine: cannot connect")
        t.prompt()
        t.type("\x04")
        t.leave(69)


def test_a_daemon_that_was_started_again_goes_on():
    with Daemon() as d, Terminal(of(d), "chat") as t:
        t.prompt()
        t.line("My name is Alice.")
        t.expect("koine.conf(5)")
        t.prompt()
        d.stop()
        d.start()
        d.wait_ready()
        t.line("What is my name?")
        t.expect("Alice")
        t.prompt()
        t.type("\x04")
        t.leave()


# ---- chat.stream itself ----


class Stream(Client):
    """Asks, and takes pieces and answers as they come."""

    def ask(self, id=1, **params):
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "chat.stream",
                              "params": params}).encode() + b"\n")

    def next(self):
        while b"\n" not in self.got:
            check(self.more(), "the stream ended; so far %.200r", bytes(self.got))
        line, _, rest = bytes(self.got).partition(b"\n")
        self.got = bytearray(rest)
        return json.loads(line)

    def until_answer(self):
        pieces = []
        while True:
            message = self.next()
            if "id" in message:
                return pieces, message
            same(message["method"], "chat.text", "method")
            pieces.append(message["params"])


def test_pieces_are_the_answer():
    with Daemon("--set", "agent.recall.word_delay=1") as d, Stream(d.address()) as c:
        c.ask(content="Zoë says: 東京 🎉", request_id=7, conversation="x")
        pieces, answer = c.until_answer()
        check(len(pieces) > 10, "only %d pieces", len(pieces))
        at = 0
        for p in pieces:
            same((p["request_id"], p["conversation"], p["offset"]), (7, "x", at), "piece")
            at += len(p["text"].encode())
        same("".join(p["text"] for p in pieces), answer["result"]["content"], "text")
        same((answer["id"], answer["result"]["request_id"]), (1, 7), "ids")
        c.ask(content="東京?", conversation="x")
        pieces, answer = c.until_answer()
        check("東京 🎉" in answer["result"]["content"], "%r", answer)
        same(pieces[0]["request_id"], answer["result"]["request_id"], "the id that was made")


def test_a_cancelled_call_answers_with_what_came():
    with Daemon(*SLOW) as d, Stream(d.address()) as c:
        c.ask(id='"a"', content="hello")
        c.next()
        c.send(b'{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":"\\"a\\""},"id":2}\n')
        pieces, answer = c.until_answer()
        while answer["id"] == 2:
            same(answer["result"], {"cancelled": True}, "rpc.cancel")
            more, answer = c.until_answer()
            pieces += more
        same((answer["result"]["stop"], answer["result"]["cancelled"]), ("cancelled", True), "end")
        check(answer["result"]["content"].startswith("I "), "%r", answer)


def test_a_client_that_leaves_cancels_nothing():
    with Daemon("--set", "agent.recall.word_delay=5") as d:
        with Stream(d.address()) as c:
            c.ask(content="hello")
            c.next()
        env = of(d)
        wait_until(lambda: messages(env)[-1]["state"] == "done", "the end of the turn")
        check("koine.conf(5)" in messages(env)[-1]["content"], "%r", messages(env))


def test_an_id_that_is_under_way_is_refused():
    with Daemon(*SLOW) as d, Stream(d.address()) as a, Stream(d.address()) as b:
        a.ask(content="hello", request_id="r")
        a.next()
        b.ask(content="hello", request_id="r")
        same(b.next()["error"]["code"], -32602, "code")
        b.ask(content="hello", request_id="r", conversation="another")
        same(b.next()["params"]["conversation"], "another", "conversation")


def test_a_daemon_stops_while_it_streams():
    with Daemon(*SLOW) as d, Stream(d.address()) as c:
        c.ask(content="hello")
        c.next()
        d.signal(signal.SIGTERM)
        answer = c.until_answer()[1]
        check("result" in answer, "%r", answer)
        same(d.wait_exit(), 0, "exit status")


def test_a_forced_stop_does_not_wait_for_the_agent():
    with Daemon("--set", "agent.recall.word_delay=60000") as d, Stream(d.address()) as c:
        c.ask(content="hello")
        d.settle()
        with Client(d.address()) as other:
            other.call("daemon.stop", {"force": True})
        same(d.wait_exit(), 0, "exit status")


# ---- a server that a script plays ----


class Scripted:
    """Answers each request with what `answer` yields: messages, or None to hang up."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __enter__(self):
        self.folder = Folder()
        self.folder.__enter__()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.folder("s"))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()
        self.env = environment(KOINE_SOCKET=self.folder("s"))
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)
        self.folder.__exit__()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn, conn.makefile("rb") as lines:
                self.serve(conn, lines)

    def serve(self, conn, lines):
        for line in lines:
            request = json.loads(line)
            self.asked.append(request)
            for message in self.answer(request):
                if message is None:
                    return
                conn.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def piece(request, offset, text, id=None):
    return {"method": "chat.text",
            "params": {"request_id": id or request["params"]["request_id"],
                       "conversation": "default", "offset": offset, "text": text}}


def whole(request, content, **more):
    return {"id": request["id"], "result": {"content": content, "stop": "end", **more}}


def test_pieces_that_are_missing_come_with_the_answer():
    def answer(r):
        yield piece(r, 0, "Hel")
        yield piece(r, 0, "Hel")
        yield piece(r, 3, "of another", id="another")
        yield piece(r, 7, "world")
        yield {"method": "other.thing", "params": [1]}
        yield whole(r, "Hello, world")

    with Scripted(answer) as s:
        same(koine(s.env, "send", "hi").out, "Hello, world\n", "answer")


def test_what_could_steer_a_terminal_is_shown():
    def answer(r):
        yield piece(r, 0, "a\x1b[31mb\u009bc\n")
        yield whole(r, "a\x1b[31mb\u009bc\n\td\x07")

    with Scripted(answer) as s:
        same(koine(s.env, "send", "hi").out, "a\\x1b[31mb\\xc2\\x9bc\n\td\\x07\n", "answer")


def test_ends_that_people_should_know_of():
    rows = [({"stop": "length"}, 0, "(truncated: "), ({"tool_calls": [{"name": "x"}]}, 0, "requested tools"),
            ({"cancelled": True, "stop": "cancelled"}, 130, "(cancelled)")]
    for more, code, words in rows:
        with Scripted(lambda r, more=more: [whole(r, "text", **more)]) as s:
            done = koine(s.env, "send", "hi", code=code)
            same(done.out, "text\n", "stdout")
            check(words in done.err, "%r", done.err)


def test_an_agent_that_fails_in_the_middle():
    def answer(r):
        yield piece(r, 0, "Half of")
        yield {"id": r["id"], "error": {"code": -32603, "message": "Internal error: X: down"}}

    with Scripted(answer) as s:
        done = koine(s.env, "send", "hi", code=1)
        same((done.out, done.err), ("Half of\n", "koine: X: down\n"), "what is told")


def test_errors_are_sentences():
    for message, told in (("Internal error: AgentError: the model is tired", "the model is tired"),
                          ("Internal error: ProviderUnavailable: nobody is there", "nobody is there"),
                          ("Invalid params: content is too long", "content is too long"),
                          ("Internal error", "Internal error"),
                          ("the Error: in it stays", "the Error: in it stays"),
                          ("", "chat.stream failed; see koine daemon log")):
        def answer(r, message=message):
            yield {"id": r["id"], "error": {"code": -32603, "message": message,
                                            "data": {"type": "AgentError"}}}

        with Scripted(answer) as s:
            same(koine(s.env, "send", "hi", code=1).err, "koine: %s\n" % told, "for %r" % message)


def test_a_server_that_leaves_in_the_middle():
    def answer(r):
        yield piece(r, 0, "Half of")
        yield None

    with Scripted(answer) as s:
        done = koine(s.env, "send", "hi", code=69)
        same(done.out, "Half of\n", "stdout")
        check("without a response" in done.err, "%r", done.err)


def test_a_server_that_only_has_send():
    def answer(r):
        if r["method"] == "send":
            yield whole(r, "plain")
        else:
            yield {"id": r["id"], "error": {"code": -32601, "message": "Method not found"}}

    with Scripted(answer) as s:
        same(koine(s.env, "send", "hi").out, "plain\n", "answer")
        same([r["method"] for r in s.asked], ["chat.stream", "send"], "methods")
        same(s.asked[0]["params"]["request_id"], s.asked[1]["params"]["request_id"], "ids")
        koine(s.env, "send", "hi", "-c", "x", code=1)
        same([r["method"] for r in s.asked[2:]], ["chat.stream"], "methods with a conversation")


def test_a_server_that_hears_no_cancel_is_left():
    ready = threading.Event()

    def answer(r):
        if r["method"] == "chat.stream":
            yield piece(r, 0, "Half of")
        else:
            ready.set()

    with Scripted(answer) as s, Running(s.env, "send", "hi") as k:
        k.expect("Half of")
        k.process.send_signal(signal.SIGINT)
        check(ready.wait(PATIENCE), "no cancel came")
        k.process.send_signal(signal.SIGINT)
        done = k.finish()
        same((done.code, done.out), (130, "Half of\n"), "code and stdout")
        same([(r["method"], r["params"].get("id")) for r in s.asked[1:]],
             [("rpc.cancel", s.asked[0]["id"])], "what was asked")


def test_who_asks_is_said():
    with Scripted(lambda r: [whole(r, "x")]) as s:
        koine(dict(s.env, ASH_USER_ID="u1", ASH_CHAT_ID="c1"), "send", "hi", "--user", "u2",
              "-a", "big")
        params = s.asked[0]["params"]
        same((params["user_id"], params["chat_id"], params["agent"]), ("u2", "c1", "big"), "params")
        check("conversation" not in params, "%r", params)


if __name__ == "__main__":
    main(globals())
