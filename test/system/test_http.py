#!/usr/bin/env python3
"""
HTTP as strict as it must be: no smuggled request runs, no web page gets in, and
what honest clients send is served.
"""
import json
import os

from harness import MIB, Daemon, Folder, check, main, note, post, request, rss, run_koined, same, shared

EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0", "tcp:127.0.0.1:0")
HTTP_KINDS = ("unix", "http", "tcp")
TCP_KINDS = ("http", "tcp")
PING = request("ping")
MARK = request("debug.echo", '["smuggled"]', id='"smuggled"')

# A whole request of its own, to be found behind or inside a broken one.
SECOND = (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(MARK)) + MARK


def smuggled(head, body=b""):
    return b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLING = {
    "length and chunked": smuggled(b"Content-Length: 4\r\n" + CHUNKED, b"0\r\n\r\n"),
    "chunked and length": smuggled(CHUNKED + b"Content-Length: 4\r\n", b"0\r\n\r\n"),
    "two lengths": smuggled(b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(SECOND)),
    "two equal lengths": smuggled(b"Content-Length: 0\r\nContent-Length: 0\r\n"),
    "list of lengths": smuggled(b"Content-Length: 0, 0\r\n"),
    "signed length": smuggled(b"Content-Length: +0\r\n"),
    "negative length": smuggled(b"Content-Length: -0\r\n"),
    "hexadecimal length": smuggled(b"Content-Length: 0x0\r\n"),
    "empty length": smuggled(b"Content-Length: \r\n"),
    "length with a space inside": smuggled(b"Content-Length: 0 0\r\n"),
    "chunked twice": smuggled(CHUNKED + CHUNKED, b"0\r\n\r\n"),
    "chunked, chunked": smuggled(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"),
    "chunked then identity": smuggled(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"),
    "chunked after a tab and a byte": smuggled(b"Transfer-Encoding: \x0bchunked\r\n",
                                               b"0\r\n\r\n"),
    "empty encoding": smuggled(b"Transfer-Encoding: \r\n", b"0\r\n\r\n"),
    "bare LF after a chunk size": smuggled(CHUNKED, b"0\n\r\n"),
    "bare LF in a chunk extension": smuggled(CHUNKED, b"0;a\nb\r\n\r\n"),
    "bare CR in a chunk extension": smuggled(CHUNKED, b"0;a\rb\r\n\r\n"),
    "bare LF after chunk data": smuggled(CHUNKED, b"1\r\n \n0\r\n\r\n"),
    "chunk longer than it says": smuggled(CHUNKED, b"1\r\n  \r\n0\r\n\r\n"),
    "chunk size with 0x": smuggled(CHUNKED, b"0x0\r\n\r\n"),
    "chunk size with a sign": smuggled(CHUNKED, b"-0\r\n\r\n"),
    "chunk size with a space before": smuggled(CHUNKED, b" 0\r\n\r\n"),
    "chunk size of 17 digits": smuggled(CHUNKED, b"00000000000000000\r\n\r\n"),
    "empty chunk size": smuggled(CHUNKED, b"\r\n\r\n"),
    "bare LF in the trailer": smuggled(CHUNKED, b"0\r\nA: b\n\r\n"),
    "folded header": smuggled(b"X: a\r\n b\r\nContent-Length: 0\r\n"),
    "folded encoding": smuggled(b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"),
    "space before the colon": smuggled(b"Content-Length : 0\r\n"),
    "space before a header": smuggled(b" Content-Length: 0\r\n"),
    "header without a name": smuggled(b": x\r\nContent-Length: 0\r\n"),
    "header without a colon": smuggled(b"Nothing\r\nContent-Length: 0\r\n"),
    "bare LF after a header": b"POST / HTTP/1.1\r\nHost: localhost\nContent-Length: 0\r\n\r\n",
    "bare LF after the request line": b"POST / HTTP/1.1\nHost: localhost\r\n\r\n",
    "bare CR in a header": smuggled(b"X: a\rb\r\nContent-Length: 0\r\n"),
    "NUL in a header": smuggled(b"X: a\0b\r\nContent-Length: 0\r\n"),
    "two hosts": smuggled(b"Host: localhost\r\nContent-Length: 0\r\n"),
    "no host": b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "chunked in 1.0": b"POST / HTTP/1.0\r\nHost: localhost\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "three words in the target": b"POST / x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two spaces": b"POST  / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


def test_smuggled_requests_never_run():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            for name, data in SMUGGLING.items():
                with d.connect(kind) as c:
                    c.send_all_it_takes(data + SECOND)
                    r = c.read_response()
                    same(r.status, 400, "status for " + name)
                    same(r.header("Connection"), "close", "Connection for " + name)
                    c.half_close()
                    c.ended()
        same(d.calls(), 0, "calls")


def test_a_smuggled_request_that_comes_later_never_runs():
    with shared(listen=EVERYWHERE) as d:
        for name, data in SMUGGLING.items():
            with d.connect("http") as c:
                c.send_all_it_takes(data)
                same(c.read_response().status, 400, "status for " + name)
                c.send_all_it_takes(SECOND)
                c.read_rest()
        same(d.calls(), 0, "calls")


def test_an_unknown_encoding_is_not_implemented():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(smuggled(b"Transfer-Encoding: gzip\r\n") + SECOND)
            same(c.read_response().status, 501, "status")
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")


FOREIGN_HOSTS = ("evil.com", "localhost.evil.com", "0.0.0.0", "foo.local", "evil.com:80",
                 "127.0.0.1.evil.com", "localhost:80@evil.com", "127.0.0.1:x", "localhost:",
                 "127.1", "2130706433", "0x7f.0.0.1", "192.168.0.1", "10.0.0.1", "[::]",
                 "[::ffff:127.0.0.1]", "host.internal", "localhost.", "", "localhost localhost",
                 "127.0.0.1,evil.com", "169.254.169.254", "localhost/evil", "xlocalhost")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]", "localhost:8765", "127.0.0.1:1", "[::1]:9",
                  "LocalHost", "127.0.0.53")


def test_foreign_hosts_are_forbidden_on_tcp():
    with shared(listen=EVERYWHERE) as d:
        for kind in TCP_KINDS:
            for host in FOREIGN_HOSTS:
                with d.connect(kind) as c:
                    r = post(c, PING, host=host)
                    check(r.status in (400, 403), "Host %r: %d", host, r.status)
                    if host in ("evil.com", "localhost.evil.com", "0.0.0.0", "foo.local"):
                        same(r.status, 403, "status for " + host)
                    c.ended()
        same(d.calls(), 0, "calls")


def test_loopback_hosts_are_served_on_tcp():
    with shared(listen=EVERYWHERE) as d:
        for kind in TCP_KINDS:
            port = d.address(kind).rpartition(":")[2]
            for host in LOOPBACK_HOSTS + ("localhost:" + port, "127.0.0.1:" + port):
                with d.connect(kind) as c:
                    same(post(c, PING, host=host).status, 200, "status for " + host)


def test_any_host_is_served_on_a_unix_socket():
    with shared() as d:
        for host in LOOPBACK_HOSTS + ("evil.com", "koine", "x"):
            with d.connect() as c:
                same(post(c, PING, host=host).status, 200, "status for " + host)


def test_a_host_in_the_target_does_not_open_the_door():
    with shared(listen=EVERYWHERE) as d:
        for target in ("http://localhost/", "http://evil.com/", "//localhost/rpc"):
            with d.connect("http") as c:
                check(post(c, PING, path=target, host="evil.com").status in (400, 403), target)
        same(d.calls(), 0, "calls")


def test_a_target_may_name_its_host():
    with shared(listen=EVERYWHERE) as d:
        for kind in TCP_KINDS:
            port = d.address(kind).rpartition(":")[2]
            for target in ("http://127.0.0.1:%s/rpc", "HTTP://localhost:%s/", "http://[::1]:%s"):
                with d.connect(kind) as c:
                    same(post(c, PING, path=target % port).status, 200, "status for " + target)
            with d.connect(kind) as c:
                same(post(c, PING, path="http://127.0.0.1:%s/x" % port).status, 404, "other path")
            with d.connect(kind) as c:
                same(post(c, PING, path="http://evil.com/rpc").status, 403, "foreign target")
            with d.connect(kind) as c:
                # The page that we served ourselves is that of the host which is asked for.
                same(post(c, PING, path="http://127.0.0.1:%s/" % port, host="localhost",
                          headers="Origin: http://127.0.0.1:%s\r\n" % port).status, 200, "origin")


FOREIGN_ORIGINS = ("http://evil.com", "https://evil.com", "null", "http://localhost.evil.com",
                   "http://127.0.0.1.evil.com", "file://", "http://0.0.0.0", "", "localhost",
                   "https://localhost", "http://localhost:1", "http://localhost@evil.com",
                   "chrome-extension://abc", "http://foo.local")


def test_foreign_origins_are_forbidden_everywhere():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            for origin in FOREIGN_ORIGINS:
                with d.connect(kind) as c:
                    r = post(c, PING, headers="Origin: %s\r\n" % origin)
                    same(r.status, 403, "status for Origin %r" % origin)
                    c.ended()
        same(d.calls(), 0, "calls")


def test_pages_of_other_sites_are_forbidden_everywhere():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            for site in ("cross-site", "same-site", "Cross-Site", "", "x"):
                with d.connect(kind) as c:
                    r = post(c, PING, headers="Sec-Fetch-Site: %s\r\n" % site)
                    same(r.status, 403, "status for Sec-Fetch-Site %r" % site)
        same(d.calls(), 0, "calls")


def test_a_page_cannot_hide_behind_a_second_header():
    with shared(listen=EVERYWHERE) as d:
        for headers in ("Origin: http://localhost\r\nOrigin: http://evil.com\r\n",
                        "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
                        "oRIGIN: http://evil.com\r\n", "Origin:http://evil.com\r\n",
                        "Sec-Fetch-Site: same-origin\r\nOrigin: http://evil.com\r\n",
                        "Sec-Fetch-Site: cross-site\r\nOrigin: http://localhost\r\n"):
            with d.connect("http") as c:
                same(post(c, PING, headers=headers).status, 403, "status for %r" % headers)
        same(d.calls(), 0, "calls")


def test_requests_of_no_page_and_of_our_own_are_served():
    with shared(listen=EVERYWHERE) as d:
        address = d.address("http")[len("http:"):]
        with d.connect("http") as c:
            for headers in ("Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\n",
                            "Origin: http://%s\r\n" % address):
                same(post(c, PING, headers=headers, host=address).status, 200,
                     "status for %r" % headers)


def test_a_preflight_gets_no_leave():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                r = post(c, b"", method="OPTIONS",
                         headers="Origin: http://evil.com\r\n"
                                 "Access-Control-Request-Method: POST\r\n"
                                 "Access-Control-Request-Private-Network: true\r\n")
                same(r.status, 403, "status")
            with d.connect(kind) as c:
                same(post(c, b"", method="OPTIONS").status, 405, "status")


def test_other_methods_are_told_which_one_is_allowed():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            for method in ("GET", "PUT", "DELETE", "HEAD", "PATCH", "post"):
                r = post(c, PING, method=method)
                same(r.status, 405, "status of " + method)
                same(r.header("Allow"), "POST", "Allow")
            c.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            same(c.read_response().status, 405, "status")
            same(post(c, PING).status, 200, "status afterwards")


def test_other_paths_are_not_found():
    with Daemon(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            for path in ("/x", "/rpc/", "/rpc?x=1", "/RPC", "//", "/%2f", "/rpc/../", "/favicon"):
                same(post(c, PING, path=path).status, 404, "status of " + path)
            same(post(c, PING, path="/y?token=geheim").status, 404, "status with a query")
            same(post(c, PING).status, 200, "status afterwards")
        same(d.calls(), 1, "calls")
        check(b" status=404 path=/favicon reason=" in d.log() and b" path=/y reason=" in d.log(),
              "the paths are not in the log")
        check(b"geheim" not in d.log(), "a query is in the log")


def test_a_client_that_waits_is_told_to_continue():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                for _ in range(2):
                    c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(PING))
                    same(c.read_response().status, 100, "status")
                    c.send(PING)
                    same(c.read_response().status, 200, "status")
                c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n")
                same(c.read_response().status, 100, "status")
                c.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(PING), PING))
                same(c.read_response().status, 200, "status")


