#!/usr/bin/env python3
"""
koine doctor on a machine that is broken in one way at a time: a real koined in a private home, with
agents connected. It must name what is broken and nothing else, and what it says mends it, if that is
a command, must mend it.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tomllib

from harness import KOINE, KOINED, PATIENCE, SANITIZER, Skip, check, main, same, wait_until
from opencode_server import Opencode
from postgres_server import shared_server
from test_chat_cli import Terminal
from test_codex_trust import CODEX
from test_connect import Home
from test_manager import handing_over

SECRET = "not-for-anybody-0123456789"
CHECKS = ["daemon", "version", "settings", "socket", "ports", "access", "store", "agents",
          "servers", "sessions", "connected", "mcp"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_stopped(pid):
    """By SIGSTOP. A leak check at the end of a process stops it, too, and SIGCONT would make that wait for ever."""
    with contextlib.suppress(FileNotFoundError), open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"
    return False


class Machine(Home):
    """A home where everything is as it should be."""
    patience = "60"  # only what hangs is late

    def __enter__(self):
        super().__enter__()
        for name in ("run", "state", ".claude", ".codex", "tmp"):
            os.mkdir(self(name))
        self.env.update(XDG_STATE_HOME=self("state"), XDG_CONFIG_HOME=self("conf"),
                        TMPDIR=self("tmp"))
        for name, program in (("koine", KOINE), ("koined", KOINED)):
            os.symlink(program, self("bin/" + name))
        self.program("claude", "exit 0")
        self.write("bin/codex", CODEX, 0o755)
        self.write("token", SECRET + "\n", 0o600)
        self.settings()
        self.processes = []
        try:
            self.begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def begin(self):
        self.start()
        for agent in ("claude", "codex"):
            self.connect(agent, "--yes")

    def __exit__(self, *exc):
        self.stop()
        super().__exit__(*exc)

    def settings(self, text=""):
        self.write("conf/koine/koine.conf",
                   "[listen]\nash = off\nhld = off\nocg = off\nnexus = off\n"
                   "[koine]\ntoken_file = %s\n%s" % (self("token"), text))

    @property
    def socket(self):
        return self("run/koine/koine.sock")

    # ---- its daemon ----

    def run(self, argv, env=None, **more):
        process = subprocess.Popen(argv, env=env or self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
        self.processes.append(process)
        return process

    def start(self, program=KOINED, **env):
        process = self.run([program], dict(self.env, **env))
        wait_until(self.answers, "koined")
        return process

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(self.socket)
            except OSError:
                return False
            return True

    def stop(self):
        """Those that we have started, and the one that a remedy has."""
        if os.path.exists(self("run/koine")):
            subprocess.run([KOINE, "daemon", "stop", "--force"], env=self.env, capture_output=True,
                           timeout=PATIENCE)
        for process in self.processes:
            if process.poll() is None:
                if is_stopped(process.pid):
                    os.kill(process.pid, signal.SIGCONT)
                process.terminate()
            try:
                err = process.communicate(timeout=PATIENCE)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            check(not SANITIZER.search(err), "%r", err[:2000])
        self.processes = []

    # ---- its doctor ----

    def doctor(self, *args, **env):
        done = subprocess.run([KOINE, "doctor", "--timeout", self.patience, *args],
                              env=dict(self.env, **env), capture_output=True, timeout=4 * PATIENCE,
                              stdin=subprocess.DEVNULL)
        check(not SANITIZER.search(done.stderr), "%r", done.stderr[:2000])
        same(done.stderr, b"", "stderr")
        check(SECRET not in done.stdout.decode(), "a secret is shown")
        return done.returncode, done.stdout.decode()

    def findings(self, **env):
        code, out = self.doctor("--json", **env)
        got = json.loads(out)
        same(code, 0 if got["ok"] else 1, "exit code")
        same(got["ok"], all(f["state"] != "bad" for f in got["findings"]))
        return got["findings"]

    def bad(self, *names, **env):
        """The findings that are bad: exactly of these checks, one each."""
        found = [f for f in self.findings(**env) if f["state"] == "bad"]
        same([f["check"] for f in found], list(names), "what is bad in %r" % found)
        for f in found:
            check("command" in f or "advice" in f, "%r has no remedy", f)
        return found

    def mend(self, finding):
        """Does what it says, as a user at a shell."""
        command = finding["command"]
        if command.startswith("koine connect"):
            with Terminal(self.env, *command.split()[1:]) as t:
                t.expect("Write these changes? [y/N] ")
                t.type("y\r")
                t.expect("wrote")
                t.leave(0)
        else:
            done = subprocess.run(["/bin/sh", "-c", command], env=self.env, timeout=PATIENCE,
                                  capture_output=True, stdin=subprocess.DEVNULL)
            same(done.returncode, 0, "the end of %r (%r)" % (command, done.stderr))
        self.bad()

    def mend_by_ending(self, finding, process):
        """Ends who is in the way, and starts koined as the next look says."""
        subprocess.run(["/bin/sh", "-c", finding["command"]], check=True)
        process.wait(PATIENCE)
        [finding] = self.bad("daemon")
        self.mend(finding)


# ---- all is well ----


def test_a_machine_that_is_well_is_green():
    with Machine() as m:
        found = m.findings()
        same([f["state"] for f in found], ["ok"] * len(found), found)
        same(list(dict.fromkeys(f["check"] for f in found)), CHECKS)
        code, out = m.doctor()
        same(code, 0)
        check(out.endswith("\nNo problems found.\n"), "%r", out)
        check(all(len(line) <= 80 for line in out.splitlines()), "%s", out)
        check(len(out.splitlines()) <= 24, "more than one screen: %s", out)
        check("\033" not in out, "%r", out)


def test_a_terminal_gets_colours_and_a_pipe_gets_none():
    with Machine() as m:
        os.unlink(m("bin/claude"))
        env = {k: v for k, v in m.env.items() if k != "NO_COLOR"}
        with Terminal(env, "doctor", columns=80) as t:
            t.expect("1 warning")
            t.leave(0)
            check(b"\033[32mok" in t.all and b"\033[33mwarn" in t.all, "%r", t.all)
        check("\033" not in m.doctor()[1], "colours in a pipe")


def test_nothing_is_changed():
    with Machine() as m:
        def files():
            found = {}
            for folder, _, names in os.walk(m.path):
                for name in set(names) - {"asked"}:
                    path = os.path.join(folder, name)
                    st = os.lstat(path)
                    if not path.startswith(m("state")):
                        found[path] = (st.st_mode, st.st_ino, st.st_size, st.st_mtime_ns)
            return found
        before = files()
        m.findings()
        same(files(), before)


def test_it_does_not_need_a_terminal_a_home_or_a_daemon():
    with Machine() as m:
        m.stop()
        env = {k: v for k, v in m.env.items() if k != "HOME"}
        done = subprocess.run([KOINE, "doctor"], env=env, capture_output=True, timeout=PATIENCE)
        same((done.returncode, done.stderr), (1, b""))


def test_it_takes_no_arguments():
    with Machine() as m:
        same(subprocess.run([KOINE, "doctor", "x"], env=m.env, capture_output=True).returncode, 64)


# ---- the daemon ----


def test_no_daemon():
    with Machine() as m:
        m.stop()
        [f] = m.bad("daemon")
        check("is not running" in f["text"] and m.socket in f["text"], "%r", f)
        code, out = m.doctor()
        same((code, out.startswith("BAD   daemon "), out.endswith("\n1 problem to fix.\n")),
             (1, True, True), out)
        check("\n                  fix: %s\n" % f["command"] in out, "%s", out)
        m.mend(f)


def test_a_daemon_that_was_killed():
    with Machine() as m:
        m.processes[0].kill()
        m.processes[0].wait(PATIENCE)
        [f] = m.bad("daemon")
        [dead] = [f for f in m.findings() if f["check"] == "socket"]
        same(dead["state"], "warning")
        check("stale" in dead["text"], "%r", dead)
        m.mend(f)


def test_a_daemon_that_hangs():
    with Machine() as m:
        os.kill(m.processes[0].pid, signal.SIGSTOP)
        m.patience = "5"
        [f] = m.bad("daemon")
        check("is not responding" in f["text"] and str(m.processes[0].pid) in f["text"], "%r", f)
        m.patience = "60"
        m.mend_by_ending(f, m.processes[0])


OTHER = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
os.makedirs(os.path.dirname(sys.argv[1]), 0o700, exist_ok=True)
os.umask(0o177)
s.bind(sys.argv[1])
s.listen()
while True:
    c = s.accept()[0]
    try:
        c.sendall(b"220 welcome\\r\\n")
    except OSError:
        pass
    c.close()
"""


