#!/usr/bin/env python3
"""Processes over the gateway: started, read, written to, ended; and who may."""
import json
import os
import signal

from harness import Client, Daemon, Folder, check, main, post, run_koined, same, wait_until

TOKEN = "a secret"
ALLOW = ("--set", "policy.all.verdict=allow", "--set", "policy.all.agent=gateway",
         "--set", "policy.all.tool=process")


def daemon(*args, **opts):
    return Daemon("--set", "listen.gateway=on", *args, env={"OPENCLAW_UI_TOKEN": TOKEN}, **opts)


def place(d):
    return d.address("http", "gateway")


def http(d, method, path, body=None):
    with Client(place(d)) as c:
        r = post(c, b"" if body is None else json.dumps(body).encode(), path, method=method,
                 headers="Authorization: Bearer %s\r\n" % TOKEN +
                 ("" if body is None else "Content-Type: application/json\r\n"))
        same(r.header("content-type"), "application/json; charset=utf-8", "content type")
        return r.status, json.loads(r.body)


def fine(d, *args):
    status, got = http(d, *args)
    same(status, 200, "status (%r)" % got)
    return got


def log(d, id, **more):
    query = "".join("&%s=%s" % item for item in more.items())
    return fine(d, "GET", "/process/log?sessionId=%s%s" % (id, query))


def with_processes(folder, *args, **opts):
    return daemon("--set", "gateway.process=yes", "--set", "gateway.folder=" + folder.path,
                  *args, **opts)


def test_processes_are_not_allowed_unless_set():
    with daemon() as d:
        for method, path, body in (("POST", "/process/start", {"command": "true"}),
                                   ("GET", "/process/list", None),
                                   ("GET", "/process/log?sessionId=proc_1", None),
                                   ("POST", "/process/write", {"sessionId": "x", "data": "y"}),
                                   ("POST", "/process/kill?sessionId=proc_1", None)):
            status, got = http(d, method, path, body)
            same(status, 403, path)
            check("[gateway] process = yes" in got["error"], "%r", got)
    done = run_koined("--check", "--set", "gateway.process=yes")
    check(done.returncode == 78 and b"gateway.folder" in done.stderr, "%r", done.stderr)


def test_a_process_from_its_start_to_its_end():
    with Folder() as folder, with_processes(folder, *ALLOW) as d:
        command = "echo $A $B; pwd; echo [$OPENCLAW_UI_TOKEN]; cat; exit 4"
        got = fine(d, "POST", "/process/start", {"command": command, "env": "A=b\nB=c d\n"})
        same(list(got), ["sessionId", "pid", "command", "success"])
        id = got["sessionId"]
        check(id.startswith("proc_"), "%r", id)
        want = "b c d\n%s\n[]\n" % folder.path
        wait_until(lambda: log(d, id)["content"] == want, "its output")
        same(log(d, id, offset=2, limit=3),
             {"sessionId": id, "offset": 2, "content": "c d", "truncated": True, "next": 5,
              "status": "running"})
        same(fine(d, "POST", "/process/write", {"sessionId": id, "data": "more\n", "eof": False}),
             {"sessionId": id, "written": 5, "eof": False})
        with Client(d.address("unix", "koine")) as c:
            asked = c.call("approval.list", {"status": "approved", "limit": 1})["approvals"][0]
        same(list(asked["input"].items()),
             [("action", "write"), ("data", "more\n"), ("eof", False), ("to", command),
              ("sessionId", id)], "what the approver is shown")
        same(fine(d, "POST", "/process/write", {"sessionId": id, "data": "", "eof": True})["eof"],
             True)
        wait_until(lambda: log(d, id)["status"] == "exited", "its end")
        got = log(d, id, offset=len(want))
        same((got["content"], got["exitCode"], "truncated" in got), ("more\n", 4, False))
        got = fine(d, "GET", "/process/list")
        same((got["count"], got["processes"][0]["sessionId"]), (1, id))
        same(got["processes"][0]["status"], "exited")
        status, got = http(d, "POST", "/process/write", {"sessionId": id, "data": "late"})
        same(status, 409, "%r" % got)


def test_a_process_with_a_terminal_and_a_kill():
    with Folder() as folder, with_processes(folder, *ALLOW) as d:
        got = fine(d, "POST", "/process/start",
                   {"command": "tty; setsid sleep 90 & sleep 90 & echo up; wait", "pty": True,
                    "env": {"A": "b"}})
        same(got["pty"], True)
        id = got["sessionId"]
        wait_until(lambda: "up\r\n" in log(d, id)["content"], "its output")
        check(log(d, id)["content"].startswith("/dev/pts/"), "%r", log(d, id))
        children = below(d.pid)
        check(len(children) >= 3, "%r", children)
        same(fine(d, "POST", "/process/kill?sessionId=" + id), {"sessionId": id, "killed": True})
        same([p for p in children if os.path.exists("/proc/%d" % p)], [], "left")


