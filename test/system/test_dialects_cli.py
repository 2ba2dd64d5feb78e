#!/usr/bin/env python3
"""koine dialects: what it shows, and what enable and disable do to koine.conf and to koined."""
import json
import os
import pty
import socket
import subprocess

from harness import KOINE, PATIENCE, check, clean_environment, main, same
from service_world import home_environment, write_settings
from test_daemon_cli import Home
from test_places import listening, taken_port

USAGE, DATA, NO_INPUT, NO_PERMISSION, CONFIG = 64, 65, 66, 77, 78


def rows(home):
    return {row["dialect"]: row for row in json.loads(home.koine("--json", "dialects"))}


def settings(home):
    with open(home("config", "koine", "koine.conf"), "rb") as f:
        return f.read()


def runtime(home, name):
    return "unix:" + home("run", "koine", name)


# ---- showing ----


def test_every_dialect_is_shown_with_both_places():
    with Home() as home:
        found = rows(home)
        same({n: r["state"] for n, r in found.items()},
             {"koine": "own", "ash": "own", "hld": "own", "ocg": "own", "nexus": "off",
              "aiwg": "off", "gateway": "off", "embedding": "off", "mcp": "off",
              "metrics": "off", "page": "off"}, "states")
        same({n: r.get("original") for n, r in found.items()},
             {"koine": None, "ash": "unix:/run/ash/rpc.sock",
              "hld": "unix:" + home(".humanlayer", "daemon.sock"),
              "ocg": "unix:/tmp/ocg-agent.sock", "nexus": "http:127.0.0.1:8765",
              "aiwg": ".aiwg/daemon/daemon.sock", "gateway": "http:127.0.0.1:55003",
              "embedding": "http:127.0.0.1:50001", "mcp": "http:127.0.0.1:8766",
              "metrics": "http:127.0.0.1:9464", "page": "http:127.0.0.1:7770"}, "places")
        same(found["ash"]["listens"], [runtime(home, "ash.sock")], "ash")
        said = home.koine("dialects")
        check("koined is not running; as a service, it would listen at" in said, said)
        check(said.count("\n") == len(found) + 2, said)


def test_who_is_at_the_original_place_is_named():
    with Home() as home, listening(home(".humanlayer", "daemon.sock")):
        name = "python3, pid %d" % os.getpid()
        same(rows(home)["hld"]["there"], name, "who is there")
        check(name in home.koine("dialects"), "not in the table")


def test_a_running_koined_is_shown_as_it_is():
    with Home() as home:
        write_settings(home.path, "[listen]\nhld = on\nocg = unix:%s\n" % home("o.sock"))
        home.koine("daemon", "start")
        # changed since: what is shown is what runs
        write_settings(home.path, "[listen]\nash = off\n")
        found = rows(home)
        same((found["hld"]["state"], found["hld"]["there"]), ("on", "this koined"), "hld")
        same(found["hld"]["listens"], [runtime(home, "hld.sock"),
                                       "unix:" + home(".humanlayer", "daemon.sock")], "places")
        same((found["ash"]["state"], found["ash"]["listens"]), ("own", [runtime(home, "ash.sock")]),
             "ash")
        same(found["ocg"]["listens"], ["unix:" + home("o.sock")], "ocg")
        home.koine("daemon", "stop")


def test_a_port_that_gave_way_is_shown():
    with Home() as home, taken_port(8765):
        home.koine("dialect", "enable", "nexus", "--yes")
        home.koine("daemon", "start")
        row = rows(home)["nexus"]
        same(row["state"], "moved", "state")
        check(row["listens"][0].startswith("http:127.0.0.1:") and row["there"], "%r", row)
        check(row["listens"] != [row["original"]] and row["there"] != "this koined", "%r", row)
        home.koine("daemon", "stop")


# ---- changing ----

OWN_FILE = b"""; my own settings\r
[daemon]\r
log_level = warn   ; quiet\r
\r
[listen]\r
ash=off\r
  ; the rest as it is"""


def test_enable_and_disable_leave_the_file_as_it_was():
    with Home() as home:
        path = write_settings(home.path, OWN_FILE.decode())
        with open(path, "wb") as f:
            f.write(OWN_FILE)
        said = home.koine("dialect", "enable", "hld", "ash", "mcp", "--yes")
        check("+hld = on ; koine dialects" in said, said)
        check("-ash=off\n" in said and "+ash=on ; was off\n" in said, said)
        check("(backup: %s.koine-backup)" % path in said, said)
        with open(path + ".koine-backup", "rb") as f:
            same(f.read(), OWN_FILE, "the backup")
        found = rows(home)
        same([found[n]["setting"] for n in ("hld", "ash", "mcp")], ["on"] * 3, "settings")
        check("Nothing to change" in home.koine("dialect", "enable", "hld", "--yes"), "no words")
        home.koine("dialect", "disable", "mcp", "--yes")
        home.koine("dialect", "disable", "ash", "hld", "--yes")
        same(settings(home), OWN_FILE, "the file")


