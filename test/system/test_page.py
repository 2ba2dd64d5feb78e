"""Who may look at the page, and act there: links, cookies, where a request comes from."""
import contextlib
import gzip
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys

from harness import (KOINE, SOURCE, Client, Daemon, Folder, Skip, check, clean_environment, main, reachable, request,
                     same, wait_until)
from page_world import PageWorld
from test_users import NOBODY, become_nobody, open_the_way, someone_else, try_unix

PAGE_BYTES_MAX = 100 * 1000
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def koine(d, *args, status=0):
    done = subprocess.run([KOINE, "--socket", d.socket_path, *args], capture_output=True, text=True,
                          timeout=60)
    same(done.returncode, status, "exit of %r, %s" % (args, done.stderr))
    return done


def link_of(d):
    return koine(d, "page", "--no-open").stdout.splitlines()[0]


class Browser:
    """A connection for each request, and a cookie."""

    def __init__(self, base):
        self.base = base
        self.host = base.split("://")[1]
        # Browsers know that names below localhost are this machine; Python does not.
        self.place = "http:127.0.0.1:" + self.host.split(":")[1]
        self.cookie = None

    def ask(self, method, path, body=None, headers=(), host=None):
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: " + (host or self.host)]
        if self.cookie:
            lines.append("Cookie: " + self.cookie)
        lines += headers
        if body is not None:
            lines.append("Content-Length: %d" % len(body))
        with Client(self.place) as c:
            c.send("\r\n".join(lines + ["", ""]).encode() + (body or b""))
            return c.read_response(head_only=method == "HEAD")

    def get(self, path, *headers, **opts):
        return self.ask("GET", path, None, headers, **opts)

    def call(self, method, params=None, *headers, **opts):
        headers = headers or ("Origin: " + self.base,)
        return self.ask("POST", "/rpc", request(method, params), headers, **opts)

    def enter(self, link):
        r = self.get(link[len(self.base):])
        if r.status == 200:
            self.cookie = r.header("Set-Cookie").split(";")[0]
        return r


def enter(d):
    link = link_of(d)
    b = Browser(link.split("/enter")[0])
    same(b.enter(link).status, 200, "entering")
    return b


def result(r):
    same(r.status, 200, "status")
    return json.loads(r.body)["result"]


def refused(r, status=403):
    """Refused outside JSON-RPC: the call was not even read."""
    same(r.status, status, "status")
    check(r.header("Content-Type").startswith("text/html"), "%r", r.body)


def test_nothing_is_served_without_a_cookie():
    with Daemon() as d:
        b = Browser(link_of(d).split("/enter")[0])
        for path in ("/", "/app.js", "/style.css", "/icon.svg", "/events", "/nothing"):
            r = b.get(path)
            refused(r, 401)
            check(b"koine page" in r.body and len(r.body) < 1000, "%r", r.body)
            for name, value in HEADERS.items():
                same(r.header(name), value, name)
        refused(b.call("ping"), 401)
        b.cookie = "koine-%s=%s" % (b.host.split(":")[1], "0" * 64)
        refused(b.get("/"), 401)
        refused(b.call("ping"), 401)
        # Which of two would count is nobody's choice.
        b = enter(d)
        same(b.get("/").status, 200, "with one")
        refused(b.get("/", "Cookie: a=b"), 401)


def test_a_link_works_once():
    with Daemon() as d:
        link = link_of(d)
        b = Browser(link.split("/enter")[0])
        r = b.enter(link)
        cookie = r.header("Set-Cookie")
        for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
            check(part in cookie, "%s", cookie)
        same(r.header("Cache-Control"), "no-store", "caching")
        same(result(b.call("ping"))["pong"], True, "call")
        same(Browser(b.base).enter(link).status, 403, "a second time")
        same(result(b.call("ping"))["pong"], True, "call afterwards")


def test_a_link_that_was_changed_or_is_missing_lets_nobody_in():
    with Daemon() as d:
        link = link_of(d)
        b = Browser(link.split("/enter")[0])
        last = "0" if link[-1] != "0" else "1"
        same(b.enter(link[:-1] + last).status, 403, "changed")
        same(b.enter(link + "0").status, 403, "longer")
        same(b.get("/enter").status, 400, "none")
        same(b.get("/enter?link=").status, 403, "empty")
        same(b.ask("HEAD", link[len(b.base):]).status, 400, "HEAD")
        same(b.cookie, None, "cookie")
        same(b.enter(link).status, 200, "the true one, still")


