#!/usr/bin/env python3
"""
koine daemon start, stop, restart, enable, disable, log: by systemd's user manager where there is
one, as a plain process where there is none, in the same words.
"""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios

from harness import (KOINE, KOINED, PATIENCE, SANITIZED, SANITIZER, Folder, Skip, check,
                     clean_environment, main, preloaded, same, wait_until)
from service_world import home_environment, make_home, write_settings
from test_page import Browser
from test_units import SOCKETS, users_units
from user_manager import UserManager

OK, USAGE, UNAVAILABLE = 0, 64, 69


class Home:
    """A home of its own, in which koine starts koined; both go with it."""

    def __init__(self, **env):
        self.env = env

    def __enter__(self):
        self.folder = Folder().__enter__()
        self.path = self.folder.path
        make_home(self.path)
        return self

    def __call__(self, *names):
        return self.folder(*names)

    def command(self, *args, env=None):
        return {"args": [KOINE, *args], "stdin": subprocess.DEVNULL, "cwd": self.path,
                "env": clean_environment(home_environment(self.path, {**self.env, **(env or {})}))}

    def koine(self, *args, status=OK, env=None):
        command = self.command(*args, env=env)
        done = subprocess.run(command.pop("args"), capture_output=True, timeout=PATIENCE, **command)
        said = (done.stdout + done.stderr).decode()
        check(done.returncode == status, "koine %s: %d %s", args, done.returncode, said)
        check(not SANITIZER.search(done.stderr), "%s", said)
        return said

    def pid(self):
        return json.loads(self.koine("call", "daemon.status", "--json"))["pid"]

    def log(self):
        with open(self("state", "koine", "koined.log"), encoding="utf-8") as f:
            return f.read()

    def __exit__(self, *exc):
        try:
            pid = self.pid()
        except Exception:  # it does not run, which is well
            pid = None
        if pid:
            os.kill(pid, signal.SIGKILL)
        self.folder.__exit__(*exc)


def gone(pid):
    return not os.path.exists("/proc/%d" % pid) or open("/proc/%d/stat" % pid).read().split()[2] == "Z"


# ---- a plain process ----


def test_a_daemon_is_started_once_and_stopped():
    with Home() as home:
        check("koine daemon start" in home.koine("status", status=UNAVAILABLE), "no advice")
        started = home.koine("daemon", "start")
        pid = home.pid()
        same(started, "koined has started, pid %d\n" % pid)
        same(home.koine("daemon", "start"), "koined is already running, pid %d\n" % pid)
        same(json.loads(home.koine("--json", "daemon", "start")), {"running": True, "pid": pid})
        check("started" in home.koine("daemon", "log"), "no log")
        check(not os.path.exists(home(".humanlayer")), "it listens at an original place")
        # of its own session, so that no terminal ends it
        with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
            same(int(f.read().rsplit(")", 1)[1].split()[3]), pid, "session")
        same(stat.S_IMODE(os.stat(home("state", "koine", "koined.log")).st_mode), 0o600, "mode")
        same(home.koine("daemon", "stop"), "koined has stopped\n")
        check(gone(pid), "it still runs")
        check("koined is not running: no answer at" in home.koine("daemon", "stop", status=UNAVAILABLE), "no words")


def test_of_several_starters_one_starts():
    with Home() as home:
        every = []
        for _ in range(6):
            command = home.command("daemon", "start")
            every.append(subprocess.Popen(command.pop("args"), stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, **command))
        said = [p.communicate(timeout=PATIENCE)[0].decode() for p in every]
        same([p.returncode for p in every], [0] * 6, "exit statuses: %r" % said)
        pid = home.pid()
        same(sorted(said), ["koined has started, pid %d\n" % pid]
             + ["koined is already running, pid %d\n" % pid] * 5, "what they said")
        home.koine("daemon", "stop")


def page_session(koine):
    """A browser that was let in: it says whether it still is."""
    link = koine("page", "--no-open").split("\n")[0]
    b = Browser(link.split("/enter")[0])
    same(b.enter(link).status, 200, "entering")
    return lambda: b.get("/").status


