#!/usr/bin/env python3
"""
What create_agent says of an agent's place and powers: refused where it is wrong, and where it is
right the programs of the conversation keep to it, after a restart, too.
"""
import contextlib
import ctypes
import os
import sys

from harness import KOINE, Daemon, Folder, Skip, check, main, same, wait_until
from nexus_client import Nexus, Stream
from provider import agent_flags

AGENT = """#!/bin/sh
line=$(tail -n 1)
(eval "${line#User: }") 2>&1
exit 0
"""


def landlock_abi():
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(444, None, 0, 1)


def needs_landlock():
    if landlock_abi() < 3:
        raise Skip("this kernel's Landlock is older than ABI 3")


def script(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


# Posts to a conversation that may write anywhere, and has nobody hold the socket meanwhile: it is on its
# way through another. What is corked leaves by itself after a while.
HIDE = r"""
import array, json, select, socket, sys
near, far = socket.socketpair()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "send",
                   "params": {"content": "echo x > " + sys.argv[2]}}).encode()
head = "POST /agent/free HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
answered = select.epoll()
answered.register(s, select.EPOLLIN)
s.sendall(head.encode() + body)
near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
s.close()
answered.poll()
fd = array.array("i", far.recvmsg(1, 64)[1][0][2])[0]
print(socket.socket(fileno=fd).recv(65536).decode())
"""


class World:
    """A daemon whose agent runs the last line it is told as a shell would, and folders for it."""

    def __init__(self, *args, command=None, **opts):
        self.args, self.command, self.opts = args, command, opts

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = stack.enter_context(Folder())
            for name in "work", "work/sub", "work/out", "other", "state":
                os.mkdir(self.folder(name))
            program = script(self.folder("agent"), AGENT)
            flags = agent_flags("sh", kind="command", command=self.command or program,
                                input="stdin", state=self.folder("state"))
            self.daemon = stack.enter_context(
                Daemon("--agent", "sh", *flags, *self.args, **self.opts))
            self.n = Nexus(self.daemon)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def __call__(self, *names):
        return os.path.realpath(self.folder(*names))

    def make(self, id, **params):
        self.n.call("create_agent", dict(params, agent_id=id, system_prompt=""))
        return self.n.agent(id)

    def refused(self, words, **params):
        error = self.n.refused("create_agent", dict(params, agent_id="wrong"))
        same((error.code, error.message), (-32602, words), "refusal of %r" % params)

    def row(self, id):
        return next(a for a in self.n.call("list_agents")["agents"] if a["agent_id"] == id)


def can_write(agent, path):
    """Whether its program could make a file there, as it says and as we see."""
    told = agent.says("echo mine > '%s' && echo done" % path).strip()
    wrote = os.path.exists(path)
    same(told == "done", wrote, "%s: it says %r" % (path, told))
    return wrote


# ---- wrong ----


def test_what_is_wrong_is_refused_by_its_name():
    with World() as w:
        script(w("work/file"), "")
        for words, params in (
                ("preset must be string, got: int", {"preset": 5}),
                ("Invalid preset: yolo. Valid: ['sandboxed', 'trusted']", {"preset": "yolo"}),
                ("Invalid preset: . Valid: ['sandboxed', 'trusted']", {"preset": ""}),
                ("cwd must be string, got: list", {"cwd": []}),
                ("cwd must be an absolute path: work", {"cwd": "work"}),
                ("cwd must be an absolute path: ", {"cwd": ""}),
                ("cwd does not exist: %s" % w("work/no"), {"cwd": w("work/no")}),
                ("cwd is not a directory: %s" % w("work/file"), {"cwd": w("work/file")}),
                ("cwd has a character that is not allowed in a path", {"cwd": "/a\0b"}),
                ("cwd has a character that is not allowed in a path", {"cwd": "/a\nb"}),
                ("disable_tools must be array, got: str", {"disable_tools": "x"}),
                ("disable_tools[1] must be string, got: int", {"disable_tools": ["x", 7]}),
                ("disable_tools[0] is not the name of a tool: '-x'", {"disable_tools": ["-x"]}),
                ("disable_tools[0] is not the name of a tool: 'a,b'", {"disable_tools": ["a,b"]}),
                ("allowed_write_paths must be array, got: str", {"allowed_write_paths": "/"}),
                ("allowed_write_paths[0] must be string, got: NoneType",
                 {"allowed_write_paths": [None]}),
                ("allowed_write_paths[0] does not exist: %s" % w("work/no"),
                 {"allowed_write_paths": ["no"], "cwd": w("work")}),
                ("allowed_write_paths[0] must be an absolute path, because cwd is not set: out",
                 {"allowed_write_paths": ["out"]}),
                ("allowed_write_path '%s' is outside sandbox root '%s'" % (w("other"), w("work")),
                 {"allowed_write_paths": [w("other")], "cwd": w("work"), "preset": "sandboxed"}),
                ("allowed_write_path '%s' is outside sandbox root '%s'" % (w("other"), w("work")),
                 {"allowed_write_paths": ["../other"], "cwd": w("work"), "preset": "sandboxed"}),
                ("parent_agent_id must be string, got: int", {"parent_agent_id": 1}),
                ("Parent agent not found: nobody", {"parent_agent_id": "nobody"}),
                ("Parent agent not found: a b", {"parent_agent_id": "a b"})):
            w.refused(words, **params)
        same([a["agent_id"] for a in w.n.call("list_agents")["agents"]], ["default"], "agents")


def test_a_tool_that_cannot_be_taken_away_is_refused():
    with World() as w:
        w.refused("cannot disable tools: the command of agent 'sh' has no placeholder {disabled_tools}", cwd=w("work"),
                  disable_tools=["Bash"])
        w.make("quoting", disable_tools=["Bash"], model="recall")


# ---- right ----


def test_a_command_runs_in_the_folder_of_its_conversation():
    with World() as w:
        a = w.make("a", cwd=w("work"))
        same(a.says("pwd; echo $PWD").split(), [w("work")] * 2, "where it runs")
        same((w.row("a")["cwd"], w.row("a")["permission_level"]), (w("work"), None))
        os.symlink(w("work"), w("link"))
        same(w.make("b", cwd=w.folder("link", "sub", "..")).says("pwd -P").strip(), w("work"))
        w.daemon.stop()
        w.daemon.start()
        w.daemon.wait_ready()
        w.n = Nexus(w.daemon)
        same(w.n.agent("a").says("pwd").strip(), w("work"), "after a restart")
        same(w.row("a")["cwd"], w("work"), "after a restart")


def test_a_folder_that_has_gone_fails_the_turn_not_the_daemon():
    with World() as w:
        a = w.make("a", cwd=w("other"))
        os.rmdir(w("other"))
        error = a.refused("send", {"content": "pwd"})
        same(error.code, -32603, "code")
        check(w.folder("other") in error.message, "%r", error.message)
        same(w.n.agent("default").says("echo well").strip()[-4:], "well", "others")


def test_a_sandboxed_command_writes_below_its_folder_only():
    needs_landlock()
    with World() as w:
        a = w.make("a", cwd=w("work"), preset="sandboxed")
        same((w.row("a")["permission_level"], w.row("a")["write_paths"]),
             ("SANDBOXED", [w("work")]), "as it is listed")
        check(can_write(a, w("work/new")), "it cannot write in its folder")
        check(can_write(a, w("work/sub/new")), "nor below it")
        check(not can_write(a, w("other/new")), "it wrote outside")
        script(w("other/there"), "before")
        for how in ("echo x >> PLACE", "truncate -s 0 PLACE", "rm -f PLACE", "mv PLACE " + w("work"),
                    "ln PLACE " + w("work/linked"), "mkdir OTHER/dir", "ln -s / OTHER/sym",
                    "mkfifo OTHER/fifo", "mv %s OTHER" % w("work/new"), "rmdir OTHER",
                    "cp %s PLACE" % w("work/new"),
                    "python3 -c \"import os; os.truncate('PLACE', 0)\"",
                    "(setsid sh -c 'echo x > OTHER/later; echo > over' &); until [ -e over ]; do :; done",
                    "ln -s OTHER %s && echo x > %s/through" % (w("work/way"), w("work/way")),
                    "cd OTHER && echo x > here"):
            a.says(how.replace("PLACE", w("other/there")).replace("OTHER", w("other")))
            same(sorted(os.listdir(w("other"))), ["there"], how)
            with open(w("other/there"), encoding="utf-8") as f:
                same(f.read(), "before", how)
        check("root" in a.says("head -c 4 /etc/passwd"), "it cannot read")


def test_what_an_agent_cannot_live_without_stays_writable():
    needs_landlock()
    with World() as w:
        a = w.make("a", cwd=w("work"), preset="sandboxed")
        for how in ("echo x > /dev/null", "echo x > /dev/zero", "echo x > /dev/stderr",
                    "echo x > $TMPDIR/x", "mktemp", "echo x > %s/kept" % w("state"),
                    "python3 -c 'import tempfile; tempfile.TemporaryFile().write(b\"x\")'"):
            same(a.says("(%s) > /dev/null && echo well" % how).strip()[-4:], "well", how)
        private = a.says("echo $TMPDIR; mkdir -p $TMPDIR/a/b/c; echo x > $TMPDIR/a/b/c/d; "
                         "chmod 0 $TMPDIR/a/b; stat -c %a $TMPDIR").split()
        same(private[1], "700", "its mode")
        wait_until(lambda: not os.path.exists(private[0]), "the private folder to go")
        check(private[0] != a.says("echo $TMPDIR").strip(), "it is nobody else's")
        same(os.listdir(w("state")), ["kept"], "its state")
        # Nothing of the kind for those that may write anywhere.
        check("koine-agent" not in w.make("b", cwd=w("work")).says("echo [$TMPDIR]"), "its TMPDIR")


def test_allowed_write_paths_are_all_that_is_writable():
    needs_landlock()
    with World() as w:
        script(w("work/one"), "before")
        a = w.make("a", cwd=w("work"), preset="sandboxed", allowed_write_paths=["out", w("work/one")])
        same(w.row("a")["write_paths"], [w("work/out"), w("work/one")], "as it is listed")
        check(can_write(a, w("work/out/new")), "it cannot write where it may")
        check(not can_write(a, w("work/new")), "it wrote elsewhere in its folder")
        a.says("echo after > one")
        with open(w("work/one"), encoding="utf-8") as f:
            same(f.read(), "after\n", "a file")
        none = w.make("none", cwd=w("work"), preset="sandboxed", allowed_write_paths=[])
        same(w.row("none")["write_paths"], [], "as it is listed")
        check(not can_write(none, w("work/new")), "it wrote where nothing was allowed")
        # One that is trusted keeps to what was named for it, too, wherever that is.
        t = w.make("t", cwd=w("work"), preset="trusted", allowed_write_paths=[w("other")])
        same(w.row("t")["permission_level"], "TRUSTED")
        check(can_write(t, w("other/new")), "it cannot write where it may")
        check(not can_write(t, w("work/new")), "it wrote elsewhere")
        # And without a folder there is nothing to write in.
        free = w.make("free", preset="sandboxed")
        same(w.row("free")["write_paths"], [], "as it is listed")
        check(not can_write(free, w("work/new")), "it wrote somewhere")


def test_a_sandboxed_command_makes_no_devices():
    """A disk's would be a way to write everywhere."""
    needs_landlock()
    if os.geteuid() != 0:
        raise Skip("only root makes devices")
    with World() as w:
        a = w.make("a", cwd=w("work"), preset="sandboxed")
        told = a.says("mknod c c 1 3; mknod b b 7 0; mkfifo fifo")
        same([os.path.exists(w.folder("work", name)) for name in ("c", "b", "fifo")],
             [False, False, True], "made (%s)" % told)


def test_a_place_that_became_another_is_no_longer_allowed():
    needs_landlock()
    with World() as w:
        a = w.make("a", cwd=w("work"), preset="sandboxed", allowed_write_paths=["out"])
        os.rename(w("work/out"), w("work/old"))
        os.symlink(w("other"), w.folder("work", "out"))
        error = a.refused("send", {"content": "echo x > %s/new" % w("other")})
        check("work/out was replaced after the conversation was created" in error.message, "%r", error.message)
        same(os.listdir(w("other")), [], "outside")


def test_the_sandbox_holds_after_a_restart_and_for_other_clients():
    needs_landlock()
    with World() as w:
        w.make("a", cwd=w("work"), preset="sandboxed")
        w.daemon.stop()
        w.daemon.start()
        w.daemon.wait_ready()
        w.n = Nexus(w.daemon)
        check(not can_write(w.n.agent("a"), w("other/new")), "it wrote outside")
        for params in {}, {"agent": "sh"}:
            with Stream(w.daemon, "echo x > %s/new" % w("other"), conversation="a",
                        **params) as stream:
                check("denied" in stream.answer()["content"], "%r", stream.text)
            same(os.listdir(w("other")), [], "outside")


def test_nobody_writes_for_one_that_may_not():
    needs_landlock()
    with World() as w:
        def ask(agent, method, params="{}", how="%s"):
            """What its program is told, by a way of its own to start koine."""
            line = "%s --socket %s call %s '%s'" % (KOINE, w.daemon.socket_path, method, params)
            return agent.says("cd %s; rm -f told over; %s; until [ -e over ]; do :; done; cat told" %
                              (w("work"), how % ("(%s > told 2>&1; echo > over)" % line)))

        free = w.make("free", cwd=w("work"))
        a = w.make("a", cwd=w("work"), preset="sandboxed")
        check("pong" in ask(free, "ping") and "pong" in ask(a, "ping"), "ping")
        check('"total"' in ask(free, "list_agents"), "one that may write anywhere")
        orphan = '(setsid sh -c "%s" &)'
        for method, params, how in (
                ("create_agent", "{}", "%s"), ("create_agent", "{}", orphan),
                ("daemon.stop", "{}", orphan), ("send", '{"content":"id"}', "%s"),
                ("chat.stream", '{"content":"id"}', "%s"), ("task.submit", '{"prompt":"id"}', "%s"),
                ("store.backup", '{"path":"%s"}' % w.folder("other", "b"), "%s")):
            told = ask(a, method, params, how)
            check("read-only agent may not call " + method in told, "%s: %r", method, told)
        check('"memories"' in ask(a, "memory.list") or "[" in ask(a, "memory.list"), "memory")
        told = ask(a, "hook.run", '{"input":{"hook_event_name":"Stop","session_id":"s"}}')
        check("read-only agent may not call agent.note" in told, "a note by its hook: %r", told)
        told = ask(a, "hook.run", '{"input":{"hook_event_name":"SessionStart","session_id":"s"}}')
        check('"output"' in told, "memories by its hook: %r", told)
        with w.daemon.connect() as c:
            same(c.call("event.list", {"types": ["agent.*"]})["events"], [], "notes")
        url = "http://127.0.0.1:%d/" % w.n.port
        post = ("python3 -c \"import urllib.request as u; print(u.urlopen('%s', b'{}'.replace(b'{}', "
                "bytes.fromhex('%s'))).read().decode())\"")
        body = b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"content":"id"}}'
        told = a.says(post % (url, (body % b"send").hex()))
        check("read-only agent may not call send" in told, "over HTTP: %r", told)
        told = free.says(post % (url, (body % b"get_context").hex()))
        check('"message_count"' in told, "over HTTP, one that may: %r", told)
        same(os.listdir(w("other")), [], "outside")
        # We are nobody's agent.
        w.make("b")
        with w.daemon.connect() as c:
            c.call("create_agent", {"agent_id": "c"})