def test_another_program_at_the_socket():
    with Machine() as m:
        m.stop()
        if os.path.exists(m.socket):
            os.unlink(m.socket)
        other = m.run([sys.executable, "-c", OTHER, m.socket])
        wait_until(m.answers, "the other program")
        [f] = m.bad("daemon")
        check("another program" in f["text"] and "pid %d" % other.pid in f["text"], "%r", f)
        same(f["command"], "kill %d" % other.pid)
        m.mend_by_ending(f, other)


def test_a_file_where_the_socket_should_be():
    with Machine() as m:
        m.stop()
        m.write("run/koine/koine.sock", "mine")
        daemon, there = m.bad("daemon", "socket")
        check("advice" in daemon and "not a socket" in there["text"], "%r", daemon)
        subprocess.run(["/bin/sh", "-c", there["command"]], check=True)
        [f] = m.bad("daemon")
        m.mend(f)


def test_a_daemon_of_another_version():
    with Machine() as m:
        m.stop()
        own = subprocess.run([KOINE, "version"], capture_output=True, check=True,
                             timeout=PATIENCE).stdout.split()[1]
        old = bytes(own[:-1]) + (b"9" if own[-1:] != b"9" else b"8")
        with open(KOINED, "rb") as f:
            program = f.read()
        check(b"\0" + own + b"\0" in program, "where is its version?")
        os.mkdir(m("old"))
        with open(m("old/koined"), "wb") as f:
            f.write(program.replace(b"\0" + own + b"\0", b"\0" + old + b"\0"))
        os.chmod(m("old/koined"), 0o755)
        m.start(m("old/koined"))
        [f] = m.bad("version")
        check("koined is %s" % old.decode() in f["text"] and own.decode() in f["text"], "%r", f)
        m.mend(f)


