#!/usr/bin/env python3
"""
systemd's units: what systemd-analyze says of them, and what a real manager does with them.
"""
import glob
import os
import re
import signal
import subprocess

from harness import (KOINED, SANITIZED, SOURCE, Folder, Skip, check, clean_environment, installed, main, note, same,
                     wait_until)
from user_manager import UNITS, UserManager, unit, unit_within

EXPOSURE_MAX = 3.0
SOCKETS = ("koined.socket", "koined-ash.socket", "koined-hld.socket", "koined-ocg.socket")


def users_units():
    return {name: unit_within("user", name) for name in ("koined.service", *SOCKETS)}


def analyze(*args):
    installed("systemd-analyze")
    with Folder() as home:
        env = clean_environment({"HOME": home.path, "XDG_RUNTIME_DIR": home.path,
                                 "XDG_CONFIG_HOME": home.path, "XDG_STATE_HOME": home.path})
        return subprocess.run(["systemd-analyze", "--no-pager", *args], capture_output=True,
                              text=True, env=env)


# ---- what systemd-analyze says ----


def test_units_are_what_systemd_understands():
    with Folder() as folder:
        for kind, names in (("user", ("koined.service", *SOCKETS)), ("system", ["koined.service"])):
            os.mkdir(folder(kind))
            for name in names:
                with open(folder(kind, name), "w", encoding="utf-8") as f:
                    f.write(unit(kind, name))
            done = analyze("verify", "--" + kind, "--man=no", "--recursive-errors=no",
                           *(folder(kind, name) for name in names))
            same((done.returncode, done.stderr), (0, ""), "what verify says of the %s units" % kind)


def test_the_system_unit_is_hardly_exposed():
    with Folder() as folder:
        with open(folder("koined.service"), "w", encoding="utf-8") as f:
            f.write(unit("system", "koined.service"))
        done = analyze("security", "--offline=true", folder("koined.service"))
        found = re.search(r"exposure level for koined.service: (\d+\.\d)", done.stdout)
        check(found, "%r", done)
        note("exposure %s" % found.group(1))
        check(float(found.group(1)) <= EXPOSURE_MAX, "exposure is %s", found.group(1))


def test_what_runs_agents_has_no_sandbox_that_they_would_inherit():
    text = unit("user", "koined.service")
    words = re.findall(r"^(\w+)=", text, re.M)
    strange = [w for w in words if re.match(r"(Protect|Private|Restrict(?!PreventExit)|SystemCall|"
                                            r"NoNewPriv|Memory|Capability|Lock|ReadOnly)", w)
               and w != "RestartPreventExitStatus"]
    same(strange, [], "what they would inherit")


def test_every_dialect_with_a_socket_has_a_unit():
    with Folder() as folder:
        out = subprocess.run([KOINED, "--service", "--dialects"], capture_output=True,
                             env=clean_environment({"XDG_RUNTIME_DIR": folder.path})).stdout
    wanted = {os.path.basename(a) for a in re.findall(r'"listen":\["unix:([^"]+)"\]',
                                                      out.decode())}
    found = set()
    for path in glob.glob(os.path.join(UNITS, "user", "*.socket")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        place = re.search(r"^ListenStream=%t/koine/(\S+)$", text, re.M).group(1)
        same(re.search(r"^FileDescriptorName=(\w+)$", text, re.M).group(1) + ".sock", place, path)
        check("SocketMode=0600\nDirectoryMode=0700\n" in text, "%s: modes", path)
        found.add(place)
    same(found, wanted, "sockets")


def test_the_machines_settings_are_settings():
    with Folder() as folder:
        env = {"XDG_RUNTIME_DIR": folder.path, "XDG_STATE_HOME": folder.path}
        done = subprocess.run(
            [KOINED, "--service", "--dialects", "--config",
             os.path.join(SOURCE, "dist", "systemd", "system", "system.conf")],
            capture_output=True, text=True, env=clean_environment(env))
    same(done.returncode, 0, "exit status: %s" % done.stderr)
    places = re.findall(r'"name":"(\w+)","setting":[^,]*,"listen":\["', done.stdout)
    same(places, ["koine", "gateway"], "what listens")


# ---- a real manager ----


def test_a_socket_starts_the_daemon_and_all_sockets_are_served():
    with UserManager(users_units()) as m:
        m.systemctl("start", *SOCKETS)
        same(m.show("koined.service", "ActiveState"), "inactive", "state before")
        status = m.koine("status")
        same(m.show("koined.service", "ActiveState"), "active", "state")
        for name in ("koine", "ash", "hld", "ocg"):
            check(re.search(r"^%s .* unix:/run/manager/koine/%s.sock$" % (name, name), status,
                            re.M), "%s: %s", name, status)
        modes = m.run("stat", "-c", "%a", "/run/manager/koine",
                      "/run/manager/koine/hld.sock").stdout.split()
        same(modes, [b"700", b"600"], "modes")
        m.systemctl("reload", "koined.service")
        # The manager has sent a signal by now; who gets it reads when it comes to it.
        wait_until(lambda: "settings reloaded" in m.koine("daemon", "log"), "it to be reloaded")


def test_a_daemon_that_dies_is_started_again_and_one_that_is_stopped_is_not():
    with UserManager(users_units()) as m:
        m.systemctl("start", "koined.service")
        pid = m.show("koined.service", "MainPID")
        os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: m.show("koined.service", "MainPID") not in ("0", pid)
                   and m.show("koined.service", "ActiveState") == "active", "another one")
        same(m.show("koined.service", "NRestarts"), "1", "restarts")
        m.systemctl("stop", "koined.service")
        same((m.show("koined.service", "ActiveState"), m.show("koined.service", "Result")),
             ("inactive", "success"), "state after a stop")