def test_a_file_that_was_made_goes_again():
    with Home() as home:
        home.koine("dialect", "enable", "nexus", "--yes")
        same(settings(home), b"[listen] ; koine dialects\nnexus = on ; koine dialects\n", "the file")
        home.koine("dialect", "disable", "nexus", "--yes")
        same(os.listdir(home("config", "koine")), [], "what is left")


def test_disable_once_more_switches_off():
    with Home() as home:
        home.koine("dialect", "enable", "hld", "--yes")
        home.koine("dialect", "disable", "hld", "--yes")
        same(rows(home)["hld"]["state"], "own", "state")
        home.koine("dialect", "disable", "hld", "--yes")
        same(rows(home)["hld"]["state"], "off", "state")
        check("Nothing to change" in home.koine("dialect", "disable", "hld", "--yes"), "no words")
        home.koine("dialect", "enable", "hld", "--yes")
        same(rows(home)["hld"]["state"], "on", "state")


def test_a_restart_makes_it_so():
    with Home() as home:
        home.koine("daemon", "start")
        before = home.pid()
        said = home.koine("dialect", "enable", "hld", "--yes")
        check("koine daemon restart" in said, said)
        same(home.pid(), before, "the process")
        home.koine("dialect", "disable", "hld", "--yes")
        said = home.koine("dialect", "enable", "hld", "--yes", "--restart")
        check("koined has restarted" in said, said)
        same(rows(home)["hld"]["there"], "this koined", "who is there")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(home(".humanlayer", "daemon.sock"))
        home.koine("dialect", "disable", "hld", "--yes", "--restart")
        same(os.listdir(home(".humanlayer")), [], "after it is disabled")
        home.koine("daemon", "stop")


def test_aiwg_is_for_the_project_where_it_is_said():
    with Home() as home:
        check("nor a parent contains .aiwg" in home.koine("dialect", "enable", "aiwg", "--yes",
                                                  status=NO_INPUT), "no words")
        os.makedirs(home("work", ".aiwg"))
        os.makedirs(home("work", "deep"))
        os.makedirs(home("other", ".aiwg"))

        def enable(folder, status):
            done = subprocess.run(
                [KOINE, "dialect", "enable", "aiwg", "--yes"], cwd=home(folder),
                env=clean_environment(home_environment(home.path)), capture_output=True, text=True,
                timeout=PATIENCE)
            same(done.returncode, status, "exit status: %s" % done.stderr)
            return done.stderr

        enable("work/deep", 0)
        place = "unix:" + os.path.realpath(home("work")) + "/.aiwg/daemon/daemon.sock"
        same(rows(home)["aiwg"]["listens"], [place], "place")
        check("already listens for " + place in enable("other", DATA), "no words")
        home.koine("daemon", "start")
        same(rows(home)["aiwg"]["state"], "on", "state")
        home.koine("daemon", "stop")


# ---- asking, and refusing ----


def test_nothing_is_written_without_a_yes():
    with Home() as home:
        check("+nexus = on" in home.koine("dialect", "enable", "nexus", "--dry-run"), "no diff")
        said = home.koine("dialect", "enable", "nexus", status=USAGE)
        check("use --yes" in said, said)
        check(not os.path.exists(home("config", "koine", "koine.conf")), "it was written")


def answered(home, answer):
    ours, theirs = pty.openpty()
    command = home.command("dialect", "enable", "nexus")
    command["stdin"] = theirs
    process = subprocess.Popen(command.pop("args"), stdout=theirs, stderr=theirs, **command)
    os.close(theirs)
    os.write(ours, answer)
    said = b""
    try:
        while True:
            part = os.read(ours, 4096)
            if not part:
                break
            said += part
    except OSError:  # its end
        pass
    os.close(ours)
    check(b"Write these changes? [y/N]" in said, "%r", said)
    return process.wait(PATIENCE)


def test_it_asks_at_a_terminal():
    with Home() as home:
        same(answered(home, b"n\n"), 1, "exit status of no")
        check(not os.path.exists(home("config", "koine", "koine.conf")), "it was written")
        same(answered(home, b"y\n"), 0, "exit status of yes")
        check(b"nexus = on" in settings(home), "it was not written")


def test_what_cannot_be_is_refused():
    with Home() as home:
        for args, status, words in (
                (("enable", "nexsu"), USAGE, "did you mean nexus?"),
                (("enable", "somebody"), USAGE, "unknown dialect 'somebody'"),
                (("enable", "koine"), USAGE, "this dialect is always on"),
                (("disable", "koine"), USAGE, "koine requires it to control koined"),
                (("enable",), USAGE, "requires at least one DIALECT")):
            check(words in home.koine("dialects", *args, status=status), "%r", args)
        write_settings(home.path, "[listen]\nnonsense\n")
        check("koine.conf:2:" in home.koine("dialects", status=CONFIG), "no words")
        check("koine.conf:2:" in home.koine("dialect", "enable", "nexus", "--yes", status=CONFIG),
              "no words")
        path = write_settings(home.path, "[listen]\n")
        os.chmod(path, 0o400)
        check("the file is read-only" in home.koine("dialect", "enable", "nexus", "--yes",
                                              status=NO_PERMISSION), "no words")


if __name__ == "__main__":
    main(globals())