# ---- its settings, and what they name ----


def test_settings_that_koined_refuses():
    with Machine() as m:
        m.settings("[daemon]\nlog_levle = info\n")
        [f] = m.bad("settings")
        check("koine.conf:9" in f["text"] and "log_levle" in f["text"], "%r", f)
        m.settings("[rule nightly]\ncron = 61 * * * *\ncommand = true\n")
        [f] = m.bad("settings")
        check("rule nightly is invalid: " in f["text"] and "koine.conf:" in f["text"] and "'61'" in f["text"], "%r", f)
        m.settings()
        m.bad()


def test_a_port_that_somebody_has():
    with Machine() as m, socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        m.settings("[listen]\nnexus = http:127.0.0.1:%d\n" % port)
        [f] = m.bad("ports")
        check("nexus http:127.0.0.1:%d" % port in f["text"] and "pid %d" % os.getpid() in f["text"],
              "%r", f)
        check("[listen]" in f["advice"] and m("conf/koine/koine.conf") in f["advice"], "%r", f)
        s.close()
        m.bad()


def test_a_port_of_ours_is_nobody_elses():
    with Machine() as m:
        m.stop()
        m.settings("[listen]\nnexus = http:127.0.0.1:%d\n" % free_port())
        m.start()
        m.bad()


def test_a_token_that_others_can_read():
    with Machine() as m:
        os.chmod(m("token"), 0o644)
        [f] = m.bad("access")
        check(m("token") in f["text"], "%r", f)
        m.mend(f)
        same(stat.S_IMODE(os.stat(m("token")).st_mode), 0o600)


def test_users_who_are_let_in_are_named():
    with Machine() as m:
        m.stop()
        m.settings("[listen koine]\nallow_uids = 4711\n")
        m.start()
        m.bad()
        [f] = [f for f in m.findings() if f["check"] == "access"]
        same(f["state"], "warning")
        check("4711" in f["text"], "%r", f)


