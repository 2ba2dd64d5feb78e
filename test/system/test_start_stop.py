#!/usr/bin/env python3
"""Starting beside others and over what is there, private at once; stopping in good order."""
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import threading
import time

from harness import (KOINED, PATIENCE, Client, Daemon, Folder, Skip, check, clean_environment, main,
                     only_in_a_file, post, reachable, request, run_koined, same, wait_until)

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
PING = request("ping")
UNAVAILABLE, OS_ERROR, CONFIG = 69, 71, 78
NOT_A_SOCKET = b"not a socket"


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


# ---- the socket's file ----


class Watcher(threading.Thread):
    """Looks at a path without rest and keeps every mode it has ever seen there."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.seen = set()
        self.stopped = False
        self.start()

    def run(self):
        while not self.stopped:
            try:
                self.seen.add(mode_of(self.path))
            except FileNotFoundError:
                pass

    def stop(self):
        self.stopped = True
        self.join()
        return self.seen


def test_the_socket_is_private_from_its_first_instant():
    def generous():
        os.umask(0)

    with Folder() as folder:
        watcher = Watcher(folder("koine.sock"))
        for _ in range(20):
            with Daemon(root=folder.path, preexec_fn=generous):
                pass
        same(watcher.stop(), {0o600}, "modes seen")


def test_folders_that_are_made_are_private():
    def generous():
        os.umask(0)

    with Daemon(listen=("unix:ROOT/a/b/koine.sock",), preexec_fn=generous) as d:
        for folder in ("a", "a/b"):
            same(mode_of(os.path.join(d.root, folder)), 0o700, "mode of " + folder)
        same(mode_of(d.socket_path), 0o600, "mode of the socket")
        d.alive()


def test_the_runtime_folder_is_private_and_must_be_ours():
    with Folder() as folder:
        env = {"XDG_RUNTIME_DIR": folder.path, "XDG_STATE_HOME": folder("state"),
               "ASH_RPC_SOCKET": folder("ash.sock"), "KOINE_LISTEN_NEXUS": "off",
               "OPENCLAW_AGENT_SOCK": folder("agent.sock")}
        process = subprocess.Popen([KOINED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment(env))
        try:
            same(process.stdout.readline(),
                 b"listening koine unix:%s\n" % folder("koine", "koine.sock").encode())
            same(process.stdout.readline(),
                 b"listening ash unix:%s\n" % folder("ash.sock").encode())
            same(process.stdout.readline(),
                 b"listening hld unix:%s\n" % folder("koine", "hld.sock").encode())
            same(process.stdout.readline(),
                 b"listening ocg unix:%s\n" % folder("agent.sock").encode())
            same(process.stdout.readline(), b"koined: ready\n")
            same(mode_of(folder("koine")), 0o700, "mode of the folder")
        finally:
            process.terminate()
            process.communicate()
        os.chmod(folder("koine"), 0o777)
        done = run_koined(env=env)
        same(done.returncode, UNAVAILABLE, "exit status")
        check(folder("koine").encode() in done.stderr, "%r", done.stderr)


def test_anothers_lock_at_a_default_place_is_not_in_our_way():
    if os.getuid() != 0:
        raise Skip("only root can make another user's file")
    with Folder() as folder:
        os.mkdir(folder(".humanlayer"))
        lock = folder(".humanlayer", "daemon.sock.lock")
        os.close(os.open(lock, os.O_CREAT, 0o600))
        os.chown(lock, 65534, 65534)
        env = {"XDG_RUNTIME_DIR": folder.path, "XDG_STATE_HOME": folder("state"),
               "HOME": folder.path, **{"KOINE_LISTEN_" + dialect: "off" for dialect in
                                       ("ASH", "OCG", "NEXUS", "AIWG")}}
        process = subprocess.Popen([KOINED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=folder.path, env=clean_environment(env))
        try:
            said = [process.stdout.readline() for _ in range(3)]
            same(said[1:], [b"listening hld unix:%s\n" % folder("koine", "hld.sock").encode(),
                            b"koined: ready\n"], "what it says (%r)" % said)
        finally:
            process.terminate()
            process.communicate()
        # One that was named is not moved.
        done = run_koined(env={**env, "HUMANLAYER_DAEMON_SOCKET": lock[:-len(".lock")]})
        same(done.returncode, UNAVAILABLE, "exit status")
        check(b"%s belongs to another user (uid 65534)" % lock.encode() in done.stderr, "%r",
              done.stderr)
        same(os.stat(lock).st_uid, 65534, "the lock's owner")


def test_anothers_lock_that_cannot_be_opened_is_named_with_its_owner():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    if not reachable(65534):
        raise Skip("another user cannot run koined where it was built")
    with Folder() as folder:
        os.chmod(folder.path, 0o1777)
        os.close(os.open(folder("k.sock.lock"), os.O_CREAT, 0o600))
        done = subprocess.run([KOINED, "--store", "sqlite:" + folder("k.db"),
                               "--listen", "koine=unix:" + folder("k.sock")],
                              user=65534, group=65534, extra_groups=[], capture_output=True,
                              env=clean_environment(), timeout=PATIENCE)
        same(done.returncode, UNAVAILABLE, "exit status (%r)" % done.stderr)
        check(b"k.sock.lock belongs to another user (uid 0)" in done.stderr, "%r", done.stderr)


def test_only_the_store_is_left_behind_after_a_stop():
    only_in_a_file("it looks for the file")
    with Folder() as folder:
        with Daemon(root=folder.path):
            check(os.path.exists(folder("koine.sock")), "no socket")
        same(sorted(n for n in os.listdir(folder.path) if not n.startswith("log.")),
             [".aiwg", "koine.db", "koine.db.lock", "koine.db.tasks"], "left behind")
        same(sorted(os.listdir(folder(".aiwg", "daemon"))), ["daemon.log", "heartbeat", "state.json"],
             "left in the project")


def refused_there(folder, path, words=b""):
    """Whatever dialect is named: koined does not start without a listener that the user asked for."""
    for dialect in ("koine", "ash", "hld", "ocg", "aiwg"):
        named = ("--root", folder.path, "--listen", "koine=unix:" + folder("good.sock"),
                 "--listen", "%s=unix:%s" % (dialect, path))
        done = run_koined(*named)
        check(done.returncode in ((UNAVAILABLE,) if words == NOT_A_SOCKET else (UNAVAILABLE, OS_ERROR, CONFIG)),
              "%s's exit status is %d", dialect, done.returncode)
        check(words in done.stderr, "%r", done.stderr)
        check(b"ready" not in done.stdout, "it said ready")
        if words == NOT_A_SOCKET:
            check(b"error: " in run_koined("--check", *named).stdout, "--check accepts it for " + dialect)


def test_messages_name_a_long_path_in_full():
    with Folder() as folder:
        path = folder("x").ljust(107, "x")
        named = ("--root", folder("root"), "--listen", "ocg=unix:" + path)
        with open(path, "w"):
            pass
        check(path.encode() + b" exists and is not a socket; to start without ocg" in run_koined(*named).stderr, "a file")
        os.unlink(path)
        with Daemon(listen=("unix:" + path,)) as d:
            check(("address in use: %s (koined, pid %d); to start without ocg" % (path, d.pid)).encode()
                  in run_koined(*named).stderr, "a daemon")
        folder_of_settings = folder("y".ljust(200, "y"))
        os.mkdir(folder_of_settings)
        file = os.path.join(folder_of_settings, "koine.conf")
        with open(file, "w") as f:
            f.write("[tasks]\nparallel = x\n")
        check(("%s:2: " % file).encode() in run_koined("--check", "--config", file).stderr, "settings")


def test_init_store_makes_a_private_file_and_nothing_else():
    only_in_a_file("it looks for the file")
    with Folder() as f:
        root = f("root")
        for _ in range(2):
            same(run_koined("--root", root, "--init-store").returncode, 0, "status")
            same(sorted(n for n in os.listdir(root) if not n.startswith("koine.db-")), ["koine.db", "koine.db.lock"], "files")
            same(stat.S_IMODE(os.stat(os.path.join(root, "koine.db")).st_mode), 0o600, "mode")
        with Daemon(root=root) as d:
            done = run_koined("--root", root, "--init-store")
            same(done.returncode, 69, "status beside a daemon")
            check(b"in use" in done.stderr or b"another koined" in done.stderr, "%r", done.stderr)
            d.alive()
        same(run_koined("--root", root, "--init-store", "--set", "tasks.parallel=x").returncode, 78, "wrong settings")


def test_settings_that_cannot_be_read_are_not_taken_for_missing_ones():
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    with Folder() as folder:
        env = {"XDG_CONFIG_HOME": folder("config")}
        config = folder("config", "koine", "koine.conf")
        os.makedirs(os.path.dirname(config))
        os.mkdir(folder("root"))
        for path in folder.path, folder("root"), folder("config"), os.path.dirname(config):
            os.chown(path, 65534, 65534)
        with open(config, "w", encoding="utf-8") as f:
            f.write("[group one]\nparallel = 1\n")
        refusal = "cannot read %s: Permission denied" % config
        with Daemon(root=folder("root"), env=env, announced=["could not reload settings"], **nobody) as d, d.connect() as c:
            for close in config, os.path.dirname(config):
                mode = os.stat(close).st_mode
                os.chmod(close, 0)
                answer = json.loads(c.call_text(request("daemon.reload")))
                check(refusal in answer["error"]["message"], "%r", answer)
                os.chmod(close, mode)
            same(c.call("daemon.reload")["settings"], [], "what has changed")
        os.chmod(config, 0)
        done = subprocess.run([KOINED, "--check"], capture_output=True, timeout=PATIENCE,
                              env=clean_environment(env), **nobody)
        same((done.returncode, done.stderr.decode()), (78, "koined: %s\n" % refusal), "a start")
        # Nobody knows whether there is one.
        os.chmod(os.path.dirname(config), 0)
        done = subprocess.run([KOINED, "--dialects"], capture_output=True, timeout=PATIENCE,
                              env=clean_environment(env), **nobody)
        same((done.returncode, done.stderr), (0, b""), "a folder that is closed")


def test_a_second_daemon_is_refused_and_the_first_unharmed():
    with Daemon() as d:
        before = os.lstat(d.socket_path)
        c = d.connect()
        c.ping()
        for _ in range(3):
            done = run_koined("--root", d.root)
            same(done.returncode, UNAVAILABLE, "exit status")
            check(b"address in use" in done.stderr, "%r", done.stderr)
        same(os.lstat(d.socket_path).st_ino, before.st_ino, "inode")
        c.ping()
        d.alive()


def leave_a_child_listening(path):
    """As a daemon does that is killed while it starts a program: what ends the child, when closed."""
    held, end = os.pipe()
    owner = os.fork()
    if owner == 0:
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(path)
        sock.listen()
        os.close(end)
        if os.fork() == 0:
            os.read(held, 1)
        os._exit(0)
    os.waitpid(owner, 0)
    os.close(held)
    return end


def test_what_a_killed_daemon_has_just_started_does_not_prevent_the_next():
    with Folder() as folder:
        child = leave_a_child_listening(folder("koine.sock"))
        with Daemon(root=folder.path, wait=False) as d:
            wait_until(lambda: os.path.exists(folder("koine.sock.lock")) or
                       d.process.poll() is not None, "it to begin")
            os.close(child)
            d.wait_ready()
            d.alive()


def test_a_daemon_that_has_left_its_parent_is_one():
    with Folder() as folder:
        child = leave_a_child_listening(folder("koine.sock"))
        try:
            refused_there(folder, folder("koine.sock"), b"address in use")
        finally:
            os.close(child)


def test_a_second_daemon_at_the_default_place_is_told_of_root():
    with Folder() as folder:
        env = {"XDG_RUNTIME_DIR": folder.path, "XDG_STATE_HOME": folder("state"),
               "ASH_RPC_SOCKET": folder("ash.sock")}
        with Daemon("--listen", "koine=unix:" + folder("koine", "koine.sock")) as d:
            done = run_koined("--set", "listen.nexus=off", env=env)
            same(done.returncode, UNAVAILABLE, "exit status")
            check(b"koine.sock (koined, pid %d); to start another koined, use --root DIR" % d.pid
                  in done.stderr, "%r", done.stderr)


def test_a_second_daemon_on_the_same_port_is_refused():
    with Daemon(listen=EVERYWHERE) as d:
        for kind in ("http", "tcp"):
            done = run_koined("--root", d.root, "--listen", "koine=" + d.address(kind))
            same(done.returncode, UNAVAILABLE, "exit status")
            check(b"address in use" in done.stderr, "%r", done.stderr)
        d.alive()


def test_a_daemon_too_busy_to_accept_is_not_taken_for_dead():
    with Folder() as folder:
        path = folder("koine.sock")
        with socket.socket(socket.AF_UNIX) as busy:
            busy.bind(path)
            busy.listen(0)
            waiting = []
            try:
                while True:
                    c = socket.socket(socket.AF_UNIX)
                    waiting.append(c)
                    c.setblocking(False)
                    c.connect(path)
            except BlockingIOError:
                pass
            inode = os.lstat(path).st_ino
            refused_there(folder, path, b"address in use")
            same(os.lstat(path).st_ino, inode, "inode")
            for c in waiting:
                c.close()


def test_of_eight_simultaneous_starters_exactly_one_lives():
    for _ in range(5):
        with Folder() as folder:
            # from the second round of a lifetime on there is a dead socket to fight over
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(folder("koine.sock"))
            one_of_eight(folder)


def one_of_eight(folder):
    starters = [subprocess.Popen([KOINED, "--root", folder.path], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=clean_environment()) for _ in range(8)]
    try:
        wait_until(lambda: sum(p.poll() is None for p in starters) == 1,
                   "seven to give up", patience=15)
        living = [p for p in starters if p.poll() is None]
        for p in starters:
            if p not in living:
                same(p.returncode, UNAVAILABLE, "exit status")
        with Client("unix:" + folder("koine.sock")) as c:
            same(c.call("daemon.status")["pid"], living[0].pid, "pid of who answers")
        living[0].terminate()
        same(living[0].wait(PATIENCE), 0, "exit status")
        check(not os.path.exists(folder("koine.sock")), "the socket is left behind")
    finally:
        for p in starters:
            if p.poll() is None:
                p.kill()
            p.communicate()


def test_what_is_no_socket_is_left_alone():
    with Folder() as folder:
        path = folder("thing")
        with open(path, "w") as f:
            f.write("precious")
        refused_there(folder, path, NOT_A_SOCKET)
        with open(path) as f:
            same(f.read(), "precious", "content")
        os.unlink(path)

        os.mkfifo(path)
        refused_there(folder, path, NOT_A_SOCKET)
        check(stat.S_ISFIFO(os.lstat(path).st_mode), "the FIFO is gone")
        os.unlink(path)

        os.mkdir(path)
        refused_there(folder, path, NOT_A_SOCKET)
        check(os.path.isdir(path), "the folder was deleted")
        os.rmdir(path)


def test_a_symbolic_link_is_left_alone_and_not_followed():
    with Folder() as folder:
        path = folder("link")
        for target in ("file", "nothing", "dead.sock"):
            if target == "file":
                with open(folder(target), "w") as f:
                    f.write("precious")
            if target == "dead.sock":
                with socket.socket(socket.AF_UNIX) as s:
                    s.bind(folder(target))
            os.symlink(folder(target), path)
            refused_there(folder, path, NOT_A_SOCKET)
            same(os.readlink(path), folder(target), "link")
            os.unlink(path)
        check(os.path.exists(folder("dead.sock")), "the link's target is gone")
        check(not os.path.exists(folder("nothing")), "the link was followed")


def test_a_path_of_107_bytes_is_served_and_511_refused():
    with Folder() as folder:
        room = 107 - len(folder.path) - 1
        good = folder("s" * room)
        same(len(good), 107, "length")
        bad = folder("d/" * ((510 - len(folder.path)) // 2))
        refused_there(folder, bad.ljust(511, "s"), b"too long (511 bytes, limit 510)")
        refused_there(folder, folder("d" * 80, "s" * 83), b"or its file name to 82")
        same(os.listdir(folder.path), [], "left behind")
        with Daemon(root=folder.path, listen=("unix:" + good,)) as d:
            d.alive()


def test_a_socket_left_by_a_killed_daemon_is_taken_over():
    with Folder() as folder:
        for _ in range(3):
            with Daemon(root=folder.path, exit_status=-signal.SIGKILL) as d:
                c = d.connect()
                c.ping()
                d.signal(signal.SIGKILL)
                d.wait_exit()
            check(os.path.exists(folder("koine.sock")), "no socket is left to find")
        with Daemon(root=folder.path) as d:
            d.alive()


def test_a_socket_of_somebody_else_is_not_removed_at_the_stop():
    with Daemon() as d:
        path = d.socket_path
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen(1)
            inode = os.lstat(path).st_ino
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
            same(os.lstat(path).st_ino, inode, "inode")


def test_a_folder_that_is_gone_does_not_hold_up_the_stop():
    with Daemon(listen=("unix:ROOT/a/koine.sock",)) as d:
        for name in os.listdir(os.path.join(d.root, "a")):
            os.unlink(os.path.join(d.root, "a", name))
        os.rmdir(os.path.join(d.root, "a"))
        d.signal(signal.SIGTERM)
        same(d.wait_exit(), 0, "exit status")


def test_a_lock_that_is_none_of_ours_is_left_alone():
    with Folder() as folder:
        path = folder("koine.sock")
        with open(path + ".lock", "w") as f:
            f.write("precious")
        refused_there(folder, path, b"lock")
        with open(path + ".lock") as f:
            same(f.read(), "precious", "content")
        os.unlink(path + ".lock")
        os.symlink(folder("elsewhere"), path + ".lock")
        refused_there(folder, path, b"lock")
        check(not os.path.exists(folder("elsewhere")), "the link was followed")


def test_a_start_that_fails_half_way_leaves_nothing_behind():
    with Folder() as folder:
        done = run_koined("--listen", "koine=unix:" + folder("a.sock"),
                          "--listen", "koine=http:127.0.0.1:0",
                          "--listen", "koine=unix:/dev/null/b.sock")
        check(done.returncode > 0, "it started")
        check(b"ready" not in done.stdout, "it said ready")
        same(os.listdir(folder.path), [], "left behind")


def test_too_few_descriptors_to_start_are_an_error_and_no_crash():
    with Folder() as folder:
        for n in range(6, 16):  # below, libuv ends the process before we are asked
            def few(n=n):
                resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))

            process = subprocess.Popen([KOINED, "--root", folder.path], preexec_fn=few,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=clean_environment())
            try:
                if process.stdout.readline():
                    process.stdout.readline()
                    process.terminate()
                status = process.wait(PATIENCE)
                check(status >= 0, "signal %d with %d descriptors: %r", -status, n,
                      process.stderr.read()[-300:])
            finally:
                if process.poll() is None:
                    process.kill()
                process.communicate()


def test_a_folder_that_cannot_be_written_is_refused():
    with Folder() as folder:
        refused_there(folder, "/proc/koine/koine.sock")
        refused_there(folder, "/dev/null/koine.sock")


# ---- where it may listen ----


def test_it_listens_on_loopback_or_not_at_all():
    with Folder() as folder:
        for address in ("http:0.0.0.0:0", "tcp:0.0.0.0:0", "http:192.168.1.1:0", "http:[::]:0",
                        "tcp:10.0.0.1:0", "http:example.com:80", "http::0", "tcp:*:0",
                        "http:[::ffff:127.0.0.1]:0", "http:169.254.0.1:0"):
            done = run_koined("--root", folder.path, "--listen", "koine=" + address)
            same(done.returncode, CONFIG, "exit status for " + address)
            host = address.partition(":")[2].rpartition(":")[0].strip("[]")
            check(host.encode() in done.stderr, "%s is not named: %r", host, done.stderr)


def test_loopback_names_are_listened_at():
    for address in ("http:localhost:0", "http:127.0.0.1:0", "tcp:127.0.0.2:0"):
        with Daemon(listen=("unix:ROOT/koine.sock", address)) as d:
            with d.connect(address.partition(":")[0]) as c:
                same(post(c, PING).status, 200, "status at " + address)


def test_addresses_that_are_none_are_refused():
    with Folder() as folder:
        for address in ("koine=", "koine=unix:", "koine=unix:/", "koine=http:127.0.0.1",
                        "koine=http:127.0.0.1:65536", "koine=ftp:127.0.0.1:1",
                        "klingon=unix:" + folder("x"), "=unix:" + folder("x")):
            done = run_koined("--root", folder.path, "--listen", address)
            same(done.returncode, CONFIG, "exit status for " + address)


# ---- stopping ----


def stops(d, number=signal.SIGTERM):
    d.signal(number)
    same(d.wait_exit(), 0, "exit status")
    check(not os.path.exists(os.path.join(d.root, "koine.sock")), "the socket is left behind")


def test_it_stops_with_idle_clients():
    for number in (signal.SIGTERM, signal.SIGINT):
        # For them alone it would wait that long.
        with Daemon("--set", "limits.stop_time=3600", listen=EVERYWHERE) as d:
            clients = [d.connect(("unix", "tcp", "http")[i % 3]) for i in range(30)]
            d.connect().ping()
            stops(d, number)
            for c in clients:
                c.ended()


def test_a_call_that_runs_is_answered_before_the_stop():
    sleep = request("debug.sleep", {"ms": 300})
    with Daemon(listen=EVERYWHERE) as d:
        line, http = d.connect(), d.connect("http")
        line.send(sleep + b"\n")
        http.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(sleep), sleep))
        wait_until(lambda: d.status()["calls_in_flight"] == 2, "the calls to run")
        stops(d)
        same(json.loads(line.read_line())["result"], {"slept_ms": 300})
        line.ended()
        r = http.read_response()
        same(json.loads(r.body)["result"], {"slept_ms": 300})
        same(r.header("Connection"), "close", "Connection")
        http.ended()


def test_a_call_that_takes_too_long_is_cut_at_the_stop():
    with Daemon("--set", "limits.stop_time=1", announced=["shutdown timed out"]) as d:
        c = d.connect()
        c.send(request("debug.sleep", {"ms": 3000000}) + b"\n")
        wait_until(lambda: d.status()["calls_in_flight"] == 1, "the call to run")
        stops(d)


def test_a_client_that_does_not_read_does_not_hold_up_the_stop():
    # For it alone koined would wait that long.
    with Daemon("--set", "limits.stop_time=3600") as d:
        c = d.connect()
        c.send(request("debug.echo", '["%s"]' % ("x" * 4000000)) + b"\n")
        c.need(1)  # the answer is on its way, and the rest of it stays there
        stops(d)


def test_a_client_that_still_reads_gets_all_of_its_answer_during_the_stop():
    with Daemon("--set", "limits.stop_time=3600") as d:
        c = d.connect()
        c.send(request("debug.echo", '["%s"]' % ("x" * 4000000)) + b"\n")
        c.need(1)
        d.signal(signal.SIGTERM)
        same(len(json.loads(c.read_line())["result"][0]), 4000000, "characters")
        same(d.wait_exit(), 0, "exit status")


def test_a_socket_folder_that_is_open_to_all_is_warned_of():
    with Folder() as folder:
        os.mkdir(folder("shared"))
        listen = ["unix:" + folder("shared", "k.sock")]
        for mode, announced in ((0o777, ["socket folder is writable by other users"]), (0o1777, []), (0o755, [])):
            os.chmod(folder("shared"), mode)
            with Daemon(listen=listen, announced=announced) as d:
                d.alive()
            shown = run_koined("--check", "--root", folder.path, "--listen", "koine=" + listen[0])
            same(b"writable by all" in shown.stdout, bool(announced), "--check of %o" % mode)


def test_a_batch_that_stops_twice_is_answered():
    with Daemon() as d:
        c = d.connect()
        batch = b"[" + b",".join(request("daemon.stop", id=n) for n in (1, 2)) + b"]"
        same([a["result"] for a in json.loads(c.call_text(batch))], [{"stopping": True}] * 2)
        c.ended()
        same(d.wait_exit(), 0, "exit status")


def test_stops_that_wait_behind_a_write_are_answered():
    with Daemon() as d:
        c = d.connect()
        c.send(b"".join(request(*ask) + b"\n" for ask in (
            ("memory.add", {"content": "written first"}, 1), ("daemon.stop", None, 2),
            ("daemon.stop", None, 3))))
        same([json.loads(c.read_line())["id"] for _ in range(3)], [1, 2, 3], "ids")
        c.ended()
        same(d.wait_exit(), 0, "exit status")


def test_a_second_signal_ends_it_at_once():
    with Daemon("--set", "limits.stop_time=3600") as d:
        c = d.connect()
        c.send(request("debug.sleep", {"ms": 3000000}) + b"\n")
        wait_until(lambda: d.status()["calls_in_flight"] == 1, "the call to run")
        d.signal(signal.SIGTERM)
        wait_until(lambda: b"stopping" in d.log(), "the stop to begin")
        check(d.process.poll() is None, "it did not wait for its call")
        stops(d)


def test_signals_that_keep_coming_do_not_spoil_the_end():
    for _ in range(20):
        with Daemon() as d:
            d.connect().ping()
            while d.process.poll() is None:
                d.signal(signal.SIGTERM)
                d.signal(signal.SIGHUP)
                time.sleep(0.0005)
            same(d.process.returncode, 0, "exit status")
            check(not os.path.exists(d.socket_path), "the socket is left behind")


def test_no_new_client_is_served_while_it_stops():
    with Daemon("--set", "limits.stop_time=3600") as d:
        c = d.connect()
        c.send(request("debug.sleep", {"ms": 3000000}) + b"\n")
        wait_until(lambda: d.status()["calls_in_flight"] == 1, "the call to run")
        d.signal(signal.SIGTERM)
        wait_until(lambda: not os.path.exists(d.socket_path), "the socket to go")
        # and another may take its place
        with Daemon("--store", "sqlite:" + os.path.join(d.root, "next.db"), root=d.root) as next_one:
            next_one.alive()
        stops(d)


def test_a_client_can_stop_it():
    with Daemon() as d:
        c, idle = d.connect(), d.connect()
        same(c.call("daemon.stop"), {"stopping": True})
        c.ended()
        idle.ended()
        c.close()
        idle.close()
        same(d.wait_exit(), 0, "exit status")
        check(not os.path.exists(d.socket_path), "the socket is left behind")


def test_a_client_can_stop_it_over_http():
    with Daemon(listen=EVERYWHERE) as d:
        c = d.connect("http")
        r = post(c, request("daemon.stop"))
        same(json.loads(r.body)["result"], {"stopping": True})
        same(r.header("Connection"), "close", "Connection")
        c.ended()
        same(d.wait_exit(), 0, "exit status")


def test_calls_that_wait_are_answered_before_the_stop_too():
    with Daemon() as d:
        c = d.connect()
        c.send(b"".join(request("debug.sleep", {"ms": 50}, id=i) + b"\n" for i in range(4)))
        wait_until(lambda: d.status()["calls_in_flight"] == 1, "the first call to run")
        d.settle()
        stops(d)
        same([json.loads(c.read_line())["id"] for _ in range(4)], [0, 1, 2, 3], "ids")
        c.ended()


def test_a_client_can_stop_it_by_force():
    with Daemon("--set", "limits.stop_time=3600") as d:
        c, busy = d.connect(), d.connect()
        busy.send(request("debug.sleep", {"ms": 3000000}) + b"\n")
        d.settle()
        same(c.call("daemon.stop", {"force": True}), {"stopping": True})
        same(d.wait_exit(), 0, "exit status")


def test_a_signal_in_the_first_moments_stops_it_too():
    for i in range(10):
        with Daemon() as d:
            stops(d)


if __name__ == "__main__":
    main(globals())
