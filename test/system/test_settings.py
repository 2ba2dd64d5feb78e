#!/usr/bin/env python3
"""Settings from file, environment and flags: which wins, what is refused, --check, SIGHUP."""
import json
import os
import re
import shutil
import signal
import socket
import sqlite3

from harness import (Daemon, Folder, check, main, only_in_a_file, request, run_koined, same,
                     wait_until)

PING = request("ping")
USAGE, UNAVAILABLE, CONFIG = 64, 69, 78


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def test_a_hangup_reads_the_settings_again_and_keeps_connections():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[daemon]\nlog_level = info\n[limits]\nbatch = 2\n")
        with Daemon("--config", conf) as d:
            c = d.connect()
            three = b"[" + b",".join([PING] * 3) + b"]"
            same(json.loads(c.call_text(three))["error"]["code"], -32004, "code")
            write(conf, "[daemon]\nlog_level = debug\n[limits]\nbatch = 3\n")
            d.signal(signal.SIGHUP)
            wait_until(lambda: b"settings reloaded" in d.log(), "the settings to be read")
            same(len(json.loads(c.call_text(three))), 3, "answers")
            check(b" debug " in d.log(), "the log level has not changed")


def test_a_reload_refuses_an_unknown_dialect():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[limits]\nbatch = 2\n")
        with Daemon("--config", conf, announced=["could not reload settings"]) as d, d.connect() as c:
            for text in "[listen]\nnothing = off\n", "[listen nothing]\nallow_uids = 7\n":
                write(conf, text)
                answer = json.loads(c.call_text(request("daemon.reload")))
                check("%s:2: unknown dialect 'nothing'" % conf in answer.get("error", {}).get("message", ""), "%r", answer)


def test_a_hangup_with_wrong_settings_changes_nothing():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[limits]\nbatch = 2\n")
        with Daemon("--config", conf, announced=["could not reload settings"]) as d:
            c = d.connect()
            write(conf, "[limits]\nbatch = 3\nbatsch = 4\n")
            d.signal(signal.SIGHUP)
            wait_until(lambda: b"could not reload settings" in d.log(), "the log line")
            three = b"[" + b",".join([PING] * 3) + b"]"
            same(json.loads(c.call_text(three))["error"]["code"], -32004, "code")


def test_a_reload_while_the_settings_file_is_missing_changes_nothing():
    """Editors replace a file by removing it first. Without it, all policies would be gone."""
    with Folder() as folder:
        os.mkdir(folder("koine"))
        conf = write(folder("koine", "koine.conf"), "[policy builds]\ntool = Bash\nverdict = deny\n")
        with Daemon(env={"XDG_CONFIG_HOME": folder.path}, announced=["could not reload settings"]) as d, d.connect() as c:
            for moved in conf, folder("koine"):
                os.rename(moved, folder("away"))
                answer = json.loads(c.call_text(request("daemon.reload")))
                same(answer.get("error", {}).get("message"), "cannot read %s: No such file or directory; the current settings remain "
                     "in effect" % conf, "the answer")
                os.rename(folder("away"), moved)
            same(c.call("approval.create", {"tool": "Bash", "input": {}})["status"], "denied", "by the policy")
            same(c.call("daemon.reload")["settings"], [], "what has changed")


def test_a_reload_reports_every_setting_that_waits_for_a_start_each_time():
    """Values that are never shown, too, and who may connect where."""
    before = ["[listen]", "nexus = off", "[listen hld]", "allow_uids = 4711", "[listen ocg]", "allow_uids = 4711",
              "[tasks]", "environment = TOKEN=a", "[session]", "environment = TOKEN=a",
              "[gateway]", "environment = TOKEN=a", "[ash]", "context_secret = " + "a" * 64]
    after = ["[listen]", "nexus = on", "[listen hld]", "allow_uids = 4712", "[tasks]", "environment = TOKEN=b",
             "[session]", "environment = TOKEN=b", "[gateway]", "environment = TOKEN=b",
             "[ash]", "context_secret = " + "b" * 64]
    with Folder() as folder:
        conf = write(folder("koine.conf"), "\n".join(before))
        with Daemon("--config", conf) as d, d.connect() as c:
            same(c.call("daemon.reload")["settings"], [], "nothing has changed")
            write(conf, "\n".join(after))
            for _ in range(2):
                same(sorted((s["key"], s["state"], s.get("line"), s.get("reason"))
                            for s in c.call("daemon.reload")["settings"]),
                     [(key, "at the next start", line, reason) for key, line, reason in (
                         ("ash.context_secret", 12, None), ("gateway.environment", 10, None),
                         ("listen.hld.allow_uids", 4, None), ("listen.nexus", 2, None),
                         ("listen.ocg.allow_uids", None, "removed"), ("session.environment", 8, None),
                         ("tasks.environment", 6, None))], "what waits")
            write(conf, "\n".join(before))
            same(c.call("daemon.reload")["settings"], [], "as at the start")