def test_an_agent_without_its_key():
    with Machine() as m:
        m.stop()
        m.settings("[agent far]\nkind = openai\nurl = http://127.0.0.1:%d/v1\nmodel = m\n"
                   "key_file = %s\n" % (free_port(), m("no-key")))
        m.start()
        [f] = m.bad("agents")
        check("far" in f["text"] and "[agent far]" in f["advice"], "%r", f)


def test_an_agent_that_does_not_answer():
    with Machine() as m:
        m.stop()
        m.settings("[agent far]\nkind = openai\nurl = http://127.0.0.1:%d/v1\nmodel = m\n" %
                   free_port())
        m.start()
        [f] = m.bad("agents")
        check("far" in f["text"], "%r", f)


def test_no_claude_for_the_daemon():
    with Machine() as m:
        m.stop()
        m.start(PATH="/usr/bin:/bin")
        [f] = m.bad("sessions")
        check("not in koined's" in f["text"] and m("bin/claude") in f["advice"], "%r", f)
        m.stop()
        m.settings("[session]\nprogram = %s\n" % m("bin/claude"))
        m.start(PATH="/usr/bin:/bin")
        m.bad()


# ---- servers that agents work in ----


def servers(m):
    return [f for f in m.findings() if f["check"] == "servers"]


def becomes(m, state, words):
    """Koined connects, and tries again, in its own time."""
    return wait_until(lambda: next((f for f in servers(m) if f["state"] == state and words in f["text"]), None),
                      "%s: %s" % (state, words))


def begin_with_server(m, fake, *more):
    m.stop()
    m.settings("".join("%s\n" % line for line in ("[agent-server opencode]", "url = " + fake.url, *more)))
    m.start()


def test_a_server_of_an_agent():
    with Machine() as m, Opencode() as fake:
        begin_with_server(m, fake)
        same(becomes(m, "ok", "opencode")["text"], "opencode responds", "text")
        m.bad()
        fake.stop()
        f = becomes(m, "warning", "is not responding at %s: " % fake.url)
        check("[agent-server opencode]" in f["advice"] and m("conf/koine/koine.conf") in f["advice"], "%r", f)
        m.bad()
        fake.broken = "elsewhere"
        fake.start()
        f = becomes(m, "bad", "HTTP 404; check that the server is opencode")
        check("url in [agent-server opencode]" in f["advice"], "%r", f)
        m.bad("servers")


def test_a_server_whose_password_is_another():
    with Machine() as m, Opencode(password="right") as fake:
        begin_with_server(m, fake)
        becomes(m, "bad", "the server requires a password")
        m.write("password", "%s-wrong\n" % SECRET, 0o600)
        begin_with_server(m, fake, "password_file = " + m("password"))
        f = becomes(m, "bad", "the server rejected the password (HTTP 401)")
        check("password_file" in f["advice"] and "[agent-server opencode]" in f["advice"], "%r", f)
        m.bad("servers")
        m.write("password", "right\n", 0o600)
        becomes(m, "ok", "opencode responds")
        os.unlink(m("password"))
        fake.cut()
        becomes(m, "bad", "password")


# ---- its files ----


def test_a_folder_that_others_may_write_to():
    with Machine() as m:
        os.chmod(m("run/koine"), 0o777)
        [f] = m.bad("socket")
        check(m("run/koine") in f["text"], "%r", f)
        m.mend(f)


def test_a_folder_of_somebody_else():
    if os.getuid() != 0:
        raise Skip("only root can give folders away")
    with Machine() as m:
        os.chown(m("run/koine"), 12345, -1)
        [f] = m.bad("socket")
        check("12345" in f["text"], "%r", f)
        m.mend(f)


def test_a_socket_that_is_open_to_all():
    with Machine() as m:
        os.chmod(m.socket, 0o666)
        [f] = m.bad("socket")
        check("0666" in f["text"], "%r", f)
        m.mend(f)


def test_a_store_that_others_can_read():
    with Machine() as m:
        os.chmod(m("state/koine/koine.db"), 0o644)
        [f] = m.bad("store")
        m.mend(f)