def test_who_hides_its_processes_gets_nobody_to_write():
    """A port is known by who holds the socket: for a moment that may be nobody."""
    needs_landlock()
    with World() as w:
        w.make("free", cwd=w("work"))
        a = w.make("a", cwd=w("work"), preset="sandboxed")
        script(w("work/hide.py"), HIDE)
        told = a.says("python3 hide.py %d %s" % (w.n.port, w.folder("other", "new")))
        check("read-only agent may not call send" in told, "%r", told)
        same(os.listdir(w("other")), [], "outside")
        w.make("b")


def test_a_child_is_no_more_than_its_parent():
    needs_landlock()
    with World() as w:
        w.make("p", cwd=w("work"), preset="sandboxed")
        for words, params in (
                ("Requested preset 'trusted' exceeds parent ceiling", {"preset": "trusted"}),
                ("cwd '%s' is outside parent's cwd '%s'" % (w("other"), w("work")),
                 {"cwd": w("other")}),
                ("cwd '%s' is outside parent's cwd '%s'" % (w(), w("work")), {"cwd": ".."}),
                ("allowed_write_path '%s' is outside sandbox root '%s'" % (w("other"), w("work")),
                 {"allowed_write_paths": [w("other")]})):
            w.refused(words, parent_agent_id="p", **params)
        a = w.make("a", parent_agent_id="p")
        same([(r["parent_agent_id"], r["cwd"], r["permission_level"], r["write_paths"])
              for r in (w.row("a"),)], [("p", w("work"), "SANDBOXED", [w("work")])], "as its parent")
        same(w.row("p")["child_count"], 1, "children")
        check(not can_write(a, w("other/new")), "it wrote outside")
        b = w.make("b", parent_agent_id="a", cwd="sub")
        same(w.row("b")["write_paths"], [w("work/sub")], "as it is listed")
        check(not can_write(b, w("work/new")), "it wrote where only its parent may")
        narrow = w.make("narrow", cwd=w("work"), preset="sandboxed", allowed_write_paths=["out"])
        check(can_write(narrow, w("work/out/first")), "it cannot write where it may")
        w.refused("allowed_write_path '%s' is outside parent's allowed paths" % w("work/sub"),
                  parent_agent_id="narrow", allowed_write_paths=["sub"])
        c = w.make("c", parent_agent_id="narrow")
        same(w.row("c")["write_paths"], [w("work/out")], "what its parent may")
        same(w.row(w.make("d", parent_agent_id="narrow", cwd="sub") and "d")["write_paths"], [],
             "of what its parent may, nothing is in its folder")
        check(not can_write(c, w("work/new")), "it wrote where its parent may not")
        # Trusted ones hand down what they have.
        w.make("t", preset="trusted", cwd=w("other"))
        w.make("u", parent_agent_id="t", cwd=w("work"))
        same((w.row("u")["permission_level"], w.row("u")["write_paths"]), ("TRUSTED", None))
        w.n.call("destroy_agent", {"agent_id": "b"})
        same(w.row("a")["child_count"], 0, "children")