def below(pid):
    """All processes whose parent is, or was adopted by, this one, and theirs."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                name, _, rest = f.read().rpartition(")")
            # A guard ends with its host.
            if not name.endswith("(koined-guard"):
                parents[int(name.split()[0])] = int(rest.split()[1])
        except OSError:
            pass
    found = {pid}
    while True:
        more = {p for p, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(found - {pid})
        found |= more


def test_a_process_waits_for_whoever_approves():
    with Folder() as folder, with_processes(folder) as d:
        mine = d.connect("unix", "koine")
        for decision, status in (("deny", 403), ("approve", 200)):
            with ask_to_start(d) as c:
                one = wait_until(lambda: pending(mine), "a question")[0]
                same((one["agent"], one["tool"], one["input"]["command"]),
                     ("gateway", "process", "true"))
                mine.call("approval.decide", {"id": one["id"], "decision": decision,
                                              "comment": "because"})
                r = c.read_response()
                same(r.status, status, decision)
                check(decision == "approve" or b"because" in r.body, "%r", r.body)
        # Whoever leaves takes the question away.
        with ask_to_start(d):
            wait_until(lambda: pending(mine), "a question")
        wait_until(lambda: not pending(mine), "the question to go")
        same(fine(d, "GET", "/process/list")["count"], 1, "processes")


def ask_to_start(d):
    """Sent, but not answered yet."""
    c = Client(place(d))
    c.send(b"POST /process/start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n"
           b"X-OCG-UI-Token: %s\r\n\r\n" % TOKEN.encode() + b'{"command":"true"}')
    return c


def pending(c):
    return c.call("approval.list", {"status": "pending"})["approvals"]


def test_a_question_that_nobody_waits_for_is_withdrawn_at_the_next_start():
    with Folder() as folder, Folder() as root:
        with with_processes(folder, root=root.path) as d, ask_to_start(d) as c:
            mine = d.connect("unix", "koine")
            wait_until(lambda: pending(mine), "a question")
            d.signal(signal.SIGTERM)
            same(c.read_response().status, 503, "status")
            same(d.wait_exit(), 0, "exit status")
        with with_processes(folder, root=root.path) as d:
            mine = d.connect("unix", "koine")
            wait_until(lambda: not pending(mine), "the question to go")


def test_no_process_outlives_the_daemon():
    for number in (signal.SIGTERM, signal.SIGKILL):
        with Folder() as folder, Folder() as root:
            with with_processes(folder, *ALLOW, root=root.path,
                                exit_status=0 if number == signal.SIGTERM else -9) as d:
                for pty in (False, True):
                    id = fine(d, "POST", "/process/start",
                              {"command": "trap '' HUP; setsid sleep 90 & echo up; sleep 90",
                               "pty": pty})["sessionId"]
                    wait_until(lambda: "up" in log(d, id)["content"], "its output")
                children = below(d.pid)
                check(len(children) >= 4, "%r", children)
                d.signal(number)
                d.wait_exit()
            if number == signal.SIGKILL:
                with with_processes(folder, *ALLOW, root=root.path):
                    pass
            wait_until(lambda: not [p for p in children if alive(p)], "all to be gone")


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_bad_asks_for_a_process():
    with Folder() as folder, with_processes(folder, *ALLOW) as d:
        for body, status in (({}, 400), ({"command": ""}, 400), ({"command": 7}, 400),
                             ({"command": "true", "env": 7}, 400),
                             ({"command": "true", "env": ["A"]}, 400),
                             ({"command": "true", "env": {"A=B": "c"}}, 400),
                             ({"command": "true", "env": {"A": 1}}, 400),
                             ({"command": "true", "env": {"A%d" % i: "x" for i in range(300)}}, 400),
                             ({"command": "true", "workdir": "/"}, 403),
                             ({"command": "true", "workdir": "missing"}, 400),
                             ({"command": "a\0b"}, 400),
                             ({"command": "x" * 70000}, 400)):
            status_got, got = http(d, "POST", "/process/start", body)
            same(status_got, status, "%.60r: %r" % (body, got))
        for path in ("/process/log?sessionId=proc_1", "/process/kill?sessionId=proc_1"):
            same(http(d, "GET", path)[0], 404, path)
        same(http(d, "GET", "/process/log")[0], 400, "no id")
        same(http(d, "POST", "/process/write", {"sessionId": "proc_1"})[0], 400, "no data")
        same(fine(d, "GET", "/process/list")["count"], 0, "processes")


if __name__ == "__main__":
    main(globals())