def test_a_store_of_somebody_else():
    if os.getuid() != 0:
        raise Skip("only root can give files away")
    with Machine() as m:
        m.stop()
        os.chown(m("state/koine/koine.db"), 12345, -1)
        daemon, store = m.bad("daemon", "store")
        check("advice" in daemon and "12345" in store["text"], "%r", daemon)
        subprocess.run(["/bin/sh", "-c", store["command"]], env=m.env, check=True,
                       capture_output=True, timeout=PATIENCE)
        [f] = m.bad("daemon")
        m.mend(f)


def test_a_store_that_is_no_store():
    with Machine() as m:
        m.stop()
        m.write("state/koine/koine.db", "x" * 4096, 0o600)
        same([f["check"] for f in m.bad("daemon", "store")], ["daemon", "store"])


def test_remote_store_that_is_not_verified_is_a_warning():
    with shared_server() as server, Machine() as m:
        server.database("remote")
        m.stop()
        m.settings("[store]\nurl = postgresql://koine@0.0.0.0:%d/remote\n" % server.port)
        m.start()
        [f] = [f for f in m.findings() if f["state"] != "ok"]
        check(f["state"] == "warning" and "sslmode=verify-full" in f["text"], "%r", f)


@contextlib.contextmanager
def small_disk(path, size):
    """A file system of its own."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=0700" % size, "tmpfs", path],
                          capture_output=True)
    if done.returncode != 0:
        raise Skip("no mounting here: %s" % done.stderr.decode().strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_a_disk_that_is_full():
    with Machine() as m:
        m.stop()
        with small_disk(m("state"), "80m"):
            m.start()
            with open(m("state/much"), "wb") as f:
                f.write(b"x" * (40 << 20))
            [f] = m.bad("store")
            check("MB free" in f["text"] and m("state/koine") in f["text"], "%r", f)
            os.unlink(m("state/much"))
            same([f["state"] for f in m.findings() if f["check"] == "store"], ["warning"])
            m.stop()


def test_a_disk_that_is_read_only():
    with Machine() as m:
        m.stop()
        with small_disk(m("state"), "2g"):
            m.start()
            m.stop()
            subprocess.run(["mount", "-o", "remount,ro", m("state")], check=True)
            daemon, store = m.bad("daemon", "store")
            check("read-only" in store["text"], "%r", store)
            subprocess.run(["/bin/sh", "-c", store["command"]], check=True)
            [f] = m.bad("daemon")
            m.mend(f)
            m.stop()


# ---- agents that are connected ----


def test_a_hook_that_was_taken_out():
    with Machine() as m:
        settings = json.loads(m.read(".claude/settings.json"))
        del settings["hooks"]["PermissionRequest"]
        m.write(".claude/settings.json", json.dumps(settings))
        [f] = m.bad("connected")
        check("Claude Code" in f["text"] and ".claude/settings.json" in f["text"], "%r", f)
        m.mend(f)


def test_a_server_that_was_taken_out():
    with Machine() as m:
        m.write(".claude.json", "{}")
        [f] = m.bad("connected")
        check(".claude.json" in f["text"], "%r", f)
        m.mend(f)


def test_a_koine_that_is_gone():
    for name in (".claude/settings.json", ".claude.json", ".codex/config.toml"):
        with Machine() as m:
            m.write(name, m.read(name).replace(KOINE, "/gone/koine"))
            [f] = m.bad("connected")
            check("/gone/koine" in f["text"], "%r", f)
            m.mend(f)


def test_another_koine_is_only_a_warning():
    with Machine() as m:
        os.mkdir(m("there"))
        shutil.copy(KOINE, m("there/koine"))
        m.write(".claude.json", m.read(".claude.json").replace(KOINE, m("there/koine")))
        m.bad()
        [f] = [f for f in m.findings() if f["check"] == "connected" and f["state"] != "ok"]
        check(f["state"] == "warning" and m("there/koine") in f["text"], "%r", f)


def test_broken_agent_file_is_an_error():
    for name, text, words in ((".claude/settings.json", "{", "line 1: invalid JSON"),
                              (".claude.json", '{\n"mcpServers": {', "invalid JSON"),
                              (".codex/config.toml", "a = [", "invalid TOML")):
        with Machine() as m:
            was = m.read(name)
            m.write(name, text)
            [f] = m.bad("connected")
            check(words in f["text"] and m(name) in f["text"], "%r", f)
            m.write(name, was)
            m.bad()


def test_file_that_koine_does_not_edit_is_a_warning():
    with Machine() as m:
        m.write(".codex/config.toml", "[mcp_servers]\nkoine.command = 'koine'\n")
        m.bad()
        [f] = [f for f in m.findings() if f["state"] == "warning"]
        check("line 2: mcp_servers.koine" in f["text"], "%r", f)


def with_setting(text, keys, value):
    """A JSON text with one setting more."""
    settings = json.loads(text)
    place = settings
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = value
    return json.dumps(settings, indent=2)


def test_switched_off_koine_is_an_error():
    offs = (("claude", ".claude/settings.json", ("disableAllHooks",), True),
            ("claude", ".claude/settings.json", ("permissions", "deny"), ["Bash", "mcp__koine"]),
            ("copilot", ".copilot/settings.json", ("disableAllHooks",), True),
            ("gemini", ".gemini/settings.json", ("mcp", "excluded"), ["koine"]),
            ("gemini", ".gemini/settings.json", ("mcp", "allowed"), ["other"]),
            ("gemini", ".gemini/settings.json", ("hooksConfig", "enabled"), False),
            ("opencode", ".config/opencode/opencode.json", ("mcp", "koine", "enabled"), False),
            ("opencode", ".config/opencode/opencode.json", ("tools", "koine_*"), False),
            ("opencode", ".config/opencode/opencode.json", ("permission", "koine*"), "deny"),
            ("copilot", ".copilot/mcp-config.json", ("mcpServers", "koine", "tools"), []),
            ("copilot", ".copilot/mcp-config.json", ("mcpServers", "koine", "disabled"), True),
            ("zed", ".config/zed/settings.json", ("disable_ai",), True),
            ("zed", ".config/zed/settings.json", ("context_servers", "koine", "enabled"), False))
    with Machine() as m:
        m.env.pop("XDG_CONFIG_HOME")
        m.stop()
        os.makedirs(m(".config"))
        os.rename(m("conf/koine"), m(".config/koine"))
        m.start()
        for agent, name, keys, value in offs:
            os.makedirs(os.path.dirname(m(name)), exist_ok=True)
            m.connect(agent, "--yes", "--gate")
            was = m.read(name)
            m.write(name, with_setting(was, keys, value), 0o600)
            [f] = m.bad("connected")
            check("turns off" in f["text"] and m(name) in f["text"] and "line " in f["text"],
                  "%r", f)
            check(keys[-1] in f["advice"], "%r", f)
            m.write(name, was, 0o600)
            m.bad()


def test_koine_switched_off_in_another_file_is_an_error():
    offs = (("gemini", ".gemini", "mcp-server-enablement.json", {"koine": {"enabled": False}}),
            ("vscode", "conf/Code/User", "settings.json", {"chat.mcp.access": "none"}),
            ("vscode", "conf/Code/User", "settings.json", {"chat.disableAIFeatures": True}))
    with Machine() as m:
        for agent, folder, name, settings in offs:
            os.makedirs(m(folder), exist_ok=True)
            m.connect(agent, "--yes")
            m.bad()
            m.write(folder + "/" + name, json.dumps(settings, indent=1))
            [f] = m.bad("connected")
            check("turns off" in f["text"] and name in f["text"], "%r", f)
            os.unlink(m(folder + "/" + name))


def test_koine_switched_off_for_a_project_is_a_warning():
    with Machine() as m:
        text = with_setting(m.read(".claude.json"), ("projects",), {
            "/here": {"disabledMcpServers": []}, "/there": {"disabledMcpServers": ["koine"]}})
        m.write(".claude.json", text)
        m.bad()
        [f] = [f for f in m.findings() if f["state"] == "warning" and f["check"] == "connected"]
        check("turns off koine's tools for /there" in f["text"], "%r", f)


def test_settings_that_leave_koine_on_are_no_error():
    with Machine() as m:
        os.makedirs(m(".gemini"))
        m.connect("gemini", "--yes")
        was = m.read(".gemini/settings.json")
        for value in ({"allowed": []}, {"allowed": ["other", "koine"]}, {"excluded": ["other"]}):
            m.write(".gemini/settings.json", with_setting(was, ("mcp",), value), 0o600)
            m.bad()


def test_codex_with_koine_switched_off_is_an_error():
    with Machine() as m:
        was = m.read(".codex/config.toml")
        for text in (was.replace("[mcp_servers.koine]\n", "[mcp_servers.koine]\nenabled = false\n"),
                     was.replace("[mcp_servers.koine]\n", "[mcp_servers.koine]\nenabled_tools = []\n"),
                     "[features]\nhooks = false\n\n" + was,
                     was.replace("trusted_hash", "enabled = false\ntrusted_hash", 1)):
            check(text != was, "nothing was changed")
            m.write(".codex/config.toml", text)
            [f] = m.bad("connected")
            check("Codex" in f["text"] and "turns off" in f["text"], "%r", f)
        m.write(".codex/config.toml", was)
        m.bad()


def test_stale_gate_is_found_and_renewed():
    with Machine() as m:
        m.connect("claude", "--yes", "--gate")
        m.bad()
        text = m.read(".claude/settings.json")
        gate = json.loads(text)["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        m.write(".claude/settings.json",
                with_setting(text, ("hooks", "PreToolUse"),
                             json.loads(json.dumps(json.loads(text)["hooks"]["PreToolUse"])
                                        .replace(gate, gate.replace(KOINE, "/gone/koine")))))
        [f] = m.bad("connected")
        check("/gone/koine" in f["text"], "%r", f)
        m.mend(f)
        same(json.loads(m.read(".claude/settings.json")), json.loads(text))


# ---- what it prints can be run ----


def test_commands_name_programs_that_a_shell_would_not_find():
    with Machine() as m:
        for name in ("koine", "koined"):
            os.unlink(m("bin/" + name))
        m.stop()
        [f] = m.bad("daemon")
        check(f["command"].startswith("'/"), "%r", f)
        m.mend(f)


def test_daemon_that_koine_did_not_start_gets_no_command_that_starts_another():
    with Machine() as m:
        m.stop()
        found = json.loads(m.doctor("--json", "--socket", m("x.sock"))[1])["findings"]
        [f] = [f for f in found if f["state"] == "bad" and f["check"] == "daemon"]
        check("command" not in f and m("x.sock") in f["advice"], "%r", f)


def test_command_for_a_path_with_a_quote_can_be_run():
    with Machine() as m:
        m.stop()
        shutil.rmtree(m("run"))
        os.mkdir(m("r'n"))
        m.env["XDG_RUNTIME_DIR"] = m("r'n")
        subprocess.run([KOINE, "daemon", "start"], env=m.env, check=True, capture_output=True,
                       timeout=PATIENCE)
        try:
            os.chmod(m("r'n/koine/koine.sock"), 0o666)
            done = m.doctor("--json")
            [f] = [f for f in json.loads(done[1])["findings"] if f["check"] == "socket"]
            subprocess.run(["/bin/sh", "-c", f["command"]], env=m.env, check=True,
                           capture_output=True, timeout=PATIENCE)
            same(stat.S_IMODE(os.stat(m("r'n/koine/koine.sock")).st_mode), 0o600)
        finally:
            subprocess.run([KOINE, "daemon", "stop"], env=m.env, check=True, capture_output=True,
                           timeout=PATIENCE)


def test_agent_that_does_not_start_koined_is_a_warning():
    with Machine() as m:
        m.write(".claude.json", m.read(".claude.json").replace('"--start"', '"--tools", "memory"'))
        m.bad()
        [f] = [f for f in m.findings() if f["state"] == "warning"]
        check("nothing starts koined automatically" in f["text"], "%r", f)
        m.mend(f)
        same([f["state"] for f in m.findings() if f["state"] != "ok"], [])


def test_no_agent_is_connected():
    with Machine() as m:
        for agent in ("claude", "codex"):
            m.connect(agent, "--yes", "--undo")
        m.bad()
        [f] = [f for f in m.findings() if f["state"] == "warning"]
        same(f["command"], "koine connect")


def test_a_hook_that_codex_does_not_trust():
    with Machine() as m:
        text = m.read(".codex/config.toml")
        m.write(".codex/config.toml", text[:text.index("\n[hooks.state")])
        [f] = m.bad("connected")
        check("Codex does not run koine's hooks" in f["text"], "%r", f)
        m.mend(f)
        # It is trusted, but as it was.
        m.write(".codex/config.toml", re.sub("sha256:.", "sha256:z", text))
        [f] = m.bad("connected")
        m.mend(f)
        check(tomllib.loads(m.read(".codex/config.toml"))["hooks"]["state"], "no trust")
        os.unlink(m("bin/codex"))
        m.bad()
        [f] = [f for f in m.findings() if f["state"] == "warning"]
        check("/hooks" in f["advice"], "%r", f)


def begin_with_port(m, port):
    """A koined whose port a service manager holds."""
    m.stop()
    m.settings("[listen]\nmcp = on\n")
    own = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(m.socket)
    own.bind(m.socket)
    os.chmod(m.socket, 0o600)
    own.listen(16)
    with own:
        given = handing_over(own, port, names="koine:mcp")
        m.run([*given["wrapper"], KOINED], dict(m.env, **given["env"]),
              preexec_fn=given["preexec_fn"], pass_fds=given["pass_fds"])
        wait_until(m.answers, "koined")


def test_hooks_by_http_that_koined_does_not_take():
    with Machine() as m, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(16)
        port = "127.0.0.1:%d" % held.getsockname()[1]
        begin_with_port(m, held)
        m.connect("claude", "--http", "--yes")
        m.bad()
        text = m.read(".claude/settings.json")
        check(port in text, "no hook goes there")
        for was, now in ((port, "127.0.0.1:1"), ("Bearer ", "Bearer x")):
            m.write(".claude/settings.json", text.replace(was, now), 0o600)
            [f] = m.bad("connected")
            check("Claude Code sends" in f["text"] and "--http" in f["command"], "%r", f)
            m.mend(f)
        m.stop()
        m.settings()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(m.socket)
        m.start()
        [f] = m.bad("connected")
        check("does not listen on a port" in f["text"], "%r", f)
        m.mend(f)


def test_hooks_by_http_at_a_port_that_nobody_holds_are_a_warning():
    with Machine() as m, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(16)
        port = "127.0.0.1:%d" % held.getsockname()[1]
        begin_with_port(m, held)
        m.connect("claude", "--http", "--yes")
        m.stop()
        held.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(m.socket)
        m.settings("[listen]\nmcp = http:%s\n" % port)
        m.start()
        m.bad()
        found = [f for f in m.findings() if f["state"] == "warning" and f["check"] == "connected"]
        same(len(found), 1, found)
        check("no systemd socket unit reserves" in found[0]["text"], "%r", found)
        m.mend(found[0])
        same([f for f in m.findings() if f["state"] != "ok" and f["check"] == "connected"], [])


# ---- other places ----


def test_a_socket_that_was_named():
    with Machine() as m:
        m.stop()
        process = m.run([KOINED, "--root", m("r"), "--set", "koine.token_file="])
        wait_until(lambda: os.path.exists(m("r/koine.sock")), "koined")
        for agent in ("claude", "codex"):
            m.connect(agent, "--yes", "--socket", m("r/koine.sock"))
        code, out = m.doctor("--json", "--socket", m("r/koine.sock"))
        found = json.loads(out)["findings"]
        same((code, [f for f in found if f["state"] != "ok"]), (0, []))
        # What another socket is in the files is mended for this one.
        m.connect("claude", "--yes")
        [f] = [f for f in json.loads(m.doctor("--json", "--socket", m("r/koine.sock"))[1])["findings"]
               if f["state"] == "bad"]
        same(f["command"], "koine connect claude --socket '%s'" % m("r/koine.sock"))
        process.terminate()


if __name__ == "__main__":
    main(globals())