def test_children_of_children_end_somewhere():
    with World() as w:
        w.make("a0")
        for i in range(1, 6):
            w.make("a%d" % i, parent_agent_id="a%d" % (i - 1))
        w.refused("Cannot create agent: max nesting depth (5) exceeded", parent_agent_id="a5")


def test_disabled_tools_reach_the_program_and_its_children():
    with Folder() as f:
        program = script(f("agent"), "#!/bin/sh\ncat > /dev/null\nprintf '[%s]' \"$@\"\n")
        with World(command=program + " --no={disabled_tools} last") as w:
            same(w.make("all").says("x"), "[last]", "nothing is disabled")
            a = w.make("a", disable_tools=["Bash", "mcp__x.y:z", "Bash"])
            same(a.says("x"), "[--no=Bash,mcp__x.y:z][last]", "what it is started with")
            same(w.make("b", parent_agent_id="a", disable_tools=["Edit"]).says("x"),
                 "[--no=Bash,mcp__x.y:z,Edit][last]", "its child")
            w.daemon.stop()
            w.daemon.start()
            w.daemon.wait_ready()
            same(Nexus(w.daemon).agent("a").says("x"), "[--no=Bash,mcp__x.y:z][last]", "restarted")


# ---- a kernel that cannot ----


def without_landlock():
    """A program that starts koined where the kernel knows no Landlock."""
    return """#!%s
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ins = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in ins))
prog = struct.pack("HxxxxxxQ", len(ins), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, prog, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
""" % sys.executable


def test_where_the_kernel_cannot_it_is_refused():
    with Folder() as f:
        wrapper = script(f("koined"), without_landlock())
        with World(wrapper=[wrapper]) as w:
            words = ("cannot restrict write access of agent 'sh' (preset, allowed_write_paths): "
                     "Landlock ABI 3 or newer is required, but this kernel does not support Landlock")
            w.refused(words, cwd=w("work"), preset="sandboxed")
            w.refused(words, cwd=w("work"), allowed_write_paths=["out"])
            # What has no program has nothing that could write.
            w.make("quoting", preset="sandboxed", cwd=w("work"), model="recall")
            same(w.make("a", cwd=w("work")).says("pwd").strip(), w("work"), "unconfined")
            # And one of these is not let run by another's name.
            with w.daemon.connect() as c:
                told = c.call_text(b'{"jsonrpc":"2.0","id":1,"method":"chat.stream","params":'
                                   b'{"conversation":"quoting","agent":"sh","content":"echo x"}}')
            check(b"cannot restrict write access" in told, "%r", told)


if __name__ == "__main__":
    main(globals())