def test_a_restart_keeps_sockets_and_page_sessions():
    with Home() as home:
        home.koine("daemon", "start")
        look = lambda: os.stat(home("run", "koine", "koine.sock"))
        pid, inode = home.pid(), look().st_ino
        page = page_session(home.koine)
        same(home.koine("daemon", "restart", env={"NEW": "here"}), "koined has restarted, pid %d\n" % pid)
        check(home.log().count(" started ") == 2, "it was not restarted")
        same(look().st_ino, inode, "the socket")
        with open("/proc/%d/environ" % pid, "rb") as f:
            check(b"\0NEW=here\0" in f.read() + b"\0", "it has not the environment of who restarts it")
        same(page(), 200, "the page")
        for settings, mode in ("[listen koine]\nallow_uids = 65534\n", 0o666), ("", 0o600):
            write_settings(home.path, settings)
            home.koine("daemon", "restart")
            same((look().st_ino, stat.S_IMODE(look().st_mode)), (inode, mode), "the socket with %r" % settings)
        write_settings(home.path, "[daemon]\nlog_level = debug\nlog_messages = on\n")
        home.koine("daemon", "restart")
        home.koine("daemon", "restart")
        check("direction=in" in home.log() and "\"env\":[" not in home.log(), "the environment is in the log")
        write_settings(home.path, "[nonsense]\n")
        said = home.koine("daemon", "restart", status=UNAVAILABLE)
        check("koine.conf:1: unknown section [nonsense]" in said, said)
        write_settings(home.path, "")
        home.koine("daemon", "start")
        same(home.koine("page", "--sessions", "--json").strip(), "[]", "after a start")
        home.koine("daemon", "stop")
        check("has restarted" in home.koine("daemon", "restart"), "no words")
        home.koine("daemon", "stop")


