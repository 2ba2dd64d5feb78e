#!/usr/bin/env python3
"""
Where dialects listen when koined is run as a service: at places of our own, at the original ones
only where the settings say so, and never in somebody's way.
"""
import json
import os
import re
import socket
import stat
import subprocess

from harness import (KOINED, PATIENCE, Client, Folder, check, clean_environment, installed, main, request,
                     run_koined, same, wait_until)
from service_world import Service, home_environment, make_home, write_settings
from test_manager import handing_over


def listening(path):
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(8)
    return s


def told(root, *args, env=None):
    """What koined --dialects says, by dialect."""
    done = run_koined("--service", "--dialects", *args, env=home_environment(root, env))
    same(done.returncode, 0, "exit status")
    answer = json.loads(done.stdout)
    return {row["name"]: row for row in answer["dialects"]}, answer


# ---- by default ----


def test_a_service_listens_only_at_places_of_our_own():
    with Service() as d:
        same(d.places(), {"koine": [d.runtime("koine.sock")], "ash": [d.runtime("ash.sock")],
                          "hld": [d.runtime("hld.sock")], "ocg": [d.runtime("ocg.sock")]},
             "places")
        same(stat.S_IMODE(os.stat(os.path.join(d.root, "run", "koine")).st_mode), 0o700, "mode")
        check(not os.path.exists(os.path.join(d.root, ".humanlayer")), "~/.humanlayer was made")
        d.alive()


def test_the_settings_may_ask_for_the_original_places():
    with Folder() as home:
        make_home(home.path)
        write_settings(home.path, "[daemon]\nplaces = original\n")
        rows, answer = told(home.path)
        same(answer["places"], "original", "places")
        same(rows["nexus"]["listen"], ["http:127.0.0.1:8765"], "nexus")
        same(rows["hld"]["listen"], ["unix:" + home(".humanlayer", "daemon.sock")], "hld")


def test_without_the_flag_nothing_has_changed():
    with Folder() as home:
        make_home(home.path)
        done = run_koined("--dialects", env=home_environment(home.path))
        rows = {row["name"]: row for row in json.loads(done.stdout)["dialects"]}
        same(rows["nexus"]["listen"], ["http:127.0.0.1:8765"], "nexus")
        same(rows["hld"]["listen"], ["unix:" + home(".humanlayer", "daemon.sock")], "hld")
        same(rows["gateway"]["listen"], [], "gateway")


def test_a_variable_and_an_address_name_a_place_as_ever():
    with Folder() as home:
        make_home(home.path)
        write_settings(home.path, "[listen]\nocg = unix:%s\nhld = off\n" % home("x.sock"))
        rows, _ = told(home.path, env={"ASH_RPC_SOCKET": home("a.sock")})
        same(rows["ash"]["listen"], ["unix:" + home("a.sock")], "ash")
        same(rows["ocg"]["listen"], ["unix:" + home("x.sock")], "ocg")
        same((rows["hld"]["listen"], rows["hld"]["setting"]), ([], "off"), "hld")


# ---- the original places, by one word ----


def test_on_adds_the_original_place():
    with Service(settings="[listen]\nhld = on\n") as d:
        original = os.path.join(d.root, ".humanlayer", "daemon.sock")
        same(d.places()["hld"], [d.runtime("hld.sock"), "unix:" + original], "hld")
        same(stat.S_IMODE(os.stat(original).st_mode), 0o600, "mode")
        for address in d.places()["hld"]:
            with Client(address) as c:
                same(c.call("health")["status"], "ok", "status")


def test_an_original_daemon_is_left_alone_and_named():
    with Folder() as home:
        with listening(home(".humanlayer", "daemon.sock")) as theirs:
            name = "python3, pid %d" % os.getpid()
            with Service(settings="[listen]\nhld = on\n", root=home.path,
                         announced=["could not listen on default address"]) as d:
                same(d.places()["hld"], [d.runtime("hld.sock")], "hld")
                check(("(%s)" % name).encode() in d.log(), "%r", d.log())
            rows, _ = told(home.path)
            same(rows["hld"]["occupant"]["text"], name, "who is there")
            same(rows["hld"]["occupant"]["uid"], os.getuid(), "whose it is")
            # it is still theirs
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(home(".humanlayer", "daemon.sock"))
                theirs.accept()[0].close()