def test_a_client_that_expects_something_else_is_refused():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(smuggled(b"Expect: tea\r\nContent-Length: 0\r\n"))
            same(c.read_response().status, 417, "status")


def test_a_chunked_body_is_served():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                for sizes in ((len(MARK),), (1,) * len(MARK), (3, 20, len(MARK) - 23)):
                    body, at = b"", 0
                    for n in sizes:
                        body += b"%X;x=y\r\n%s\r\n" % (n, MARK[at:at + n])
                        at += n
                    c.send(smuggled(CHUNKED, body + b"0\r\nDigest: none\r\n\r\n"))
                    r = c.read_response()
                    same(r.status, 200, "status")
                    same(json.loads(r.body)["result"], ["smuggled"])


def test_http_1_0_is_served_and_closed():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                r = post(c, PING, version="1.0")
                same(r.status, 200, "status")
                same(r.header("Connection"), "close", "Connection")
                c.ended()
            with d.connect(kind) as c:
                for _ in range(3):
                    r = post(c, PING, version="1.0", headers="Connection: keep-alive\r\n")
                    same((r.status, r.header("Connection")), (200, "keep-alive"))


def test_http_1_0_without_a_host_is_served_on_a_unix_socket_only():
    with shared(listen=EVERYWHERE) as d:
        with d.connect() as c:
            same(post(c, PING, version="1.0", host=None).status, 200, "status")
        for kind in TCP_KINDS:
            with d.connect(kind) as c:
                same(post(c, PING, version="1.0", host=None).status, 403, "status")


