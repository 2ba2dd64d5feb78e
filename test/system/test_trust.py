#!/usr/bin/env python3
"""What somebody else has made: a store, and a project's files. Nothing of it acts by itself."""
import os
import sqlite3
import stat
import subprocess

from harness import (KOINE, KOINED, Daemon, Failure, Skip, check, clean_environment, main,
                     run_koined, same, wait_until)
from task_world import World, add, end, until
from test_aiwg import connect

STRANGER = 54321


def sql(w, text, *values):
    with sqlite3.connect(w("root", "koine.db")) as db:
        db.execute(text, values)
    db.close()


def koine(w, *args, status=0):
    env = clean_environment({"KOINE_SOCKET": w("root", "koine.sock")})
    done = subprocess.run([KOINE, *args], capture_output=True, env=env, stdin=subprocess.DEVNULL)
    same(done.returncode, status, "exit status of koine %s (%r)" % (" ".join(args), done.stderr))
    return done.stdout.decode()


# ---- a store ----


def test_a_tasks_environment_is_read_to_its_end_and_no_further():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            tasks = [add(k, "env", project=w("root"), delay=3600000, env={"A": "1"})
                     for _ in range(3)]
        # The last NUL is missing; there is none at all; there is nothing else.
        for task, env in zip(tasks, (b"A=1\0B=" + b"x" * 4000, b"C=3", b"\0\0\0")):
            sql(w, "UPDATE task SET env = ?, not_before_ms = 0 WHERE id = ?", env, task)
        with w.daemon() as d, d.connect() as k:
            shown = [end(k, task, project=w("root")) and
                     k.call("task.show", {"id": task})["result"].splitlines() for task in tasks]
            check("B=" + "x" * 4000 in shown[0] and "A=1" in shown[0], "%r", shown[0])
            check("C=3" in shown[1], "%r", shown[1])
            d.alive()


def test_numbers_that_no_store_of_ours_has_are_no_index():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            add(k, "env", project=w("root"), delay=3600000)
        for column, value in ("state", -1), ("n_after", -5), ("n_after", 1 << 40):
            sql(w, "UPDATE task SET state = 0, n_after = 0")
            sql(w, "UPDATE task SET %s = ?" % column, value)
            done = run_koined("--root", w("root"))
            check(done.returncode == 69 and b"has a task that koine did not write" in done.stderr,
                  "%r", done)
        sql(w, "UPDATE task SET state = 0, n_after = 0")
        with w.daemon() as d:
            d.alive()


def test_a_store_of_another_user_is_refused():
    if os.geteuid() != 0:
        raise Skip("only root can give a file away")
    with World() as w:
        with w.daemon() as d:
            d.alive()
        os.chown(w("root", "koine.db"), STRANGER, STRANGER)
        for args in (), ("--check",):
            done = run_koined(*args, "--root", w("root"))
            said = done.stdout + done.stderr
            same(done.returncode, 69, "exit status")
            check(b"belongs to uid 54321, not to us; koine store adopt takes it over" in said,
                  "%r", said)
        same(os.stat(w("root", "koine.db")).st_uid, STRANGER, "owner")


def test_a_store_that_others_could_read_is_ours_alone():
    with World() as w:
        with w.daemon() as d:
            d.alive()
        os.chmod(w("root", "koine.db"), 0o644)
        with w.daemon() as d:
            d.alive()
            for name in "koine.db", "koine.db-wal", "koine.db-shm":
                same(stat.S_IMODE(os.stat(w("root", name)).st_mode), 0o600, name)


def test_outputs_in_a_folder_of_another_user_are_refused():
    if os.geteuid() != 0:
        raise Skip("only root can give a folder away")
    with World() as w:
        os.mkdir(w("root", "koine.db.tasks"))
        os.chown(w("root", "koine.db.tasks"), STRANGER, STRANGER)
        done = run_koined("--root", w("root"))
        check(b"cannot use the folder" in done.stderr and done.returncode == 69, "%r", done)


def test_an_adopted_store_has_all_and_does_nothing():
    with World() as w:
        with w.daemon("tasks.project_parallel=1", exit_status=-9) as d, d.connect() as k:
            k.call("memory.add", {"content": "kept"})
            running = add(k, "touch $WORLD/up; [ -e $WORLD/again ] || exec sleep 600",
                          project=w("root"), retries=3)
            queued = add(k, "touch $WORLD/ran", project=w("root"))
            wait_until(lambda: os.path.exists(w("up")), "the first task")
            os.unlink(w("up"))
            w.touch("again")
            d.signal(9)
            d.wait_exit()
        sql(w, "INSERT INTO approval_grant (id, denies, created_ms, expires_ms, uses, tool)"
               " VALUES ('g', 0, 1, 0, -1, '*')")
        sql(w, "INSERT INTO rule (name, fired_ms, enabled) VALUES ('x', 0, 1)")
        if os.geteuid() == 0:
            for name in os.listdir(w("root")):
                if name.startswith("koine.db"):
                    os.chown(w("root", name), STRANGER, STRANGER)
        said = koine(w, "store", "adopt", w("root", "koine.db"))
        check("2 tasks are held" in said and "1 grants" in said, "%r", said)
        check(os.path.exists(w("root", "koine.db.theirs")), "the old one is gone")
        same((os.stat(w("root", "koine.db")).st_uid,
              stat.S_IMODE(os.stat(w("root", "koine.db")).st_mode)), (os.geteuid(), 0o600), "file")
        with w.daemon() as d, d.connect() as k:
            same([m["content"] for m in k.call("memory.list")], ["kept"], "memories")
            same([(t["state"], t["held"]) for t in k.call("task.find")["tasks"]],
                 [("queued", True)] * 2, "tasks")
            same(k.call("approval.grants")["grants"], [], "grants")
            # Another, behind them, runs: those do not.
            end(k, add(k, "true", project=w("root")), project=w("root"))
            check("held" in koine(w, "task", "list", "--project", w("root")), "not shown")
            check(not os.path.exists(w("ran")) and not os.path.exists(w("up")), "one ran")
        # Held they stay, over a restart too.
        with w.daemon() as d, d.connect() as k:
            end(k, add(k, "true", project=w("root")), project=w("root"))
            check(not os.path.exists(w("ran")), "it ran")
            koine(w, "task", "release", queued, "--project", w("root"))
            end(k, queued, project=w("root"))
            check(os.path.exists(w("ran")) and not os.path.exists(w("up")), "which ran?")
            koine(w, "task", "release", queued, "--project", w("root"), status=1)
            connect(d).call("task.cancel", {"taskId": running})


def test_a_store_that_is_in_use_is_not_adopted():
    with World() as w, w.daemon() as d:
        koine(w, "store", "adopt", w("root", "koine.db"), status=69)
        koine(w, "store", "adopt", w("root", "nothing.db"), status=69)
        same([n for n in os.listdir(w("root")) if "adopting" in n or "theirs" in n], [], "left")
        d.alive()


if __name__ == "__main__":
    main(globals())