def taken_port(port=0):
    """A port that somebody listens at: we, or who has it already."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("127.0.0.1", port))
        s.listen(8)
    except OSError:
        with socket.socket() as other:
            other.connect(("127.0.0.1", port))
    return s


def test_a_taken_port_gives_way_to_a_free_one():
    with taken_port(8765):
        with Service(settings="[listen]\nnexus = on\n", announced=["port in use, listening on another port"]) as d:
            [address] = d.places()["nexus"]
            check(address.startswith("http:127.0.0.1:") and not address.endswith(":8765"), address)
            check(re.search(rb'reason="address in use: http:127.0.0.1:8765 '
                            rb'\(.+, pid \d+\)"', d.log()), "%r", d.log())
            with Client(address) as c:
                c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
                    len(request("get_context")), request("get_context")))
                same(c.read_response().status, 200, "status")


def test_a_port_that_was_named_is_refused_if_it_is_taken():
    with taken_port() as s, Folder() as home:
        make_home(home.path)
        place = "http:127.0.0.1:%d" % s.getsockname()[1]
        write_settings(home.path, "[listen]\nnexus = %s\n" % place)
        done = run_koined("--service", env=home_environment(home.path))
        same(done.returncode, 69, "exit status")
        check(("address in use: %s (python3, pid %d); to start without nexus"
               % (place, os.getpid())).encode() in done.stderr, "%r", done.stderr)
        done = run_koined("--service", "--listen", "nexus=" + place,
                          env=home_environment(home.path))
        same(done.returncode, 69, "exit status of --listen")


def test_check_knows_what_gives_way():
    with taken_port(8765), Folder() as home:
        make_home(home.path)
        write_settings(home.path, "[listen]\nnexus = on\nhld = on\n")
        with listening(home(".humanlayer", "daemon.sock")):
            done = run_koined("--service", "--check", env=home_environment(home.path))
        same(done.returncode, 0, "exit status")
        check(b"would listen  nexus on a free port" in done.stdout, "%r", done.stdout)
        check(b"would skip    hld unix:" in done.stdout, "%r", done.stdout)


# ---- sockets that a service manager hands over ----


def test_sockets_that_are_handed_over_stand_for_our_own_places():
    with Folder() as home:
        with listening(home("given", "k.sock")) as k, listening(home("given", "h.sock")) as h:
            with Service(root=home.path, settings="[listen]\nhld = on\n",
                         **handing_over(k, h, names="koine:hld")) as d:
                same(d.places(),
                     {"koine": ["unix:" + home("given", "k.sock")],
                      "hld": ["unix:" + home("given", "h.sock"),
                              "unix:" + home(".humanlayer", "daemon.sock")],
                      "ash": [d.runtime("ash.sock")], "ocg": [d.runtime("ocg.sock")]}, "places")
                d.alive()


def test_a_dialect_that_is_off_turns_clients_away_where_a_manager_listens():
    with Folder() as home:
        with listening(home("given", "k.sock")) as k, listening(home("given", "h.sock")) as h:
            with Service(root=home.path, settings="[listen]\nhld = off\n",
                         **handing_over(k, h, names="koine:hld")) as d:
                check("hld" not in d.places(), "%r", d.places())
                with Client("unix:" + home("given", "h.sock")) as c:
                    c.ended()
                d.alive()


def test_systemd_hands_over_several_named_sockets():
    tool = installed("systemd-socket-activate")
    with Folder() as home:
        make_home(home.path)
        names = ("koine", "ash", "hld", "ocg")
        os.makedirs(home("run", "koine"), mode=0o700)
        argv = [tool, "--fdname=" + ":".join(names)]
        argv += ["--listen=" + home("run", "koine", n + ".sock") for n in names]
        env = clean_environment(home_environment(home.path))
        argv += ["-E" + key for key in home_environment(home.path)]
        with open(home("log"), "wb") as log:
            process = subprocess.Popen([*argv, KOINED, "--service"], env=env, stderr=log,
                                       stdout=subprocess.PIPE, cwd=home.path)
        try:
            with connected(home("run", "koine", "hld.sock")) as c:
                same(c.call("health")["status"], "ok", "status")
                with Client("unix:" + home("run", "koine", "koine.sock")) as k:
                    rows = k.call("daemon.status")["listeners"]
            found = {(row["dialect"], row["address"]) for row in rows}
            same(found, {(n, "unix:" + home("run", "koine", n + ".sock")) for n in names},
                 "listeners")
        finally:
            process.terminate()
            same(process.wait(PATIENCE), 0, "exit status")
            process.stdout.close()


def connected(path):
    def attempt():
        try:
            return Client("unix:" + path)
        except OSError:
            return None

    return wait_until(attempt, "a listener at " + path)


# ---- what else a service has ----


def test_a_daemon_may_start_no_programs():
    with Service(settings="[daemon]\nprograms = no\n[agent cat]\nkind = command\n"
                          "command = cat\n[chat]\nagent = cat\n", debug=False) as d:
        with d.connect() as c:
            for method, params in (("task.submit", {"prompt": "hello", "runner": "cat"}),
                                   ("task.run", {"command": ["true"]})):
                same(json.loads(c.call_text(request(method, params)))["error"]["message"],
                     "starting programs is disabled (to enable it, set [daemon] programs = yes)", method)


def test_the_log_is_a_file_of_a_bounded_size():
    with Folder() as home:
        path = home("koined.log")
        with open(path, "w", encoding="utf-8") as f:
            f.write("a line from before\n")
        with Service("--log-level", "debug", "--set", "daemon.log_messages=yes", "--set",
                     "daemon.log_file=" + path, root=home.path) as d, d.connect() as c:
            with open(path, encoding="utf-8") as f:
                same(f.readline(), "a line from before\n", "first line")
            text = request("ping", {"filler": "x" * 2000})
            while not os.path.exists(path + ".1"):
                for _ in range(100):
                    c.send(text + b"\n")
                for _ in range(100):
                    c.read_line()
            same(d.log(), b"", "stderr")
        with open(path, encoding="utf-8") as f:
            check("stopped" in f.read(), "the end is not in the new file")
        for name in (path, path + ".1"):
            check(os.path.getsize(name) < (4 << 20) + 4096, "%d bytes", os.path.getsize(name))
        same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")


def test_a_log_that_cannot_be_written_is_refused():
    with Folder() as home:
        make_home(home.path)
        for path in (home("no", "such", "log"), home.path):
            done = run_koined("--service", "--set", "daemon.log_file=" + path,
                              env=home_environment(home.path))
            same(done.returncode, 78, "exit status")
            check(b"cannot write the log" in done.stderr, "%r", done.stderr)


if __name__ == "__main__":
    main(globals())