def test_other_versions_are_refused():
    with shared(listen=EVERYWHERE) as d:
        for version in ("2.0", "0.9", "3.0"):
            with d.connect("http") as c:
                same(post(c, PING, version=version).status, 505, "status of " + version)
                c.read_rest()


def test_a_connection_is_kept_until_the_client_says_close():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                for _ in range(5):
                    same(post(c, PING).header("Connection"), "keep-alive", "Connection")
                r = post(c, PING, headers="Connection: close\r\n")
                same((r.status, r.header("Connection")), (200, "close"))
                c.ended()


def test_what_follows_a_close_is_not_run():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(smuggled(b"Connection: close\r\nContent-Length: %d\r\n" % len(PING), PING)
                   + SECOND)
            same(c.read_response().status, 200, "status")
            c.half_close()
            c.ended()
        same(d.calls(), 1, "calls")


def test_what_follows_a_forbidden_request_is_not_run():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(smuggled(b"Origin: http://evil.com\r\nContent-Length: %d\r\n" % len(PING), PING)
                   + SECOND)
            same(c.read_response().status, 403, "status")
            c.half_close()
            c.ended()
        same(d.calls(), 0, "calls")


def test_pipelined_posts_are_answered_in_order():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                data = b""
                for i in range(20):
                    sleep = request("debug.sleep", {"ms": 20 - i}, id=i)
                    data += smuggled(b"Content-Length: %d\r\n" % len(sleep), sleep)
                c.send(data)
                for i in range(20):
                    same(json.loads(c.read_response().body),
                         {"jsonrpc": "2.0", "result": {"slept_ms": 20 - i}, "id": i})