def test_a_wrong_setting_is_named_with_file_and_line():
    with Folder() as folder:
        for text, line, words in (
                ("[limits]\nbatch = 2\n\nbatsch = 3\n", 4, b"batsch"),
                ("[limits]\nbatch = many\n", 2, b"batch"),
                ("[limits]\nbatch = 0\n", 2, b"batch"),
                ("[limitz]\nbatch = 2\n", 1, b"limitz"),
                ("[foo]\n", 1, b"unknown section [foo]"),
                ("\ufeff; mark\n[foo]", 2, b"unknown section [foo]"),
                ("[agent x]\n[limits]\nbatch = 0\n", 3, b"batch"),
                ("[agent a b]\n", 1, b"invalid agent name 'a b': expected"),
                ("[policy a b]\n", 1, b"invalid policy name 'a b': expected"),
                ("[policy a]\nverdict = perhaps\n", 2, b"expected allow, ask or deny"),
                ("[policy a]\ntools = Bash\n", 2, b"tools"),
                ("[approval]\npending = 0\n", 2, b"pending"),
                ("[tasks]\nenvironment = A-B\n", 2, b"NAME, NAME* or NAME=VALUE"),
                ("[session]\nenvironment = 'open\n", 2, b"with shell quoting"),
                ("[agent a]\nenvironment = A =B\n", 2, b"NAME, NAME* or NAME=VALUE"),
                ("[chat]\nsystem = %s\n" % ("x" * 8200), 2, b"longer than 8192 bytes"),
                ("[chat]\nsystem = a\0b\n", 2, b"NUL"),
                ("batch = 2\n", 1, b"batch"),
                ("[daemon]\nlog_level = loud\n", 2, b"loud"),
                ("[daemon]\nwhat is this\n", 2, b""),
                ("[listen]\nkoine = http:0.0.0.0:1\n", 2, b"0.0.0.0"),
                ("[listen]\nnothing = off\n", 2, b"unknown dialect 'nothing'"),
                ("[listen nothing]\nallow_uids = 7\n", 2, b"unknown dialect 'nothing'")):
            conf = write(folder("koine.conf"), text)
            done = run_koined("--root", folder.path, "--config", conf)
            same(done.returncode, CONFIG, "exit status for %r" % text)
            check(("%s:%d:" % (conf, line)).encode() in done.stderr, "%r: %r", text, done.stderr)
            check(words in done.stderr, "%r", done.stderr)


def test_a_settings_file_that_is_named_must_be_there():
    with Folder() as folder:
        done = run_koined("--root", folder.path, "--config", folder("nothing"))
        same(done.returncode, CONFIG, "exit status")
        check(folder("nothing").encode() in done.stderr, "%r", done.stderr)


def test_flags_win_over_the_environment_and_that_over_the_file():
    def limit(*args, env=None):
        with Daemon(*args, env=env) as d:
            c = d.connect()
            for n in range(1, 9):
                got = json.loads(c.call_text(b"[" + b",".join([PING] * n) + b"]"))
                if isinstance(got, dict):
                    return n - 1
        return None

    with Folder() as folder:
        conf = write(folder("koine.conf"), "; a comment\n[limits]\nbatch = 2\n")
        same(limit("--config", conf), 2, "limit from the file")
        same(limit("--config", conf, env={"KOINE_LIMITS_BATCH": "3"}), 3,
             "limit from the environment")
        same(limit("--config", conf, "--set", "limits.batch=4", env={"KOINE_LIMITS_BATCH": "3"}),
             4, "limit from the flag")


def test_wrong_values_in_the_environment_and_flags_are_refused():
    with Folder() as folder:
        done = run_koined("--root", folder.path, env={"KOINE_LIMITS_BATCH": "x"})
        same(done.returncode, CONFIG, "exit status")
        check(b"batch" in done.stderr, "%r", done.stderr)
        for pair in "limits.batch=x", "limits.nothing=1", "nothing.batch=1":
            done = run_koined("--root", folder.path, "--set", pair)
            same(done.returncode, CONFIG, "exit status for %r" % pair)
        for pair in "limits.batch", "batch=1", "=", "":
            done = run_koined("--root", folder.path, "--set", pair)
            same(done.returncode, USAGE, "exit status for %r" % pair)
            check(b"expected SECTION.KEY=VALUE" in done.stderr, "%r", done.stderr)
        done = run_koined("--root", folder.path, "--listen", "nexus")
        same(done.returncode, USAGE, "exit status")
        check(b"'nexus': expected DIALECT=ADDRESS" in done.stderr, "%r", done.stderr)