def test_only_the_newest_links_count():
    with Daemon() as d:
        old = link_of(d)
        with d.connect() as c:
            links = [c.call("page.open")["link"] for _ in range(16)]
        for link, status in ((old, 403), (links[0], 200)):
            same(Browser(link.split("/enter")[0]).enter(link).status, status, "the seventeenth, the sixteenth")


def test_no_other_page_can_act():
    with Daemon() as d:
        b = enter(d)
        port = b.host.split(":")[1]
        for headers in ((), ("Origin: http://evil.example",), ("Origin: null",),
                        ("Origin: http://127.0.0.1:1",), ("Origin: https://" + b.host,),
                        ("Origin: http://localhost:" + port,),
                        ("Origin: " + b.base, "Sec-Fetch-Site: cross-site"),
                        ("Origin: " + b.base, "Origin: " + b.base),
                        ("Sec-Fetch-Site: same-site",), ("Sec-Fetch-Site: none",),
                        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                         "Sec-Fetch-Dest: document")):
            r = b.ask("POST", "/rpc", request("memory.add", {"content": "evil"}), headers)
            refused(r)
        same(result(b.call("memory.list")), [], "what was changed")
        for headers in (("Origin: http://evil.example",), ("Sec-Fetch-Site: cross-site",),
                        ("Sec-Fetch-Site: same-site",)):
            refused(b.get("/events", *headers))
            refused(b.get("/", *headers))
        refused(b.get("/", host="evil.example"))
        refused(b.call("ping", None, "Origin: http://evil.example", host="evil.example"))
        same(result(b.call("ping", None, "Sec-Fetch-Site: same-origin"))["pong"], True, "our own")