def test_a_notification_gets_an_empty_answer():
    with shared(listen=EVERYWHERE) as d:
        for kind in HTTP_KINDS:
            with d.connect(kind) as c:
                for body in (request("ping", id=None), request("no.such", id=None),
                             b"[" + request("ping", id=None) + b"]"):
                    r = post(c, body)
                    same((r.status, r.body), (200, b""))
                same(post(c, PING).status, 200, "status afterwards")


def test_a_body_cut_short_is_told_so():
    with shared(listen=EVERYWHERE) as d:
        with d.connect("http") as c:
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + PING)
            c.half_close()
            same(c.read_response().status, 400, "status")
            c.ended()
        same(d.calls(), 0, "calls")


# ---- the token ----

TOKEN = "correct-horse-battery-staple"


def token_file(folder, text=TOKEN + "\n", mode=0o600):
    path = folder("token")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def test_a_token_is_asked_for_checked_and_honoured():
    with Folder() as folder:
        with Daemon("--set", "koine.token_file=" + token_file(folder), listen=EVERYWHERE) as d:
            for kind in HTTP_KINDS:
                with d.connect(kind) as c:
                    r = post(c, PING)
                    same(r.status, 401, "status without")
                    same(r.header("WWW-Authenticate"), "Bearer", "WWW-Authenticate")
                    c.ended()
                for status, given in (
                        (403, ("Bearer wrong", "Bearer " + TOKEN + "x", "Bearer " + TOKEN[:-1],
                               "Bearer " + TOKEN + " x")),
                        # None of the kind that is asked for.
                        (401, ("Basic " + TOKEN, TOKEN, "Bearer", "", "Bearer" + TOKEN))):
                    for wrong in given:
                        with d.connect(kind) as c:
                            same(post(c, PING, headers="Authorization: %s\r\n" % wrong).status,
                                 status, "status for %r" % wrong)
                            c.ended()
                with d.connect(kind) as c:
                    for scheme in "Bearer ", "bearer ", "BEARER  ", "Bearer \t":
                        right = "Authorization: %s%s\r\n" % (scheme, TOKEN)
                        same(post(c, PING, headers=right).status, 200, repr(scheme))
            check(TOKEN.encode() not in d.log(), "the token stands in the log")