def test_wrong_settings_show_before_anything_listens():
    with Folder() as folder:
        for args in (("--store", "foo"), ("--store", "sqlite:"), ("--store", "mysql:x"),
                     ("--set", "chat.system_file=/nope"), ("--set", "koine.token_file=/nope"),
                     ("--set", "ash.context_secret= ")):
            done = run_koined("--root", folder("r"), *args)
            same(done.returncode, CONFIG, "exit status for %r" % (args,))
            check(done.stderr.startswith(b"koined: ") and done.stderr.count(b"\n") == 1,
                  "%r", done.stderr)
            same((done.stdout, os.path.exists(folder("r"))), (b"", False), "what it left")


def test_a_start_that_fails_does_not_say_that_it_listens():
    with Folder() as folder:
        write(folder("koine.db"), "precious")
        done = run_koined("--root", folder.path)
        same((done.returncode, done.stdout), (UNAVAILABLE, b""), "status and output")
        check(b"is not a database" in done.stderr, "%r", done.stderr)


def test_wrong_flags_are_a_wrong_usage():
    for args in (("--nothing",), ("--root",), ("something",), ("-x",)):
        same(run_koined(*args).returncode, USAGE, "exit status for %r" % (args,))
    for args in (("--help",), ("--version",), ("-h",), ("-V",)):
        done = run_koined(*args)
        same((done.returncode, bool(done.stdout), done.stderr), (0, True, b""))
        same([row for row in done.stdout.splitlines() if len(row) > 80], [], "rows over 80 columns")


def test_a_variable_that_names_no_setting_is_refused():
    with Folder() as folder:
        for name in "KOINE_LIMITS_BATSCH", "KOINE_MEMORY_", "KOINE_STORE_URLS":
            done = run_koined("--root", folder.path, "--check", env={name: "1"})
            same(done.returncode, CONFIG, "exit status for %s" % name)
            check(name.encode() in done.stderr, "%r", done.stderr)
        for name, dialect in (("KOINE_LISTEN_NOTHING", b"nothing"), ("KOINE_LISTEN_ASH_ALLOW", b"ash_allow"),
                              ("KOINE_LISTEN_NOTHING_ALLOW_UIDS", b"nothing")):
            done = run_koined("--root", folder.path, "--check", env={name: "off"})
            same(done.returncode, CONFIG, "exit status for %s" % name)
            check(b"environment: unknown dialect '%s'" % dialect in done.stderr, "%r", done.stderr)
        done = run_koined("--root", folder.path, "--check", env={"KOINE_SOMETHING": "1"})
        same(done.returncode, 0, "exit status for what is not ours (%r)" % done.stderr)


def test_policies_come_from_file_environment_and_flags():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[policy b.1]\nverdict = allow\ntool = Read\n"
                                           "[policy a]\nverdict = deny\n")
        done = run_koined("--root", folder("r"), "--config", conf, "--check",
                          "--set", "policy.b.1.input=command=git *",
                          env={"KOINE_POLICY_B_1_VERDICT": "ask", "KOINE_POLICY_NEW_VERDICT": "deny"})
        same(done.returncode, 0, "exit status (%r)" % done.stderr)
        text = done.stdout.decode()
        same(re.findall(r"^\[policy (.+)\]$", text, re.M), ["b.1", "a", "new"], "in order")
        same(re.search(r"\[policy b.1\]\n((?:.+\n)*)", text).group(1).splitlines()[1::2],
             ["verdict = ask", "tool = Read", "input = command=git *"], "what counts")
        sections = re.findall(r"^\[.+\]$", text, re.M)
        same(len(sections), len(set(sections)), "each section once")


def test_a_policy_without_a_verdict_is_refused():
    with Folder() as folder:
        for args, env in (("--set", "policy.a.tool=Bash"), None), ((), {"KOINE_POLICY_A_TOOL": "x"}):
            done = run_koined("--root", folder.path, *args, env=env)
            same(done.returncode, CONFIG, "exit status")
            check(b"[policy a]: verdict is required" in done.stderr, "%r", done.stderr)
        done = run_koined("--root", folder.path, env={"KOINE_POLICY_A": "x"})
        same(done.returncode, CONFIG, "exit status")
        check(b"unknown setting KOINE_POLICY_A" in done.stderr, "%r", done.stderr)