def test_who_follows_a_link_from_elsewhere_is_shown_the_page():
    with Daemon() as d:
        b = enter(d)
        same(b.get("/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                   "Sec-Fetch-Dest: document").status, 200, "a visit")
        refused(b.get("/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
                      "Sec-Fetch-Dest: iframe"))


def test_a_browser_is_turned_away():
    with Daemon() as d:
        a, b = enter(d), enter(d)
        rows = json.loads(koine(d, "browser", "list", "--json").stdout)
        same(len(rows), 2, "browsers")
        check("digest" not in rows[0], "%r", rows[0])
        with Client(a.place) as c:
            c.send(("GET /events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n"
                    % (a.host, a.cookie)).encode())
            c.take_until(b"event: hello")
            koine(d, "browser", "delete", rows[0]["id"][:8])
            with d.connect() as own:
                own.call("memory.add", {"content": "a secret"})
            while b"\r\n0\r\n\r\n" not in c.got:
                check(b"memory." not in c.got and c.more(), "told after its end: %r", bytes(c.got))
        refused(a.get("/"), 401)
        refused(a.call("ping"), 401)
        same(result(b.call("ping"))["pong"], True, "the other")
        koine(d, "browser", "delete", "nobody", status=1)


def test_a_stop_ends_all_sessions_of_the_page():
    """The port was free, and whoever had it may have left something at its origins."""
    with Daemon() as d:
        for end in (d.stop, lambda: (d.signal(signal.SIGKILL), d.wait_exit())):
            b = enter(d)
            end()
            d.start()
            d.wait_ready()
            fresh = Browser("http://%s:%s" % (b.host.split(":")[0], link_of(d).split("/enter")[0].split(":")[-1]))
            fresh.cookie = "koine-%s=%s" % (fresh.host.split(":")[1], b.cookie.split("=")[1])
            refused(fresh.get("/"), 401)
            same(json.loads(koine(d, "browser", "list", "--json").stdout), [], "browsers")


def nobody_binds(port):
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with contextlib.suppress(OSError), socket.socket(family) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((host, port))
            s.listen()
            check(family == socket.AF_INET6 and not os.path.exists("/proc/net/if_inet6"), "%s was free", host)
    return True


def test_a_restart_keeps_the_port_and_the_sessions_of_the_page():
    with Daemon() as d:
        b, other = enter(d), enter(d)
        link = link_of(d)
        koine(d, "browser", "delete", json.loads(koine(d, "browser", "list", "--json").stdout)[1]["id"])
        before = koine(d, "browser", "list", "--json").stdout
        port = int(b.host.split(":")[1])
        with d.connect() as c:
            same(c.call("daemon.restart"), {"restarting": True}, "answer")
        wait_until(lambda: nobody_binds(port) and d.log().count(b" started ") == 2, "a new start")
        nobody_binds(port)
        same(result(b.call("ping"))["pong"], True, "the session")
        refused(other.get("/"), 401)
        check(b.enter(link).status != 200, "a link outlives it")
        after = json.loads(koine(d, "browser", "list", "--json").stdout)
        same([{**r, "seen_at": ""} for r in after], [{**r, "seen_at": ""} for r in json.loads(before)], "browsers")
        # Of a crash afterwards nothing is left.
        d.signal(signal.SIGKILL)
        d.wait_exit()
        d.start()
        d.wait_ready()
        same(json.loads(koine(d, "browser", "list", "--json").stdout), [], "browsers after a crash")


def test_a_restart_that_its_client_gives_up_is_a_stop():
    """The service manager restarts koined while the client's connection lasts."""
    with Daemon() as d:
        enter(d)
        with d.connect() as c:
            c.call("daemon.restart", {"by_manager": True})
        d.settle()
        d.stop()
        d.start()
        d.wait_ready()
        same(json.loads(koine(d, "browser", "list", "--json").stdout), [], "browsers")


def test_a_stream_goes_on_from_a_number():
    with Daemon() as d:
        b = enter(d)
        result(b.call("memory.add", {"content": "one"}))
        last = result(b.call("event.list"))["last"]
        koine(d, "memory", "add", "two")
        for how in ("GET /events?since=%d HTTP/1.1\r\n" % last,
                    "GET /events HTTP/1.1\r\nLast-Event-ID: %d\r\n" % last):
            with Client(b.place) as c:
                c.send((how + "Host: %s\r\nCookie: %s\r\n\r\n" % (b.host, b.cookie)).encode())
                told = c.take_until(b'"memory.added"')
                check(b"id: %d\n" % (last + 1) in told, "%r", told)


def test_each_link_has_an_origin_of_its_own_and_counts_there_only():
    with Daemon() as d:
        a, b = link_of(d), link_of(d)
        hosts = [Browser(link.split("/enter")[0]).host for link in (a, b)]
        check(hosts[0] != hosts[1], "%r", hosts)
        port = hosts[0].split(":")[1]
        first = Browser("http://" + hosts[0])
        path = a[len(first.base):]
        for host in (hosts[1], "localhost:" + port, "127.0.0.1:" + port, "x." + hosts[0], hosts[0] + ":9",
                     hosts[0] + "x", hosts[0] + "/", hosts[0].split(":")[0] + ":"):
            check(first.get(path, host=host).status in (401, 403), host)
        same(first.enter(a).status, 200, "there")
        same(result(first.call("ping"))["pong"], True, "call")
        for host in (hosts[1], "localhost:" + port, "127.0.0.1:" + port, hosts[0].split(":")[0],
                     hosts[0].split(":")[0] + ":1", "x." + hosts[0], hosts[0].upper()):
            got = first.get("/", host=host)
            check(got.status in (401, 403), "%s: %d", host, got.status)
            if got.status == 401:
                check('"storage"' in got.header("Clear-Site-Data"), "what is left there is not cleared")
            check(first.call("ping", None, "Origin: http://" + host, host=host).status in (401, 403), host)
        # Another port is one of ssh's, whose other end is here.
        away = Browser("http://%s" % hosts[1])
        got = away.get(b[len(away.base):], host=hosts[1].split(":")[0] + ":7771")
        away.cookie = got.header("Set-Cookie").split(";")[0]
        same(away.get("/", host=hosts[1].split(":")[0] + ":7771").status, 200, "through a tunnel")
        refused(away.get("/"), 401)


def test_a_worker_that_was_left_there_unregisters_itself():
    with Daemon() as d:
        b = Browser(link_of(d).split("/enter")[0])
        for host in (b.host, "127.0.0.1:" + b.host.split(":")[1]):
            r = b.get("/sw.js", "Service-Worker: script", host=host)
            same((r.status, r.header("Cache-Control")), (200, "no-store"), "its script")
            check(b"registration.unregister()" in r.body, "%r", r.body)


def test_a_request_for_a_worker_reads_no_events():
    with Daemon() as d:
        b = Browser(link_of(d).split("/enter")[0])
        for path in ("/events", "/events?since=0"):
            for host in (b.host, "127.0.0.1:" + b.host.split(":")[1]):
                refused(b.get(path, "Service-Worker: script", host=host), 401)


def test_nobody_else_listens_at_the_other_address_of_localhost():
    """Browsers try both: whoever has the other one would be shown the link."""
    with Daemon("--set", "listen.page=on") as d:
        port = int(link_of(d).split("/enter")[0].split(":")[-1])
        for uid in (os.getuid(), NOBODY if os.getuid() == 0 else os.getuid()):
            check(someone_binds(port, uid) in ("EADDRINUSE", "EADDRNOTAVAIL", "EAFNOSUPPORT"), "uid %d", uid)
    with socket.socket() as free, socket.socket(socket.AF_INET6) as taken:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        try:
            taken.bind(("::1", port))
        except OSError as e:
            raise Skip("no IPv6 here") from e
        taken.listen()
        with Daemon("--listen", "page=http:127.0.0.1:%d" % port, "--listen", "koine=on") as d:
            done = koine(d, "page", "--no-open", status=1)
            check("[listen] page = " in done.stderr and "link=" not in done.stdout, "%r", done)


def test_the_page_opens_where_ipv6_is_off():
    off = ["unshare", "--net", "sh", "-ec",
           'ip link set lo up; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; exec "$@"', "sh"]
    if subprocess.run([*off, "true"], capture_output=True).returncode != 0:
        raise Skip("no network namespace here")
    with Daemon("--set", "listen.page=on", wrapper=off) as d:
        check("link=" in link_of(d), "no link")


def test_the_page_opens_where_koined_listens_at_both_addresses_of_localhost():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Daemon("--listen", "page=http:127.0.0.1:%d" % port, "--listen", "page=http:[::1]:%d" % port,
                "--listen", "koine=on") as d:
        check("link=" in link_of(d), "no link")


def test_without_a_descriptor_the_page_does_not_open():
    """The other address of localhost cannot be held, so another program could listen there."""
    with Daemon("--set", "listen.page=on") as d, d.connect() as c:
        c.ping()
        used = set(map(int, os.listdir("/proc/%d/fd" % d.pid)))
        lowest = next(n for n in range(len(used) + 1) if n not in used)
        before = resource.prlimit(d.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
        answer = json.loads(c.call_text(request("page.open")))
        check("Too many open files" in answer.get("error", {}).get("message", ""), "%r", answer)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, before)
        check("/enter?link=" in c.call("page.open")["link"], "no link")


XDG_OPEN = """#!/bin/sh
{ cat /proc/$$/cmdline | tr '\\0' ' '; stat -c ' %%a %%u' "$1"; cat "$1"; } >%s.new
mv %s.new %s
"""


def test_no_program_is_given_the_link_as_an_argument():
    with Daemon() as d, Folder() as f:
        for name, text in (("xdg-open", XDG_OPEN % ((f("opened"),) * 3)),
                           ("xdg-settings", "#!/bin/sh\necho browser.desktop\n")):
            with open(f(name), "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(f(name), 0o755)
        for runtime, place in (({"XDG_RUNTIME_DIR": f.path}, "koine-page.html"), ({"XDG_RUNTIME_DIR": ""}, ".koine-page.html")):
            env = clean_environment({"PATH": f.path + ":" + os.environ["PATH"], "DISPLAY": ":9", "HOME": f.path, **runtime})
            done = subprocess.run([KOINE, "--socket", d.socket_path, "page"], env=env, capture_output=True, text=True, timeout=60)
            same(done.returncode, 0, "exit (%r)" % done.stderr)
            link = done.stdout.strip()
            wait_until(lambda: os.path.exists(f("opened")), "the browser")
            with open(f("opened"), encoding="utf-8") as found:
                words, _, text = found.read().partition("\n")
            os.unlink(f("opened"))
            check("link=" not in words and "%s  600 %d" % (f(place), os.getuid()) in words, "%r", words)
            check('content="0;url=%s"' % link in text, "%r", text)
        # A browser of a snap cannot read it.
        os.makedirs(f(".local/share/applications"))
        with open(f(".local/share/applications/browser.desktop"), "w", encoding="utf-8") as out:
            out.write("[Desktop Entry]\nExec=/snap/bin/browser %u\n")
        done = subprocess.run([KOINE, "--socket", d.socket_path, "page"], env=env, capture_output=True, text=True, timeout=60)
        check("link=" in done.stdout and "open the link" in done.stderr, "%r", done)
        check(not os.path.exists(f("opened")), "it was opened")


def someone_binds(port, uid):
    child = subprocess.run([sys.executable if uid == os.getuid() else "/usr/bin/python3", "-c",
                            "import errno, socket\ns = socket.socket(socket.AF_INET6)\n"
                            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                            "try:\n    s.bind(('::1', %d)); s.listen(); print('bound')\n"
                            "except OSError as e:\n    print(errno.errorcode[e.errno])\n" % port],
                           user=uid, capture_output=True, text=True, timeout=60)
    return child.stdout.strip()


def test_a_number_of_another_store_is_not_gone_on_from():
    """Whoever has seen more than there is begins with what comes next, and is told from where."""
    with Daemon() as d, d.connect() as own:
        b = enter(d)
        for since in ("?since=999999999", "?since=-5", ""):
            with Client(b.place) as c:
                c.send(("GET /events%s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n" % (since, b.host, b.cookie)).encode())
                c.take_until(b"event: hello\ndata: ")
                at = json.loads(c.take_until(b"\n"))["since"]
                same(at, max([e["seq"] for e in own.call("event.list")["events"]], default=0), "since")
                own.call("memory.add", {"content": "after " + since})
                c.take_until(b"id: %d\n" % (at + 1))


def test_no_file_is_cached_and_all_are_small():
    with Daemon() as d:
        b = enter(d)
        total = 0
        for name in sorted(os.listdir(os.path.join(SOURCE, "web"))):
            r = b.get("/" + name)
            same((r.status, r.header("Content-Encoding")), (200, "gzip"), name)
            with open(os.path.join(SOURCE, "web", name), "rb") as f:
                same(gzip.decompress(r.body), f.read(), name)
            total += len(r.body)
            same((r.header("Cache-Control"), r.header("ETag")), ("no-store", None), "what a cache keeps of " + name)
            same(b.get("/" + name, "If-None-Match: *").status, 200, "a cached one")
            head = b.ask("HEAD", "/" + name)
            same((head.status, int(head.header("Content-Length"))), (200, len(r.body)), "HEAD")
        check(total < PAGE_BYTES_MAX, "the page has %d bytes", total)
        same(b.get("/").body, b.get("/index.html").body, "the first file")
        same(b.get("/nothing.js").status, 404, "no such file")
        same(b.get("/../etc/passwd").status, 405, "elsewhere")
        same(b.ask("POST", "/app.js", b"{}", ("Origin: " + b.base,)).status, 405, "POST to a file")


def test_every_answer_has_the_policy():
    with Daemon() as d:
        b = enter(d)
        for r in (b.get("/"), b.get("/nothing"), b.call("ping"), b.call("no.such")):
            policy = r.header("Content-Security-Policy")
            for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                         "base-uri 'none'", "form-action 'none'"):
                check(part in policy, "%s", policy)
            check("unsafe" not in policy, "%s", policy)


def test_nothing_of_the_page_makes_markup_of_text():
    bad = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|"
                     r"new Function|setHTML|srcdoc|javascript:|DOMParser|style=|<script>")
    for name in sorted(os.listdir(os.path.join(SOURCE, "web"))):
        with open(os.path.join(SOURCE, "web", name), encoding="utf-8") as f:
            found = bad.findall(f.read())
        same(found, [], name)


def test_it_listens_only_when_it_is_asked_for():
    with Daemon() as d, d.connect() as c:
        dialects = [l["dialect"] for l in c.call("daemon.status")["listeners"]]
        check("page" not in dialects, "%r", dialects)
        c.call("page.open")
        c.call("page.open")
        dialects = [l["dialect"] for l in c.call("daemon.status")["listeners"]]
        same(dialects.count("page"), 1, "listeners")
    with Daemon("--set", "listen.page=off") as d:
        done = koine(d, "page", "--no-open", status=1)
        check("[listen] page = off" in done.stderr, "%s", done.stderr)
    with Daemon("--set", "listen.page=on") as d:
        port = d.address("http", "page").split(":")[-1]
        check(re.match(r"http://[0-9a-f]{32}\.localhost:%s/enter\?link=" % port, link_of(d)), "its place")


def test_an_agent_gets_no_link():
    """What koined runs may not make one, whatever it was told."""
    with PageWorld() as w, w.daemon.connect() as c:
        for words in ("page --no-open", "browser list", "browser delete x"):
            id = c.call("task.add", {"prompt": '"$KOINE" %s 2>&1' % words,
                                     "env": {"KOINE": KOINE}})["id"]
            same(c.call("task.wait", {"id": id})["state"], "failed", words)
            said = c.call("task.output", {"id": id})["text"]
            check("was started by koined" in said or "browser not found" in said, "%s: %s", words, said)
        dialects = [l["dialect"] for l in c.call("daemon.status")["listeners"]]
        check("page" not in dialects, "%r", dialects)


def test_another_user_gets_no_link():
    """Also one who may call: the page decides for koined's own user."""
    with Daemon("--set", "listen.koine.allow_uids=%d" % NOBODY, "--listen", "koine=on") as d:
        open_the_way(d)
        for method, params in (("page.open", None), ("page.sessions", None)):
            said = someone_else(try_unix, d.socket_path, request(method, params) + b"\n")
            check("only the user that runs koined can use the page" in said and "link=" not in said, "%s: %s", method, said)
        b = enter(d)
        id = json.loads(koine(d, "browser", "list", "--json").stdout)[0]["id"]
        said = someone_else(try_unix, d.socket_path, request("page.end", {"id": id}) + b"\n")
        check("only the user that runs koined can use the page" in said, "page.end: %s", said)
        same(b.get("/").status, 200, "it was not ended")


def ask_with(place, host, cookie):
    with Client(place) as c:
        c.send(("GET / HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n" % (host, cookie)).encode())
        return str(c.read_response().status)


def test_a_cookie_is_nothing_in_another_users_hands():
    with Folder() as f:
        with open(f("koine.conf"), "w", encoding="utf-8") as out:
            out.write("[listen page]\nallow_uids = %d\n" % NOBODY)
        with Daemon("--config", f("koine.conf")) as d:
            b = enter(d)
            same(ask_with(b.place, b.host, b.cookie), "200", "our own")
            same(someone_else(ask_with, b.place, b.host, b.cookie), "401", "somebody else's")


def test_behind_a_proxy():
    with Daemon("--set", "page.behind=https://koine.example:8443") as d:
        link, behind = koine(d, "page", "--no-open").stdout.split()
        check(behind.startswith("https://koine.example:8443/enter?link="), "%s", behind)
        b = Browser(link.split("/enter")[0])
        r = b.get("/enter?" + behind.split("?")[1], host="koine.example:8443")
        cookie = r.header("Set-Cookie")
        check("__Host-koine=" in cookie and "; Secure" in cookie, "%s", cookie)
        b.cookie = cookie.split(";")[0]
        ours = {"host": "koine.example:8443"}
        same(b.get("/", **ours).status, 200, "page")
        origin = "Origin: https://koine.example:8443"
        same(result(b.call("ping", None, origin, **ours))["pong"], True, "call")
        refused(b.call("ping", None, "Origin: https://koine.example", **ours))
        refused(b.call("ping", None, "Origin: http://koine.example:8443", **ours))
        refused(b.call("ping", None, origin))
        # Directly, that cookie is nothing.
        refused(b.get("/"), 401)
        how = koine(d, "page", "--link", "https://other.example/").stdout
        check(how.startswith("https://other.example/enter?link="), "%s", how)


def test_a_link_for_elsewhere_is_one_that_can_work():
    """What a browser would not open, or the settings not take, is refused before a link is made."""
    with Daemon() as d:
        for url in ("foo", "https://", "https://x.example/path", "http://x.example", "https://a b", "javascript:alert(1)",
                    "https://x.example:", "https://u@x.example", "http://127.0.0.1.x.example"):
            done = koine(d, "page", "--link", url, status=64)
            check("--link" in done.stderr and "https://HOST" in done.stderr and not done.stdout, "%s: %r", url, done)
        done = koine(d, "page", "--link", "https://X.Example:8443/")
        check(done.stdout.startswith("https://x.example:8443/enter?link="), "%r", done)
        check("behind = https://x.example:8443\n" in done.stderr, "%r", done)
        for url in ("http://127.0.0.1:7771", "http://localhost:7771/"):
            done = koine(d, "page", "--link", url)
            check(re.match(r"http://[0-9a-f]{32}\.localhost:7771/enter\?link=", done.stdout), "%r", done)
            check("ssh -L 7770:127.0.0.1:" in done.stderr and "behind" not in done.stderr, "%r", done)


def test_a_proxy_into_which_koined_cannot_look():
    """koined is an ordinary user's, the proxy root's, as tailscaled is: its page sessions decide."""
    if os.getuid() != 0 or not reachable(NOBODY):
        raise Skip("another user cannot run koined here")

    class Theirs(Daemon):
        def start(self):
            os.chown(self.root, NOBODY, NOBODY)
            super().start()

    with Theirs("--set", "page.behind=https://koine.example", "--set", "listen.page=on", "--set",
                "approval.agents_decide=no", preexec_fn=become_nobody) as d, d.connect() as c:
        done = subprocess.run([KOINE, "--socket", d.socket_path, "page", "--no-open"], user=NOBODY,
                              group=NOBODY, extra_groups=[], capture_output=True, text=True,
                              timeout=60, check=True)
        link, behind = done.stdout.split()
        v = Browser(link.split("/enter")[0])
        ours = {"host": "koine.example"}
        r = v.get("/enter?" + behind.split("?")[1], **ours)
        v.cookie = r.header("Set-Cookie").split(";")[0]
        id = c.call("approval.create", {"tool": "x"})["id"]
        # At the socket nobody has been let in, and who asked does not decide.
        told = json.loads(c.call_text(request("approval.decide", {"id": id, "decision": "approve"})))
        same(told["error"]["code"], -32006, "at the socket")
        said = result(v.call("approval.decide", {"id": id, "decision": "approve"},
                             "Origin: https://koine.example", **ours))
        same((said["status"], said["decided_by"]), ("approved", "human"), "by the proxy")


def test_behind_must_be_an_origin():
    for value in ("http://h", "https://", "https://h/", "https://h:", "https://a@h", "h"):
        done = subprocess.run([os.environ.get("KOINED", os.path.join(SOURCE, "build", "koined")),
                               "--check", "--set", "page.behind=" + value], capture_output=True,
                              text=True, timeout=60)
        check(done.returncode != 0 and "page.behind" in done.stderr + done.stdout,
              "%s: %s", value, done.stderr)


def test_the_last_day_is_at_hand():
    with Daemon() as d, d.connect() as c:
        first, before = c.call("daemon.samples")["samples"]
        for _ in range(5):
            c.call("ping")
        c.call_text(b'{"jsonrpc":"2.0","id":1,"method":"no.such"}')
        again, now = c.call("daemon.samples")["samples"]
        same(first, again, "the first minute's")
        check(now["calls"] - before["calls"] >= 6, "%r", now)
        check(now["errors"] > before["errors"] and now["connections"] >= 1, "%r", now)
        same(sorted(now), sorted(first), "members")


def test_streams_are_bounded():
    """256 of all browsers; one that ends makes room for another."""
    with Daemon() as d, contextlib.ExitStack() as stack:
        b = enter(d)

        def open_one():
            c = stack.enter_context(Client(b.place))
            c.send(("GET /events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n" % (b.host, b.cookie)).encode())
            return c

        streams = [open_one() for _ in range(256)]
        for c in streams:
            c.take_until(b"event: hello")
        said = open_one().read_response()
        check(said.status >= 400 and b"too many streams (limit 256)" in said.body, "%r", said)
        streams[0].close()
        wait_until(lambda: open_one().take_until(b"\r\n").startswith(b"HTTP/1.1 200"), "room for another")


def test_fifty_streams_hear_of_one_change():
    with Daemon() as d:
        b = enter(d)
        clients = [Client(b.place) for _ in range(50)]
        try:
            for c in clients:
                c.send(("GET /events HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n"
                        % (b.host, b.cookie)).encode())
                c.take_until(b"event: hello")
            koine(d, "memory", "add", "all of them hear this")
            for c in clients:
                c.take_until(b'"memory.added"')
        finally:
            for c in clients:
                c.close()


if __name__ == "__main__":
    main(globals())
