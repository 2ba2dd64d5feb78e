#!/usr/bin/env python3
"""
koine memory and koine backup: lines into a pipe, tables on a terminal, exit codes,
what goes over the wire, and the static binary alone in a bare folder.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import socket
import stat
import struct
import subprocess
import termios
import threading
import time

from harness import (KOINE, PATIENCE, SANITIZER, Client, Daemon, Folder, Length, Line, Skip, check,
                     clean_environment, main, only_in_a_file, same, wait_until)

STATIC = os.environ.get("KOINE_STATIC") or os.path.join(os.path.dirname(KOINE), "koine-static")


def environment(**changes):
    env = {k: v for k, v in clean_environment().items()
           if not k.startswith("ASH_") and k not in ("COLUMNS", "NO_COLOR", "VISUAL", "EDITOR")}
    env["TERM"] = "xterm"
    env["TZ"] = "UTC"
    env.update({k: v for k, v in changes.items() if v is not None})
    return env


def koine(*args, stdin=b"", timeout=PATIENCE, env=None, cwd=None):
    done = subprocess.run([KOINE, *args], input=stdin, capture_output=True, timeout=timeout,
                          env=env or environment(), cwd=cwd)
    check(not SANITIZER.search(done.stderr), "sanitizer report: %r", done.stderr[:2000])
    done.out = done.stdout.decode()
    done.err = done.stderr.decode()
    return done


class Memory:
    """koine memory against one daemon, as one user."""

    def __init__(self, daemon, **env):
        self.env = environment(KOINE_SOCKET=os.path.join(daemon.root, "koine.sock"), **env)

    def __call__(self, *args, code=0, **opts):
        done = koine("memory", *args, env=self.env, **opts)
        same(done.returncode, code, "exit code of %r (%r)" % (args, done.err))
        return done

    def add(self, content, *args):
        return json.loads(self("add", content, "--json", *args).out)["id"]


def fits(got, want, what):
    """Text must be the same; a pattern must match all of it."""
    if isinstance(want, re.Pattern):
        check(want.fullmatch(got), "%s is %r, not %r", what, got, want.pattern)
    else:
        same(got, want, what)


# ---- into a pipe ----


def test_lines_are_those_of_the_original_client():
    with Daemon() as d:
        m = Memory(d, ASH_USER_ID="u1", ASH_CHAT_ID="c1")
        fits(m("add", "I live in Berlin").out, re.compile(
            r"Memory added \(personal\): [0-9a-f]{8}\n"), "add")
        fits(m("add", "We meet on Mondays", "--shared", "-s", "meeting-notes").out, re.compile(
            r"Memory added \(shared\): [0-9a-f]{8}\n"), "add --shared")
        long = "é" * 46
        m("add", "x" * 45)
        m("add", long)
        rows = json.loads(m("list", "--json").out)
        same([r["content"] for r in rows], [long, "x" * 45, "We meet on Mondays",
                                            "I live in Berlin"], "contents")
        short = [r["id"][:8] for r in rows]
        same(m("list").out,
             "ID         Source       Content\n" + "-" * 70 + "\n"
             + short[0] + "   agent        " + "é" * 45 + "...\n"
             + short[1] + "   agent        " + "x" * 45 + "\n"
             + short[2] + "   meeting-no   We meet on Mondays\n"
             + short[3] + "   agent        I live in Berlin\n"
             "\nTotal: 4 memory(ies)\n", "list")
        # Its neighbours in the chat may follow.
        fits(m("search", "berlin").out, re.compile(
            r"\[[01]\.\d\d\] I live in Berlin\n(\[0\.\d\d\] .*\n)*"), "search")
        fits(m("search", "berlin", "-n1").out, re.compile(
            r"\[[01]\.\d\d\] I live in Berlin\n"), "search -n1")
        same(m("search", "--query", "zebra").out, "No memories found.\n", "no hit")
        same(m("delete", short[3]).out, "Memory deleted: %s\n" % short[3], "delete")
        gone = m("delete", rows[3]["id"], code=1)
        same((gone.out, gone.err), ("", "Memory not found or not owned by you: %s\n" % short[3]),
             "second delete")
        same(json.loads(m("delete", short[2], "--json").out), {"deleted": True}, "delete --json")
        same(m("list", "-n", "1").out.splitlines()[-1], "Total: 1 memory(ies)", "-n")


def test_a_list_says_what_its_limit_hides():
    with Daemon() as d:
        m = Memory(d)
        for n in range(23):
            m("add", "memory number %d" % n)
        m("add", "soon over", "--expires", "0")
        said = lambda *args: (lambda r: (len(r.out.splitlines()), r.err))(m("list", *args))
        same(said(), (21, "20 of 23 (-n N for more)\n"), "by default")
        same(said("-n", "2"), (3, "2 of 23 (-n N for more)\n"), "a limit")
        same(said("-n", "2", "--replaced"), (3, "showing the newest 2 (-n N for more)\n"), "not counted")
        same(said("-n", "23"), (24, ""), "all")
        same(said("-n", "5", "--json")[1], "", "JSON is a list")
        for name in ("ASH_USER_ID", "ASH_CHAT_ID", "ASH_CHAT_TYPE"):
            ash = Memory(d, **{name: "x"})("list", "-n", "2")
            same((ash.out.splitlines()[-2:], ash.err), (["", "Total: 2 memory(ies)"], ""), name)


def test_json_has_one_form_and_call_prints_what_came():
    with Daemon() as d:
        m = Memory(d)
        m("add", "at +00:00", "--subject", "created_at")
        said = koine("call", "memory.list", "--json", env=m.env).out
        check(re.search(r'"created_at":"\S+\.\d{6}\+00:00"', said), "%r", said)
        row, = json.loads(m("list", "--json").out)
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["created_at"]), "%r", row)
        same(row["content"], "at +00:00", "a text")
        koine("send", "hello", env=m.env)
        for list in "conversations", "messages", "agents", "dialects", "hosts", "tasks", "rules", "grants":
            rows = json.loads(koine(list, "--json", env=m.env).out)
            check(type(rows) is type([]), "%s: %r", list, rows)
            check("+00:00" not in str(rows), "%s: %r", list, rows)
        status = json.loads(koine("status", "--json", env=m.env).out)
        check("max_concurrency" in status["subsystems"]["supervisor"], "%r", status)
        check("version" in json.loads(koine("version", "--json", env=m.env).out), "version")


def test_what_was_added_says_whose_it_is():
    rows = [
        ({}, [], "common"),
        ({}, ["--shared"], "common"),
        ({"ASH_USER_ID": "u1"}, [], "personal"),
        ({"ASH_USER_ID": "u1"}, ["--shared"], "personal"),
        ({"ASH_USER_ID": "u1", "ASH_CHAT_ID": "c1"}, ["--shared"], "shared"),
        ({"ASH_CHAT_ID": "c1"}, [], "shared"),
        ({"ASH_CHAT_ID": "c1"}, ["--user", "u1"], "personal"),
    ]
    with Daemon() as d:
        for i, (who, options, want) in enumerate(rows):
            for socket_name in ("koine", "ash"):
                m = Memory(d, **who)
                if socket_name == "ash":
                    m.env.update(KOINE_SOCKET="", ASH_RPC_SOCKET=os.path.join(d.root, "ash.sock"))
                fits(m("add", "entry %d by %s" % (i, socket_name), *options).out,
                     re.compile(r"Memory added \(%s\): [0-9a-f]{8}\n" % want), "add")
        stats = json.loads(Memory(d)("stats", "--json").out)
        same([stats[k] for k in ("common", "personal", "group")], [4, 6, 4], "stats")


def test_this_chat_is_an_option():
    with Daemon() as d:
        m = Memory(d, ASH_USER_ID="u1", ASH_CHAT_ID="dm", ASH_CHAT_TYPE="private")
        club = Memory(d, ASH_USER_ID="u1", ASH_CHAT_ID="club")
        m("add", "a secret wish")
        club("add", "a wish for the club", "--chat-type", "group")
        fits(m("search", "wish", "--this-chat").out, re.compile(r"\[0.\d\d\] a secret wish\n"),
             "search")
        same(m("list", "--this-chat").out.splitlines()[-1], "Total: 1 memory(ies)", "list")
        same(m("list").out.splitlines()[-1], "Total: 2 memory(ies)", "list")
        fits(club("search", "wish", "--chat-type", "group").out,
             re.compile(r"\[0.\d\d\] a wish for the club\n"), "search")
        same(club("list", "--chat-type", "group").out.splitlines()[-1], "Total: 1 memory(ies)",
             "list")


def test_content_cannot_steer_the_terminal():
    with Daemon() as d:
        m = Memory(d)
        m("add", "red \x1b[31m bell \x07 csi \u009b and\nline two")
        same(m("search", "bell").out.splitlines()[1][17:],
             "red \\x1b[31m bell \\x07 csi \\x9b and line two", "hit")
        same(m("list").out.splitlines()[1].split("agent")[1].strip(),
             "red \\x1b[31m bell \\x07 csi \\x9b and line two", "row")
        same(Memory(d, ASH_CHAT_TYPE="private")("search", "bell").out[7:],
             "red \\x1b[31m bell \\x07 csi \\xc2\\x9b and\nline two\n", "hit as ash shows it")
        id = json.loads(m("list", "--json").out)[0]["id"]
        check("\x1b" not in m("show", id).out and "\x1b" not in m("export").out, "steers")


def test_words_need_no_quotes_and_a_shells_names_are_understood():
    with Daemon() as d:
        m = Memory(d)
        m("add", "Anna", "runs", "along", "the", "fjord")
        check("  Anna runs along the fjord\n" in m("search", "where", "does", "anna", "run").out,
              "search")
        same(m("ls").out, m("list").out, "ls")
        id = json.loads(m("ls", "--json").out)[0]["id"]
        same(m("rm", id).out, "Memory deleted: %s\n" % id[:8], "rm")
        shown = m().out
        check("Usage: koine memory COMMAND" in shown and "search     Search memories" in shown,
              "bare: %r", shown)


def test_exit_codes_and_words():
    rows = [
        (["search"], 64, "memory search requires QUERY, --query QUERY, or - for stdin"),
        (["search", "a", "-q", "b"], 64, "takes QUERY or --query, not both"),
        (["search", "x", "-n", "many"], 64, "invalid --limit 'many': expected N, an integer"),
        (["add"], 64, "memory add requires CONTENT, or - for stdin"),
        (["add", ""], 1, "content is required"),
        (["add", "x", "--importance", "2"], 64, "invalid --importance '2': expected X"),
        (["add", "x", "--category", "nonsense"], 1, "category"),
        (["add", "x", "--expires", "1.5"], 64, "invalid --expires '1.5': expected TIME, such as 30, 30d or 2w"),
        (["add", "x", "--shard"], 64, "did you mean --shared?"),
        (["list", "--subject", "x"], 64, "unknown option --subject"),
        (["show", "nosuch"], 1, "koine: memory not found: 'nosuch'\n"),
        (["delete"], 64, "memory delete requires one ID"),
        (["edit"], 64, "requires one ID"),
        (["export", "a", "b"], 64, "at most one FILE"),
        (["export", "/dev/null/x"], 73, "cannot write /dev/null/x"),
        (["import"], 64, "one FILE"),
        (["import", "/dev/null/x"], 66, "cannot read /dev/null/x"),
        (["import", "/"], 66, "cannot read /"),
        (["serch", "x"], 64, "unknown command 'memory serch'; did you mean 'memory search'?"),
        (["frobnicate"], 64, "see koine memory --help"),
    ]
    with Daemon() as d:
        m = Memory(d)
        for args, code, words in rows:
            done = m(*args, code=code)
            check(words in done.err and done.out == "", "%r: %r %r", args, done.out, done.err)
        env = environment(KOINE_SOCKET=d.root + "/nosuch.sock")
        done = koine("memory", "list", env=env)
        same((done.returncode, done.err),
             (69, "koine: koined is not running: no answer at %s/nosuch.sock (try: koine daemon start)\n" % d.root),
             "missing socket")


def test_help_of_every_command():
    names = re.findall(r"(?m)^  (\w+) ", koine("memory", "--help").out.split("Commands:")[1].split("Options:")[0])
    same(names, ["search", "add", "list", "delete", "restore", "show", "history", "edit", "review", "export", "import", "stats"],
         "commands")
    for name in names:
        done = koine("memory", name, "--help")
        same(done.returncode, 0, "exit code")
        check("\n\nUsage: koine memory %s" % name in done.out and "--user USER" in done.out,
              "help of %s: %r", name, done.out)
        same(koine("help", "memory", name).out, done.out, "help memory " + name)
    check("did you mean 'memory list'?" in koine("help", "memory", "lst").err, "no suggestion")


def test_show_and_stats():
    with Daemon() as d:
        m = Memory(d, ASH_USER_ID="u1")
        id = m.add("Anna likes tea\nand cake", "-S", "Anna", "-S", "tea", "-e", "7", "--category",
                   "preference", "--importance", "0.75", "--source", "chat")
        want = re.compile("id          %s\n" % id + r"source      chat\ncategory    preference\n"
                          r"importance  0\.75\nuser        u1\nshared      false\n"
                          r"created     \S+Z\nupdated     \S+Z\nexpires     \S+Z\n"
                          r"subjects    Anna, tea\n\nAnna likes tea\nand cake\n")
        fits(m("show", id[:8]).out, want, "show")
        same(json.loads(m("show", id, "--json").out)["subjects"], ["Anna", "tea"], "subjects")
        check("memory not found" in Memory(d, ASH_USER_ID="u2")("show", id, code=1).err, "seen by another")
        fits(m("stats").out, re.compile(r"(?s)total +1\npersonal +1\ngroup +0\nproject +0\ncommon +0\n.*"),
             "stats")
        same(json.loads(m("stats", "--json").out)["total"], 1, "stats --json")


def test_list_hides_expired_ones():
    with Daemon() as d:
        m = Memory(d)
        m("add", "old", "--expires", "-1")
        m("add", "new")
        same([r["content"] for r in json.loads(m("list", "--json").out)], ["new"], "list")
        # The sweep may have come first.
        check(m("list", "--all").out.splitlines()[1].endswith("new"), "list --all")


def test_backup():
    only_in_a_file("a server is copied by pg_dump")
    with Daemon() as d, Folder() as folder:
        m = Memory(d)
        m("add", "kept")
        done = koine("backup", "copy.db", env=m.env, cwd=folder.path)
        same((done.returncode, done.out),
             (0, "Store copied to %s\n" % os.path.realpath(folder("copy.db"))), "backup")
        with open(folder("copy.db"), "rb") as f:
            check(f.read(16) == b"SQLite format 3\0", "no database")
        again = koine("backup", "copy.db", env=m.env, cwd=folder.path)
        same(again.returncode, 1, "exit code")
        check("exists; refusing to overwrite it" in again.err, "words: %r", again.err)
        same(koine("backup", env=m.env).returncode, 64, "without a file")


# ---- over the wire ----


class Recorder:
    """A server that keeps what it was sent and answers each with what it was given."""

    def __init__(self, path, results=()):
        self.results = list(results)
        self.requests = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.socket.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.socket.accept()
                with conn:
                    self.serve_one(conn)

    def serve_one(self, conn):
        got = b""
        while True:
            part = conn.recv(65536)
            if not part:
                return
            got += part
            framing = Length if got[0] == 0 else Line
            body = got[4:] if framing is Length else got
            with contextlib.suppress(ValueError):
                request = json.loads(body)
                self.requests.append((framing.name, request["method"],
                                      json.dumps(request["params"], ensure_ascii=False)))
                result = self.results.pop(0) if self.results else []
                conn.sendall(framing.wrap(json.dumps(
                    {"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()))
                got = b""


WIRE = [
    ({}, ["search", "a b"], "memory.search",
     '{"query": "a b", "limit": 10, "user_id": null, "chat_id": null}'),
    ({"ASH_USER_ID": "u", "ASH_CHAT_ID": "c"}, ["search", "-q", "x", "-n", "3"], "memory.search",
     '{"query": "x", "limit": 3, "user_id": "u", "chat_id": "c"}'),
    ({"ASH_USER_ID": "u"}, ["search", "--user", "v", "--chat=d", "x", "-n5"], "memory.search",
     '{"query": "x", "limit": 5, "user_id": "v", "chat_id": "d"}'),
    ({"ASH_CHAT_TYPE": "group"}, ["search", "x", "--this-chat", "--chat", "c"], "memory.search",
     '{"query": "x", "limit": 10, "this_chat": true, "user_id": null, "chat_id": "c", '
     '"chat_type": "group"}'),
    ({"ASH_USER_ID": ""}, ["list"], "memory.list",
     '{"limit": 20, "user_id": null, "chat_id": null}'),
    ({}, ["list", "--all", "--limit", "-1"], "memory.list",
     '{"limit": -1, "user_id": null, "chat_id": null, "include_expired": true}'),
    ({}, ["add", "é"], "memory.add",
     '{"content": "é", "source": "agent", "shared": false, "user_id": null, "chat_id": null}'),
    ({}, ["add", "x", "--shared", "-s", "me", "-e", "30", "-S", "A", "--subject", "B",
          "--category", "fact", "--importance", "0.5"], "memory.add",
     '{"content": "x", "source": "me", "shared": true, "user_id": null, "chat_id": null, '
     '"expires_days": 30, "subjects": ["A", "B"], "category": "fact", "importance": 0.5}'),
    ({}, ["add", "--", "--x"], "memory.add",
     '{"content": "--x", "source": "agent", "shared": false, "user_id": null, "chat_id": null}'),
    ({}, ["delete", "abcd"], "memory.delete",
     '{"memory_id": "abcd", "user_id": null, "chat_id": null}'),
    ({"ASH_CONTEXT_TOKEN": "a.b.c"}, ["delete", "abcd"], "memory.delete",
     '{"memory_id": "abcd", "user_id": null, "chat_id": null, "context_token": "a.b.c"}'),
]
ANSWERS = {"memory.search": [], "memory.list": [], "memory.add": {"id": "0123456789"},
           "memory.delete": {"deleted": True}}


def test_parameters_have_the_original_order():
    for framing, variable in (("length", "ASH_RPC_SOCKET"), ("line", "KOINE_SOCKET")):
        for env, args, method, params in WIRE:
            with Folder() as folder, Recorder(folder("s"), [ANSWERS[method]]) as server:
                done = koine("memory", *args, env=environment(**{variable: folder("s")}, **env))
                same((done.returncode, done.err), (0, ""), "%r" % args)
                same(server.requests, [(framing, method, params)], "request of %r" % args)


def test_which_server():
    with Folder() as folder, Recorder(folder("ash")) as ash, Recorder(folder("koine")) as own:
        env = environment(ASH_RPC_SOCKET=folder("ash"), KOINE_SOCKET=folder("koine"))
        same(koine("memory", "list", env=env).returncode, 0, "exit code")
        same((len(ash.requests), len(own.requests)), (0, 1), "KOINE_SOCKET wins")
        env = environment(ASH_RPC_SOCKET=folder("ash"), XDG_RUNTIME_DIR=folder.path)
        same(koine("memory", "list", env=env).returncode, 0, "exit code")
        same((len(ash.requests), len(own.requests)), (1, 1), "ASH_RPC_SOCKET wins")
        same(koine("memory", "--socket", folder("koine"), "list", env=env).returncode, 0, "exit code")
        same((len(ash.requests), len(own.requests)), (1, 2), "--socket wins")
        for args in (["show", "x"], ["edit", "x"], ["export"], ["import", "-"], ["stats"]):
            done = koine("memory", *args, env=env)
            same(done.returncode, 64, "exit code of %r" % args)
            check("requires koine's own socket" in done.err, "words: %r", done.err)
        same(len(ash.requests), 1, "requests to ash")


def sleeps(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


def dead_socket(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def test_a_daemon_that_comes_late_is_waited_for():
    with Folder() as folder:
        dead_socket(folder("koine.sock"))
        env = environment(KOINE_SOCKET=folder("koine.sock"))
        with subprocess.Popen([KOINE, "memory", "search", "x", "--retries", "6"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as client:
            # Nobody listens, so it can only be waiting to try again.
            wait_until(lambda: sleeps(client.pid), "the client to wait")
            with Daemon(root=folder.path):
                out, err = client.communicate(timeout=120)
        same((client.returncode, out, err), (0, b"No memories found.\n", b""), "late answer")


def test_retries_come_to_an_end():
    with Folder() as folder:
        dead_socket(folder("dead"))
        env = environment(KOINE_SOCKET=folder("dead"))
        with subprocess.Popen([KOINE, "memory", "list"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=env) as client:
            wait_until(lambda: sleeps(client.pid), "the client to wait")
            out, err = client.communicate(timeout=PATIENCE)
        same((client.returncode, out), (69, b""), "dead socket")
        check(b"koined is not running: no answer at" in err, "words: %r", err)
        same(koine("memory", "list", "--retries", "0", env=env).returncode, 69, "no retries")


def test_the_wrong_framing_is_told():
    with Daemon() as d:
        done = koine("memory", "list", "--socket", os.path.join(d.root, "ash.sock"))
        same((done.returncode, done.out), (76, ""), "exit code (%r)" % done.err)
        check("try framing 'length'" in done.err, "words: %r", done.err)


# ---- on a terminal ----


def on_terminal(args, env, columns=60, stdin=subprocess.DEVNULL):
    """What a terminal of so many columns is sent; stderr is another such. Both as lines."""
    ends = [pty.openpty() for _ in range(2)]
    for _, inner in ends:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    got = {outer: b"" for outer, _ in ends}
    client = subprocess.Popen([KOINE, *args], stdin=stdin, stdout=ends[0][1], stderr=ends[1][1],
                              env=env)
    for _, inner in ends:
        os.close(inner)
    left = set(got)
    end = time.monotonic() + PATIENCE
    while left:
        ready = select.select(left, [], [], max(0, end - time.monotonic()))[0]
        check(ready, "%r does not end", args)
        for fd in ready:
            part = b""
            with contextlib.suppress(OSError):  # EIO: the other side is closed
                part = os.read(fd, 65536)
            got[fd] += part
            if not part:
                left.discard(fd)
    for outer, _ in ends:
        os.close(outer)
    out, err = (got[outer].decode().replace("\r\n", "\n") for outer, _ in ends)
    check(not SANITIZER.search(err.encode()), "sanitizer report: %s", err)
    return client.wait(PATIENCE), out, err


def test_tables_fit_the_terminal():
    with Daemon() as d:
        m = Memory(d)
        ids = [m.add(c) for c in ("東京" * 20, "emoji 🎉🎉 " * 6, "short", "e\u0301" * 60)]
        plain = dict(m.env, NO_COLOR="1")
        code, out, _ = on_terminal(["memory", "list"], plain, 68)
        same(code, 0, "exit code")
        day = r"\d{4}-\d\d-\d\d"
        fits(out, re.compile("ID        CREATED     MEMORY\n"
                             "%s  %s  (?:e\u0301){45}…\n" % (ids[3][:8], day)
                             + "%s  %s  short\n" % (ids[2][:8], day)
                             + "%s  %s  emoji 🎉🎉 emoji 🎉🎉 emoji 🎉🎉 emoji 🎉🎉 e…\n" % (ids[1][:8], day)
                             + "%s  %s  (?:東京){11}…\n" % (ids[0][:8], day)),
             "table of 68 columns")
        code, out, _ = on_terminal(["memory", "list"], plain, 24)
        same(out.splitlines()[:3], ["ID        MEMORY", ids[3][:8] + "  " + "e\u0301" * 13 + "…",
                                    ids[2][:8] + "  short"], "narrow table")
        code, out, _ = on_terminal(["memory", "list"], dict(plain, COLUMNS="24"), 60)
        same(out.splitlines()[0], "ID        MEMORY", "COLUMNS wins")


def test_matched_words_are_bold():
    with Daemon() as d:
        m = Memory(d)
        id = m.add("Anna is running in Berlin; she runs every morning before a café breakfast")
        args = ["memory", "search", "Does Anna run to the CAFE?"]
        code, out, _ = on_terminal(args, m.env, 50)
        want = (r"\033[1mSCORE  ID        MEMORY\033[0m" "\n"
                r"SIM  ID  \033[1mAnna\033[0m is \033[1mrunning\033[0m in Berlin; she" "\n"
                r"                 \033[1mruns\033[0m every morning before a \033[1mcafé\033[0m" "\n"
                "                 breakfast\n")
        want = want.replace(r"\033", "\033").replace("ID  \033", id[:8] + "  \033")
        same((code, re.sub(r"(?m)^ [01]\.\d\d ", "SIM ", out)), (0, want), "colours")
        for changes, more in (({"NO_COLOR": "1"}, []), ({}, ["--color", "never"]),
                              ({"TERM": "dumb"}, [])):
            code, out, _ = on_terminal(args + more, dict(m.env, **changes), 50)
            check("\033" not in out and "she\n                 runs" in out, "no colour: %r", out)
        piped = m("search", "running", "--color", "always").out
        check("is \033[1mrunning\033[0m in" in piped, "asked for: %r", piped)


def test_other_tables_fit_it_too():
    with Daemon() as d:
        m = Memory(d)
        name = "a-conversation-with-a-name-that-is-long"
        same(on_terminal(["call", "create_agent", "agent_id=" + name], m.env)[0], 0, "exit code")
        for args, columns, whole in ((["discover"], 80, "runs before all queued calls"),
                                     (["discover", "memory.search"], 80, "0 or less means 10"),
                                     (["project"], 50, "PROJECT"),
                                     (["conversations"], 60, "NAME")):
            code, out, _ = on_terminal(args, dict(m.env, NO_COLOR="1"), columns)
            same(code, 0, "exit code of %r" % args)
            same([row for row in out.splitlines() if len(row) > columns], [], "wide in %r" % args)
            check(whole in " ".join(out.split()), "%r is missing in %r", whole, out)


def test_words_of_scripts_without_spaces_are_bold():
    with Daemon() as d:
        m = Memory(d)
        m("add", "我们星期一在东京见面")
        code, out, _ = on_terminal(["memory", "search", "东京"], m.env)
        same(code, 0, "exit code")
        check("我们星期一在\033[1m东京\033[0m见面" in out, "not marked: %r", out)


def test_long_memories_are_cut_and_text_is_not_turned():
    with Daemon() as d:
        m = Memory(d)
        id = m.add("word \u202e " + "many words " * 200)
        code, out, _ = on_terminal(["memory", "search", "word"], dict(m.env, NO_COLOR="1"), 40)
        lines = out.splitlines()
        same(len(lines), 1 + 6, "lines")
        check(lines[-1].endswith("…") and max(map(len, lines)) <= 40, "lines: %r", lines)
        check("\\u202e" in lines[1], "turns the text: %r", lines[1])
        code, out, _ = on_terminal(["memory", "show", id], dict(m.env, NO_COLOR="1"), 40)
        check(max(map(len, out.split("\n\n", 1)[1].splitlines())) <= 40, "show: %r", out)


def test_empty_on_a_terminal():
    with Daemon() as d:
        m = Memory(d)
        for args in (["memory", "list"], ["memory", "search", "x"]):
            same(on_terminal(args, m.env)[1], "No memories found.\n", "%r" % args)


def test_import_shows_a_bar():
    with Daemon() as d, Folder() as folder:
        m = Memory(d)
        with open(folder("in"), "w") as f:
            for i in range(1200):
                f.write('{"content": "memory number %d"}\n' % i)
        code, out, err = on_terminal(["memory", "import", folder("in")], m.env)
        same((code, out), (0, "Memories imported: 1200\n"), "import")
        check(re.match(r"\r\[#+ *\] +\d+%  \d+ imported.*\r\033\[K$", err, re.S), "bar: %r", err)
        same(m("import", folder("in")).err, "", "bar without a terminal")


# ---- edit ----


def editor(folder, script):
    path = folder("editor")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)
    return path


def test_edit():
    with Daemon() as d, Folder() as folder:
        os.mkdir(folder("tmp"))
        m = Memory(d, TMPDIR=folder("tmp"))
        id = m.add("first line")
        script = editor(folder, 'stat -c %%a "$1" >%s\ncat "$1" >%s\necho "changed é" >"$1"\n'
                        % (folder("mode"), folder("seen")))
        m.env["EDITOR"] = script
        same(m("edit", id[:8]).out, "Memory changed: %s\n" % id[:8], "edit")
        with open(folder("mode")) as f:
            same(f.read(), "600\n", "mode of the file")
        with open(folder("seen")) as f:
            same(f.read(), "first line", "what the editor saw")
        same(json.loads(m("show", id, "--json").out)["content"], "changed é", "content")
        fits(m("search", "changed").out, re.compile(r"SCORE  ID        MEMORY\n .*  changed é\n"), "search")
        same(os.listdir(folder("tmp")), [], "files left behind")

        before = json.loads(m("show", id, "--json").out)["updated_at"]
        m.env["VISUAL"] = "true"
        done = m("edit", id)
        same((done.out, done.err), ("", "koine: no changes made\n"), "VISUAL wins, unchanged")
        same(json.loads(m("show", id, "--json").out)["updated_at"], before, "updated_at")

        m.env["VISUAL"] = script + " " + folder("other") + "; false"
        check("the editor failed" in m("edit", id, code=70).err, "a failing editor")
        m.env["VISUAL"] = "/dev/null/editor"
        check("cannot run the editor" in m("edit", id, code=70).err, "no editor")
        same(os.listdir(folder("tmp")), [], "files left behind")

        m.env["VISUAL"] = editor(folder, 'printf "" >"$1"\n')
        done = m("edit", id, code=1)
        check("content" in done.err and "your text is saved in %s" % folder("tmp") in done.err,
              "refused: %r", done.err)
        same(len(os.listdir(folder("tmp"))), 1, "the text that was kept")
        m("edit", "nosuch", code=1)


# ---- export, import ----


def bare(line):
    entry = json.loads(line)
    return {k: v for k, v in entry.items() if k not in ("id", "updated_at")}


def fill(m):
    m.add("Anna likes tea", "--user", "u1", "-S", "Anna", "--category", "preference")
    m.add("quotes \" \\ and\nlines, é 🎉 \x7f", "-e", "30", "--importance", "1")
    m.add("of the group", "--shared", "--chat", "c1")
    for i in range(1200):
        m.many.append('{"content":"number %d","metadata":{"n":\t%d}}\n' % (i, i))


def test_export_and_import_are_a_round_trip():
    with Daemon() as d, Daemon() as e, Folder() as folder:
        m, other = Memory(d), Memory(e)
        m.many = []
        fill(m)
        m("import", "-", stdin="".join(m.many).encode())
        done = m("export", folder("all"))
        same((done.out, done.err), ("Memories exported: 1203\n", ""), "export")
        same(stat.S_IMODE(os.stat(folder("all")).st_mode), 0o600, "mode")
        same(os.listdir(folder.path), ["all"], "files")
        with open(folder("all")) as f:
            lines = f.read().splitlines()
        same(len(lines), 1203, "lines")
        same(m("export").out.splitlines(), lines, "stdout")
        same(m("export", "-").out.splitlines(), lines, "-")
        same(other("import", folder("all")).out, "Memories imported: 1203\n", "import")
        back = other("export").out.splitlines()
        key = lambda entry: json.dumps(entry, sort_keys=True)
        same(sorted(map(bare, back), key=key), sorted(map(bare, lines), key=key), "memories")
        same(len(m("export", "--user", "u1").out.splitlines()), 1202, "of one user")


def test_export_leaves_special_files_alone():
    with Daemon() as d, Folder() as folder:
        m = Memory(d)
        m.add("one")
        os.mkfifo(folder("pipe"))
        reader = os.open(folder("pipe"), os.O_RDONLY | os.O_NONBLOCK)
        m("export", folder("pipe"))
        same(bare(os.read(reader, 65536))["content"], "one", "through the pipe")
        os.close(reader)
        check(stat.S_ISFIFO(os.stat(folder("pipe")).st_mode), "the pipe was replaced")
        with open(folder("old"), "w") as f:
            f.write("old")
        m.env["KOINE_SOCKET"] = folder("nosuch")
        m("export", folder("old"), code=69)
        with open(folder("old")) as f:
            same(f.read(), "old", "the old file")
        same(sorted(os.listdir(folder.path)), ["old", "pipe"], "files")


def test_export_of_large_memories():
    with Daemon() as d:
        m = Memory(d)
        with Client("unix:" + m.env["KOINE_SOCKET"]) as c:
            for i in range(5):
                c.call("memory.add", {"content": "%d " % i + "x" * (5 << 20)})
        same([bare(line)["content"][0] for line in m("export", timeout=120).out.splitlines()],
             ["4", "3", "2", "1", "0"], "memories")


def test_the_same_words_on_two_days_are_two_memories():
    lines = ['{"content":"rain","created_at":"2026-05-0%dT00:00:00Z"}' % day for day in (1, 2, 2)]
    with Daemon() as d:
        m = Memory(d)
        m("import", "-", stdin="\n".join(lines).encode())
        days = sorted(bare(line)["created_at"][:10] for line in m("export").out.splitlines())
        same(sorted(set(days)), ["2026-05-01", "2026-05-02"], "days")


MCP = b"""\
{"type":"entity","name":"Ada","entityType":"person","observations":["Ada plays the cello","Ada lives in Oslo"]}
{"type":"entity","name":"Cello club","entityType":"group","observations":["The cello club meets on Fridays"]}