def test_a_daemon_that_hangs_is_ended_by_the_watchdog():
    units = users_units()
    units["koined.service"] = unit_within("user", "koined.service", WatchdogSec="WatchdogSec=1")
    with UserManager(units) as m:
        m.systemctl("start", "koined.service")
        pid = int(m.show("koined.service", "MainPID"))
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: m.show("koined.service", "NRestarts") != "0", "the watchdog")


def test_wrong_settings_are_not_tried_again_and_again():
    with UserManager(users_units()) as m:
        m.run("mkdir", "-p", "/srv/home/.config/koine")
        m.run("sh", "-c", "echo '[nonsense]' >/srv/home/.config/koine/koine.conf")
        done = m.run("systemctl", "--user", "start", "koined.service")
        check(done.returncode != 0, "it started")
        same((m.show("koined.service", "ActiveState"), m.show("koined.service", "NRestarts")),
             ("failed", "0"), "state")


def test_the_daemon_does_its_work_in_the_sandbox_of_the_system_unit():
    """By a manager of root's, as no other user is: only the names of folders differ."""
    if SANITIZED:
        raise Skip("a sanitizer needs what the sandbox takes away")
    text = unit_within("system", "koined.service", User="User=nobody", Group="Group=nogroup",
                       Environment="Environment=XDG_RUNTIME_DIR=/run/manager XDG_STATE_HOME=/srv/home/.config")
    with UserManager({"koined.service": text}) as m:
        # a system manager's socket is open to services of other users
        m.run("chmod", "777", "/run/manager/systemd/notify")
        m.systemctl("start", "koined.service")
        pid = m.show("koined.service", "MainPID")
        with open("/proc/%s/status" % pid, encoding="utf-8") as f:
            state = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        same((state["Uid"].split()[0], state["CapBnd"], state["NoNewPrivs"], state["Seccomp"]),
             ("65534", "0" * 16, "1", "2"), "what it is")
        at = ("--socket", "/run/manager/koine/koine.sock", "--server-uid", "65534")
        m.koine(*at, "memory", "add", "a sandbox is made of sand")
        check("made of sand" in m.koine(*at, "memory", "search", "sandbox"), "not found")
        check("gateway" in m.koine(*at, "status"), "there is no gateway")
        port = re.search(r"http:127.0.0.1:(\d+)", m.koine(*at, "status")).group(1)
        # Who is at the other end is asked of netlink; the call itself needs a token.
        said = m.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                     "http://127.0.0.1:%s/v1/models" % port).stdout
        check(said.startswith(b"4") or said.startswith(b"5"), "the gateway said %r", said)
        m.koine(*at, "backup", "/srv/home/.config/koine/copy.db")
        m.koine(*at, "daemon", "reload")
        m.systemctl("stop", "koined.service")
        same(m.show("koined.service", "Result"), "success", "result")


if __name__ == "__main__":
    main(globals(), measured=("the_daemon_does_its_work_in_the_sandbox_of_the_system_unit",))