def test_a_token_is_not_avoided_by_another_framing_on_tcp():
    with Folder() as folder:
        with Daemon("--set", "koine.token_file=" + token_file(folder), listen=EVERYWHERE) as d:
            for data in (MARK + b"\n", len(MARK).to_bytes(4, "big") + MARK):
                with d.connect("tcp") as c:
                    c.send(data)
                    c.half_close()
                    got = c.read_rest()
                    check(b'"smuggled"' not in got, "served without a token")
                    check(b"token" in got, "not told why: %r", got)
            same(d.calls(), 0, "calls")
            # The Unix socket knows its peers by their uid and needs none.
            d.alive()


def test_a_token_that_others_can_read_is_refused_at_start():
    with Folder() as folder:
        for mode in (0o644, 0o640, 0o604, 0o660):
            path = token_file(folder, mode=mode)
            done = run_koined("--root", folder.path, "--set", "koine.token_file=" + path)
            same(done.returncode, 78, "exit status for mode %o" % mode)
            check(path.encode() in done.stderr and b"0600" in done.stderr, "%r", done.stderr)


def test_a_token_that_is_missing_or_too_short_is_refused_at_start():
    with Folder() as folder:
        path = token_file(folder, text="short\n")
        for file in (path, folder("nothing"), folder.path):
            done = run_koined("--root", folder.path, "--set", "koine.token_file=" + file)
            same(done.returncode, 78, "exit status for " + file)
            check(not os.path.exists(folder("koine.sock")), "a socket is left behind")

HEAD_ONLY = {
    "no token": (401, "/", "localhost", ""),
    "wrong token": (403, "/", "localhost", "Authorization: Bearer wrong\r\n"),
    "foreign host": (403, "/", "evil.example", "Authorization: Bearer TOKEN\r\n"),
    "foreign page": (403, "/", "localhost",
                     "Origin: http://evil.example\r\nAuthorization: Bearer TOKEN\r\n"),
    "other path": (404, "/x", "localhost", "Authorization: Bearer TOKEN\r\n"),
    "too large": (413, "/", "localhost", "Authorization: Bearer TOKEN\r\n"),
    "too large, no token": (401, "/", "localhost", ""),
}


def test_a_request_is_refused_by_its_head_alone():
    """No byte of its body was sent: whoever waited for it would not answer."""
    bodies = {"length": "Content-Length: %d\r\n",
              "chunked": "Transfer-Encoding: chunked\r\n",
              "continue": "Expect: 100-continue\r\nContent-Length: %d\r\n"}
    with Folder() as folder:
        with Daemon("--set", "koine.token_file=" + token_file(folder),
                    "--listen", "nexus=http:127.0.0.1:0", listen=EVERYWHERE) as d:
            for dialect, kind in (("koine", "http"), ("koine", "tcp"), ("nexus", "http")):
                for name, (status, path, host, headers) in HEAD_ONLY.items():
                    for body, line in bodies.items():
                        length = 64 * MIB if status == 413 or "large" in name else 1 * MIB - 1
                        if status == 413 and body == "chunked":
                            continue
                        with d.connect(kind, dialect) as c:
                            c.send(("POST %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n" % (
                                path, host, headers.replace("TOKEN", TOKEN),
                                line % length if "%d" in line else line)).encode())
                            same(c.read_response().status, status,
                                 "%s, %s, %s: status" % (dialect, name, body))
                            c.ended()
            same(d.calls(), 0, "calls")


def test_the_bodies_of_refused_requests_are_not_kept():
    body = b" " * (8 * MIB)
    with Folder() as folder:
        with Daemon("--set", "koine.token_file=" + token_file(folder), listen=EVERYWHERE) as d:
            before = rss(d.pid)
            clients = [d.connect("http") for _ in range(100)]
            # All but the last byte: none of these requests is whole.
            for c in clients:
                c.send_all_it_takes(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                           % (len(body) + 1) + body)
            grown = rss(d.pid) - before
            note("100 bodies of 8 MiB without a token: +%.1f MiB" % (grown / MIB))
            check(grown < 16 * MIB, "grew by %d bytes", grown)
            for c in clients:
                same(c.read_response().status, 401, "status")
                c.close()
            d.alive()


if __name__ == "__main__":
    main(globals())