{"type":"relation","from":"Ada","to":"Cello club","relationType":"belongs to"}
"""


def test_import_of_the_mcp_memory_server():
    with Daemon() as d:
        m = Memory(d, ASH_USER_ID="u1")
        same(m("import", "-", stdin=MCP).out, "Memories imported: 4\n", "import")
        same(json.loads(m("import", "-", "--json", stdin=b"").out), {"imported": 0}, "nothing")
        rows = [bare(line) for line in m("export").out.splitlines()]
        same(sorted((r["content"], r["category"], r["user_id"], r["subjects"]) for r in rows),
             [("Ada belongs to Cello club", "fact", "u1", ["Ada", "Cello club"]),
              ("Ada lives in Oslo", "entity", "u1", ["Ada"]),
              ("Ada plays the cello", "entity", "u1", ["Ada"]),
              ("The cello club meets on Fridays", "entity", "u1", ["Cello club"])], "memories")


def test_a_bad_line_ends_the_import():
    good = '{"content":"good %d"}'
    many = [good % i for i in range(700)]
    rows = [
        ("not JSON", [good % 1, good % 2, "{", good % 3], 2, "stdin:3: invalid JSON: "),
        ("no object", [good % 1, "[]"], 1, "stdin:2: expected a JSON object"),
        ("refused", [good % 1, "", '{"content":3}', good % 2], 1,
         "stdin:3: Invalid params: entry 1: content must be a string"),
        ("in the second batch", many + ['{"content":""}', good % 701], 700, "stdin:701: "),
        ("bytes that are no text", [good % 1, '{"content":"\udcff"}'], 1, "stdin:2: invalid JSON: "),
        ("a mark and line ends", ["\ufeff" + good % 1 + "\r", good % 2 + "\r", "x"], 2,
         "stdin:3: invalid JSON"),
    ]
    for name, lines, n, words in rows:
        with Daemon() as d:
            m = Memory(d)
            text = "\n".join(lines).encode(errors="surrogateescape")
            done = m("import", "-", stdin=text, code=65)
            check(words in done.err and done.err.count("\n") == 1, "%s: %r", name, done.err)
            same(done.out, "Memories imported: %d\n" % n, name)
            same(json.loads(m("stats", "--json").out)["total"], n, "kept: " + name)


def test_import_sends_small_batches():
    lines = ['{"content":"%d"}' % i for i in range(501)] + ['{"content":"%s"}' % ("x" * 700000)] * 3
    with Folder() as folder, Recorder(folder("s")) as server:
        koine("memory", "import", "-", stdin="\n".join(lines).encode(),
              env=environment(KOINE_SOCKET=folder("s")))
        sizes = [len(json.loads(r[2])["entries"]) for r in server.requests]
        same(sizes, [500, 2, 1, 1], "entries in each call")


# ---- in a sandbox ----


def test_static_binary_alone_in_a_folder():
    if not os.path.exists(STATIC):
        raise Skip("no static binary")
    if os.geteuid() != 0:
        raise Skip("only root may chroot")
    with Folder() as folder:
        os.makedirs(folder("run", "ash"), 0o700)
        shutil.copy(STATIC, folder("koine"))
        args = ("--listen", "ash=unix:" + folder("run/ash/rpc.sock"))
        with Folder() as root, Daemon(*args, root=root.path):
            def inside(*words, **env):
                return subprocess.run(["/koine", "memory", *words], env=env, timeout=PATIENCE,
                                      stdin=subprocess.DEVNULL, capture_output=True,
                                      preexec_fn=lambda: (os.chroot(folder.path), os.chdir("/")))

            for env in ({}, {"ASH_RPC_SOCKET": "/run/ash/rpc.sock", "ASH_USER_ID": "u1"}):
                done = inside("search", "--query", "test", **env)
                same((done.returncode, done.stdout, done.stderr),
                     (0, b"No memories found.\n", b""), "nothing yet")
                same(inside("add", "a test of the sandbox", **env).returncode, 0, "add")
                done = inside("search", "--query", "test", **env)
                check(re.fullmatch(rb"\[[01]\.\d\d\] a test of the sandbox\n", done.stdout),
                      "found: %r %r", done.stdout, done.stderr)
                id = inside("list", **env).stdout.splitlines()[2][:8]
                same(inside("delete", id.decode(), **env).stdout, b"Memory deleted: %s\n" % id,
                     "delete")
            check(b"requires koine's own socket" in inside("stats").stderr, "stats")


if __name__ == "__main__":
    main(globals())