def written_settings(done):
    """What --check prints, without what it says of the whole at its ends."""
    return re.search(r"^\[.*^(?=koined: )", done.stdout.decode(), re.M | re.S).group()


def test_a_text_that_begins_like_a_comment_is_written_so_that_it_can_be_read():
    with Folder() as folder:
        env = {"KOINE_POLICY_A_VERDICT": "deny", "KOINE_POLICY_A_COMMENT": ";-)",
               "KOINE_RULE_R_DESCRIPTION": ";-)", "KOINE_RULE_R_EVERY": "1h",
               "KOINE_RULE_R_COMMAND": "true"}
        done = run_koined("--root", folder("r"), "--check", env=env)
        same(done.returncode, 0, "exit status (%r)" % done.stderr)
        wanted = written_settings(done)
        same(wanted.count(";-)"), 2, "both")
        again = run_koined("--root", folder("r"), "--check",
                           "--config", write(folder("koine.conf"), wanted))
        same(again.returncode, 0, "exit status (%r)" % again.stderr)
        same(written_settings(again), wanted, "what was written, read")


def test_a_variable_that_may_mean_either_of_two_is_refused():
    with Folder() as folder:
        conf = write(folder("koine.conf"), "[policy a.b]\nverdict = ask\n"
                                           "[policy a-b]\nverdict = deny\n")
        done = run_koined("--root", folder("r"), "--config", conf, "--check",
                          env={"KOINE_POLICY_A_B_VERDICT": "allow"})
        same(done.returncode, CONFIG, "exit status")
        check(b"KOINE_POLICY_A_B is ambiguous: it may mean policy a.b or a-b" in done.stderr, "%r", done.stderr)


def test_a_dialect_without_http_listens_at_no_http_address():
    with Folder() as folder:
        done = run_koined("--root", folder.path, "--listen", "ash=http:127.0.0.1:0")
        same(done.returncode, CONFIG, "exit status")
        check(b"does not support HTTP" in done.stderr, "%r", done.stderr)


def listing(path):
    return {(root, name): os.lstat(os.path.join(root, name)).st_ino
            for root, folders, files in os.walk(path) for name in folders + files}


def test_check_says_whether_it_can_and_changes_nothing():
    with Folder() as folder:
        before = listing(folder.path)
        done = run_koined("--root", folder("new"), "--check")
        same(done.returncode, 0, "exit status")
        check(b"can start" in done.stdout and folder("new").encode() in done.stdout,
              "%r", done.stdout)
        same(listing(folder.path), before, "folder")
        write(folder("koine.sock"), "precious")
        done = run_koined("--root", folder.path, "--check")
        same(done.returncode, UNAVAILABLE, "exit status")
        check(b"cannot start" in done.stdout and b"not a socket" in done.stdout, "%r", done.stdout)
        os.unlink(folder("koine.sock"))
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(folder("koine.sock"))
        before = listing(folder.path)
        done = run_koined("--root", folder.path, "--check")
        same(done.returncode, 0, "exit status with a dead socket")
        same(listing(folder.path), before, "folder with a dead socket")
        same(run_koined("--check", "--set", "limits.batch=x").returncode, CONFIG, "exit status")
        done = run_koined("--root", folder("new"), "--check",
                          env={"KOINE_LISTEN_ASH": "unix:" + folder("a.sock"),
                               "KOINE_LISTEN_KOINE": "off", "KOINE_LISTEN_NEXUS": "off",
                               "KOINE_LISTEN_AIWG": "off", "KOINE_LISTEN_HLD": "off",
                               "KOINE_LISTEN_OCG": "off"})
        same(re.findall(rb"would listen +(\S+ \S+)", done.stdout),
             [b"ash unix:" + folder("a.sock").encode()], "where it would listen")
        for path in ("koine.sock.new", "new/folder/koine.sock"):
            done = run_koined("--listen", "koine=unix:" + path, "--check",
                              "--store", "sqlite:" + folder("other.db"))
            same(done.returncode, 0, "exit status for the relative path " + path)
    with Daemon() as d:
        before = os.lstat(d.socket_path).st_ino
        same(run_koined("--root", d.root, "--check").returncode, 0, "exit status")
        same(os.lstat(d.socket_path).st_ino, before, "inode")
        d.alive()