def begin(home, *args):
    command = home.command(*args)
    return subprocess.Popen(command.pop("args"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **command)


def state_of(home, task):
    return json.loads(home.koine("task", "show", task, "--json"))["state"]


def run_until(home, name, *args):
    """A command that runs until a file is there; says when it has begun."""
    begun = home("begun-%s" % name)
    home.koine("run", *args, "-c", "touch %s; while [ ! -e %s ]; do sleep 0.02; done" % (begun, home(name)))
    wait_until(lambda: os.path.exists(begun), "it runs")


def drains(home):
    return json.loads(home.koine("call", "daemon.status", "--json"))["tasks"]["draining"]


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def test_a_stop_says_what_runs_and_a_restart_runs_it_again():
    with Home() as home:
        home.koine("daemon", "start")
        run_until(home, "go", "--retry", "3")
        run_until(home, "never")
        said = home.koine("daemon", "restart")
        check("2 tasks are running\n" in said, "%s", said)
        same((state_of(home, "0"), state_of(home, "1")), ("running", "failed"), "after the restart")
        touch(home("go"))
        home.koine("task", "wait", "0")
        same(home.koine("daemon", "stop"), "koined has stopped\n", "nothing ran")


def test_a_wait_tells_a_stop_of_koined_from_the_end_of_its_task():
    with Home() as home:
        home.koine("daemon", "start")
        run_until(home, "never", "--retry", "3")
        waits = begin(home, "task", "wait", "0")
        follows = begin(home, "task", "watch", "0")
        calls = lambda: json.loads(home.koine("call", "daemon.status", "--json"))["calls_in_flight"]
        wait_until(lambda: calls() >= 2, "both wait")
        home.koine("daemon", "restart")
        for p in waits, follows:
            same((p.communicate(timeout=PATIENCE)[1], p.returncode), (b"koine: koined is stopping\n", UNAVAILABLE), "it says")
        same(state_of(home, "0"), "running", "its task")


def test_a_drain_starts_nothing_and_waits_for_what_runs():
    with Home() as home:
        home.koine("daemon", "start")
        run_until(home, "go")
        p = begin(home, "daemon", "stop", "--drain")
        same(p.stderr.readline(), b"1 task is running; waiting\n", "what it says")
        wait_until(lambda: drains(home), "it drains")
        home.koine("run", "--", "touch", home("late"))
        same(state_of(home, "1"), "queued", "what came meanwhile")
        touch(home("go"))
        same(p.communicate(timeout=PATIENCE), (b"koined has stopped\n", b""), "the end")
        same(p.returncode, 0, "exit status")
        home.koine("daemon", "start")
        home.koine("task", "wait", "0", "1")
        check(os.path.exists(home("late")), "what came meanwhile did not run")
        # With a time it stops all the same, and what may be retried runs again.
        run_until(home, "never", "--retry", "1")
        said = home.koine("daemon", "restart", "--drain=100ms")
        check("1 task is still running\n" in said, "%s", said)
        same(state_of(home, "2"), "running", "after the restart")


def unread(connection):
    """Bytes that the other end has not read."""
    return int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def answer_slowly(connection, clock, slow, last):
    """
    Answers calls up to the one named last. The slow one takes a minute of the client's clock, and messages make the client look
    at it.
    """
    for line in connection.makefile("r"):
        call = json.loads(line)
        if call["method"] == slow:
            os.pwrite(clock.fileno(), struct.pack("qq", 60 * 1000, 0), 0)
            for _ in range(3):
                connection.sendall(b'{"jsonrpc":"2.0","method":"event"}\n')
                wait_until(lambda: unread(connection) == 0, "the client reads")
        result = {"subsystems": {"supervisor": {"running": 1}}} if call["method"] == "daemon.status" else {}
        connection.sendall(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode() + b"\n")
        if call["method"] == last:
            return True
    return False


def waits_for(slow, last, said, *command):
    """The command waits for the slow call, although another call precedes it."""
    with Folder() as folder, tempfile.NamedTemporaryFile(prefix="koine-clock-") as clock, socket.socket(socket.AF_UNIX) as koined:
        koined.bind(folder("socket"))
        koined.listen()
        koined.settimeout(PATIENCE)
        os.write(clock.fileno(), bytes(16))
        with Home(**preloaded("CLOCK"), CLOCK=clock.name) as home:
            p = begin(home, "--socket", folder("socket"), *command)
            with contextlib.suppress(BrokenPipeError):  # then its output says why
                ended = False
                while not ended:
                    with koined.accept()[0] as connection:
                        ended = answer_slowly(connection, clock, slow, last)
            same(p.communicate(timeout=PATIENCE), said, "output")


def test_a_drain_may_take_longer_than_other_calls():
    waits_for("daemon.drain", "daemon.stop", (b"koined has stopped\n", b"1 task is running; waiting\n"), "daemon", "stop", "--drain")


def test_a_test_of_a_notifier_may_take_longer_than_other_calls():
    waits_for("notify.test", "notify.test", (b"sent a test message through phone, which has no buttons\n", b""), "notifier", "test", "phone")


def test_a_drain_waits_for_commands_of_rules():
    with Home() as home:
        write_settings(home.path, "[rule backup]\nevery = 1d\ncommand = touch %s; until [ -e %s ]; do sleep 0.02; done\n"
                       % (home("begun"), home("go")))
        home.koine("daemon", "start")
        rule = begin(home, "rule", "run", "backup")
        wait_until(lambda: os.path.exists(home("begun")), "it runs")
        p = begin(home, "daemon", "stop", "--drain")
        same(p.stderr.readline(), b"1 rule is running; waiting\n", "what it says")
        wait_until(lambda: drains(home), "it drains")
        touch(home("go"))
        same(p.communicate(timeout=PATIENCE), (b"koined has stopped\n", b""), "the end")
        same((rule.communicate(timeout=PATIENCE)[0], rule.returncode), (b"backup has run\n", 0), "its command")


def test_a_drain_ends_with_whoever_asked():
    with Home() as home:
        home.koine("daemon", "start")
        run_until(home, "go")
        p = begin(home, "daemon", "stop", "--drain")
        p.stderr.readline()
        wait_until(lambda: drains(home), "it drains")
        home.koine("run", "--", "true")
        same(state_of(home, "1"), "queued", "meanwhile")
        p.kill()
        p.communicate()
        home.koine("task", "wait", "1")


def test_a_start_that_fails_says_why():
    with Home() as home:
        home.koine("daemon", "start")
        home.koine("daemon", "stop")
        write_settings(home.path, "[nonsense]\n")
        said = home.koine("daemon", "start", status=UNAVAILABLE)
        check("koined did not start (exit status 78)" in said, said)
        check("koine.conf:1: unknown section [nonsense]" in said, said)
        check("stopped" not in said, "it shows the log of another start: %s" % said)


def test_a_start_says_that_rules_are_skipped():
    with Home() as home:
        write_settings(home.path, "[rule bad]\ncron = 61 * * * *\ncommand = true\n[rule good]\nevery = 1h\ncommand = true\n")
        for verb in ("start", "restart"):
            check("1 rule is invalid (see: koine doctor)\n" in home.koine("daemon", verb), verb)
        check("\nrules      1 invalid (see: koine doctor)\n" in home.koine("status"), "status")
        write_settings(home.path, "[rule good]\nevery = 1h\ncommand = true\n")
        check("invalid" not in home.koine("daemon", "reload") + home.koine("status"), "all is well")


def test_the_log_of_a_daemon_that_does_not_run():
    with Home() as home:
        check("koined is not running: no answer at" in home.koine("daemon", "log", status=UNAVAILABLE), "no words")
        home.koine("daemon", "start")
        home.koine("daemon", "stop")
        said = home.koine("daemon", "log", "-n", "1")
        check(re.search(r"koined is not running; last lines of .*/koined.log:\n", said), said)
        same(len(re.findall(r"^2.* stopped ", said, re.M)), 1, "lines")
        line = json.loads(home.koine("--json", "daemon", "log", "-n", "1"))
        check("stopped" in line["text"], "%r", line)
        # another daemon's is not shown in its place
        said = home.koine("--socket", home("x.sock"), "daemon", "log", status=UNAVAILABLE)
        check("koined is not running: no answer at" in said, said)


def test_a_start_takes_no_address():
    with Home() as home:
        for verb in ("start", "restart"):
            said = home.koine("--socket", home("x.sock"), "daemon", verb, status=USAGE)
            check("neither --socket nor --url" in said, said)


def test_without_a_manager_enable_says_what_to_do():
    with Home() as home:
        for verb in ("enable", "disable"):
            said = home.koine("daemon", verb, status=UNAVAILABLE)
            check("@reboot koine daemon start" in said and "~/.profile" in said, said)


def test_a_koined_in_path_is_found_and_only_in_absolute_folders():
    if SANITIZED:
        raise Skip("a copy is like any other")
    with Home() as home:
        os.mkdir(home("alone"))
        os.mkdir(home("there"))
        shutil.copy(KOINE, home("alone", "koine"))
        shutil.copy(KOINED, home("there", "koined"))

        def start(path):
            command = home.command("daemon", "start", env={"PATH": path})
            command.pop("args")
            return subprocess.run([home("alone", "koine"), "daemon", "start"], timeout=PATIENCE,
                                  capture_output=True, text=True, **command)

        done = start("there:.:/usr/bin")
        same(done.returncode, UNAVAILABLE, "exit status")
        check("koined not found" in done.stderr, done.stderr)
        done = start(home("there") + ":/usr/bin")
        same(done.returncode, OK, "exit status: %s" % done.stderr)
        same(os.readlink("/proc/%d/exe" % home.pid()), home("there", "koined"), "program")
        home.koine("daemon", "stop")


# ---- what systemctl is told ----

STAND_IN = """#!/bin/sh
# Says that the unit is there, and notes what it is told.
printf '%s\\n' "$*" >>"$SAID"
case "$*" in
*LoadState*) printf 'LoadState=loaded\\nActiveState=%s\\nUnitFileState=disabled\\nMainPID=0\\n' "$STATE" ;;
*--value*) echo "$STATE" ;;
*\\ start\\ *) [ -z "$FAILS" ] || { echo "Job for koined.service failed."; exit 1; } ;;
esac
"""


class Told(Home):
    """With a systemctl that notes what it is told, before the real one in PATH."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(self("bin"))
        with open(self("bin", "systemctl"), "w", encoding="utf-8") as f:
            f.write(STAND_IN)
        os.chmod(self("bin", "systemctl"), 0o755)
        self.env = {"SAID": self("said"), "STATE": "inactive", "FAILS": "",
                    "PATH": self("bin") + ":" + os.environ["PATH"], **self.env}
        return self

    def told(self):
        with open(self("said"), encoding="utf-8") as f:
            out = [line for line in f.read().splitlines() if " show " not in line]
        os.remove(self("said"))
        return out


def test_systemctl_is_told_the_same_words():
    every = " ".join(SOCKETS)
    with Told() as home:
        home.koine("daemon", "start")
        same(home.told(), ["--user start %s koined.service" % every], "start")
        home.koine("daemon", "restart")
        same(home.told(), ["--user start %s koined.service" % every], "restart of none")
    with Told(STATE="active") as home:
        home.koine("daemon", "restart")
        same(home.told(), ["--user restart koined.service"], "restart")
        home.koine("daemon", "stop")
        same(home.told(), ["--user stop %s koined.service" % every], "stop")
    with Told(FAILS="yes") as home:
        said = home.koine("daemon", "start", status=UNAVAILABLE)
        check("Job for koined.service failed." in said, said)


def path_file(home):
    return home("config", "systemd", "user", "koined.service.d", "path.conf")


def test_enable_takes_the_path_of_the_shell():
    with Told() as home:
        os.mkdir(home('odd " %n \\ folder'))
        os.mkdir(home("open"))
        os.chmod(home("open"), 0o777)
        folders = [home("bin"), "/usr/bin", ".", "", "relative/bin", home("open"),
                   home('odd " %n \\ folder'), "/usr/bin", "/bin"]
        said = home.koine("daemon", "enable", env={"PATH": ":".join(folders)})
        same(home.told(), ["--user daemon-reload", "--user enable koined.service"], "enable")
        with open(path_file(home), encoding="utf-8") as f:
            lines = f.read().splitlines()
        same(lines[0], "# Made by koine daemon enable, which makes it anew each time.", "the mark of its file")
        same(lines[1:], ["[Service]", 'Environment="PATH=%s:/usr/bin:%s:/bin"' % (
            home("bin"), home('odd \\" %%n \\\\ folder'))], "the file")
        check("omitted from PATH: relative/bin: not absolute" in said, said)
        check("omitted from PATH: %s: writable by all users" % home("open") in said, said)
        home.koine("daemon", "disable")
        same(home.told(), ["--user disable koined.service", "--user daemon-reload"], "disable")
        check(not os.path.exists(path_file(home)), "the file is still there")


def test_a_path_file_of_somebody_elses_is_left_alone():
    with Told() as home:
        os.makedirs(os.path.dirname(path_file(home)))
        with open(path_file(home), "w", encoding="utf-8") as f:
            f.write("[Service]\nEnvironment=PATH=/opt/bin\n")
        check("koine did not write" in home.koine("daemon", "enable"), "no words")
        home.koine("daemon", "disable")
        with open(path_file(home), encoding="utf-8") as f:
            same(f.read(), "[Service]\nEnvironment=PATH=/opt/bin\n", "the file")


# ---- a real manager ----


def test_a_real_manager_starts_and_stops_it():
    with UserManager(users_units()) as m:
        said = m.koine("daemon", "start")
        pid = m.show("koined.service", "MainPID")
        same(said, "koined has started, pid %s\n" % pid)
        same(m.koine("daemon", "start"), "koined is already running, pid %s\n" % pid)
        same(m.koine("daemon", "restart"),
             "koined has restarted, pid %s\n" % m.show("koined.service", "MainPID"))
        check(m.show("koined.service", "MainPID") != pid, "the same process")
        same(m.koine("daemon", "stop"), "koined has stopped\n")
        for name in ("koined.service", *SOCKETS):
            same(m.show(name, "ActiveState"), "inactive", name)
        # nothing starts it again
        check("koined is not running: no answer at" in m.koine("status", status=UNAVAILABLE), "somebody answers")
        m.koine("daemon", "start")
        same(m.koine("daemon", "stop", "--force"), "koined has stopped\n")


def test_a_real_manager_keeps_the_port_of_the_page_over_a_restart():
    with UserManager(users_units()) as m:
        m.koine("daemon", "start")
        pid = m.show("koined.service", "MainPID")
        page = page_session(m.koine)
        m.koine("daemon", "restart")
        check(m.show("koined.service", "MainPID") != pid, "the same process")
        same(page(), 200, "the page")
        same(m.show("koined.service", "NFileDescriptorStore"), "0", "stored for the start after a crash")
        m.systemctl("restart", "koined.service")
        same(m.koine("page", "--sessions", "--json").strip(), "[]", "after a restart that was not koine's")


def test_a_real_manager_gives_it_the_path_of_the_shell():
    with UserManager(users_units()) as m:
        odd = '/srv/odd " %n \\ folder'
        m.run("mkdir", "-p", odd)
        path = "%s:%s" % (odd, os.environ["PATH"])
        check("koined now starts at login" in m.koine("daemon", "enable", env={"PATH": path}),
              "no words")
        for name in ("koined.service", *SOCKETS):
            same(m.show(name, "UnitFileState"), "enabled", name)
        m.koine("daemon", "start")
        with open("/proc/%s/environ" % m.show("koined.service", "MainPID"), "rb") as f:
            seen = dict(v.split(b"=", 1) for v in f.read().split(b"\0") if b"=" in v)[b"PATH"]
        check(seen.decode().startswith(odd + ":/"), "its PATH is %r", seen)
        m.koine("daemon", "disable")
        same(m.show("koined.service", "UnitFileState"), "disabled", "after disable")
        check("still runs" not in m.koine("daemon", "stop"), "it does not stop")


if __name__ == "__main__":
    main(globals(), measured=("a_koined_in_path_is_found_and_only_in_absolute_folders",))