def test_check_beside_a_daemon_that_runs_checks_the_settings():
    with Daemon() as d:
        done = run_koined("--root", d.root, "--check")
        same(done.returncode, 0, "exit status (%r)" % done.stdout)
        check(b"koined        already running, pid %d\n" % d.pid in done.stdout, "%r", done.stdout)
        check(b"koined: already running, pid %d; could start" % d.pid in done.stdout,
              "%r", done.stdout[-200:])
        same(run_koined("--root", d.root, "--check", "--set", "limits.batch=x").returncode, CONFIG,
             "exit status with a wrong setting")
        # What it does not listen at is looked at as ever.
        write(os.path.join(d.root, "file"), "precious")
        done = run_koined("--root", d.root, "--check", "--set",
                          "listen.ash=unix:" + os.path.join(d.root, "file"))
        same(done.returncode, UNAVAILABLE, "exit status with a file in the way")


def test_check_looks_at_the_store_and_its_folder():
    with Folder() as folder:
        write(folder("file"), "precious")
        for args in (("--root", folder("file")), ("--store", "sqlite:" + folder("file")),
                     ("--store", "sqlite:" + folder.path)):
            done = run_koined("--root", folder.path, *args, "--check")
            same(done.returncode, UNAVAILABLE, "exit status for %r" % (args,))
        done = run_koined("--root", folder.path, "--check")
        check(b"would open    sqlite:" + folder("koine.db").encode() in done.stdout, "%r",
              done.stdout)


def test_check_sees_a_store_that_cannot_be_used():
    only_in_a_file("it makes such files")
    with Folder() as folder:
        write(folder("junk.db"), "junk" * 100)
        with sqlite3.connect(folder("theirs.db")) as db:
            db.execute("CREATE TABLE t (a)")
        db.close()
        write(folder("gone.db-wal"), "precious")
        before = listing(folder.path)
        for name, words in (("junk.db", b"is not a database"),
                            ("theirs.db", b"is another program's database"),
                            ("gone.db", b"without its database")):
            args = ("--root", folder("r"), "--store", "sqlite:" + folder(name))
            done = run_koined(*args, "--check")
            same(done.returncode, UNAVAILABLE, "exit status for " + name)
            check(words in done.stdout, "%s: %r", name, done.stdout)
            same(listing(folder.path), before, "folder")
            same(run_koined(*args).returncode, UNAVAILABLE, "exit status of a start with " + name)
            shutil.rmtree(folder("r"), ignore_errors=True)
            os.unlink(folder(name + ".lock"))
        with Daemon() as d:
            store = ("--store", "sqlite:" + os.path.join(d.root, "koine.db"))
            done = run_koined("--root", folder("r"), *store, "--check")
            same(done.returncode, UNAVAILABLE, "exit status with a store in use")
            check(b"is in use by another koined" in done.stdout, "%r", done.stdout)
            root = d.root
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
            same(run_koined("--root", root, "--check").returncode, 0, "exit status afterwards")


def test_check_prints_where_everything_listens_as_the_file_has_it():
    with Folder() as folder:
        done = run_koined("--root", folder("r"), "--check", "--set", "listen.ash=off")
        text = done.stdout.decode()
        listens = re.search(r"^\[listen\]\n((?:.+\n)*)", text, re.M).group(1)
        same(listens, "koine = unix:%s\nash = off\nhld = unix:%s\nocg = unix:%s\nnexus = http:127.0.0.1:0\n"
             "aiwg = unix:%s\ngateway = off\nembedding = off\nmcp = off\nmetrics = off\npage = off\n"
             % (folder("r", "koine.sock"), folder("r", "hld.sock"), folder("r", "ocg.sock"),
                folder("r", ".aiwg", "daemon", "daemon.sock")), "[listen]")
        same(re.findall(r"^\w+=.*", text, re.M), [], "lines without blanks")
        conf = write(folder("again.conf"), text[text.index("[listen]"):text.rindex("\nkoined: ")])
        again = run_koined("--config", conf, "--check", "--store", "sqlite:" + folder("a.db"))
        same(again.returncode, 0, "exit status (%r)" % again.stderr)
        same(re.search(r"^\[listen\]\n((?:.+\n)*)", again.stdout.decode(), re.M).group(1), listens,
             "[listen], read again")


def test_a_folder_that_cannot_be_made_is_named():
    done = run_koined("--root", "/proc/koine-nothing")
    same(done.returncode, 71, "exit status")
    check(b"cannot create directory /proc/koine-nothing: " in done.stderr, "%r", done.stderr)


def test_files_without_an_end_are_refused():
    with Folder() as folder:
        os.mkfifo(folder("fifo"), 0o600)
        done = run_koined("--root", folder.path, "--config", "/dev/zero")
        same(done.returncode, CONFIG, "exit status")
        done = run_koined("--root", folder.path, "--set", "koine.token_file=" + folder("fifo"))
        check(done.returncode != 0 and b"token file" in done.stderr, "%r", done.stderr)


if __name__ == "__main__":
    main(globals())
