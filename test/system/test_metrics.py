#!/usr/bin/env python3
"""
What the daemon counts: the figures are right, Prometheus's own tools read them, a real Prometheus
scrapes them, and no client can make series.
"""
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

from harness import (KOINE, PATIENCE, SOURCE, Daemon, Folder, Length, Skip, check, clean_environment, installed,
                     main, post, request, same, wait_until)
from provider import OPENAI, Provider

HERE = os.path.dirname(os.path.abspath(__file__))
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
EVERYWHERE = ("unix:ROOT/koine.sock", "http:127.0.0.1:0")
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')
TOKEN = "a-token-for-scrapers-0123456789"


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


def scrape(d, kind="http", method="GET", path="/metrics", **headers):
    """Status, headers and body, as any HTTP client gets them."""
    place = d.address(kind).partition(":")[2]
    c = Unix(place) if kind == "unix" else http.client.HTTPConnection(place)
    try:
        c.putrequest(method, path, skip_host="Host" in headers or kind == "unix")
        if kind == "unix" and "Host" not in headers:
            c.putheader("Host", "localhost")
        for name, value in headers.items():
            c.putheader(name, value)
        c.endheaders()
        r = c.getresponse()
        return r.status, dict(r.getheaders()), r.read().decode()
    finally:
        c.close()


def read(text):
    """Every sample: its name and labels to its value. None may come twice."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        check(found, "no sample: %r", line)
        labels = LABEL.findall(found.group(2) or "")
        key = (found.group(1), *sorted(labels))
        check(key not in out, "twice: %r", line)
        out[key] = float(found.group(3))
    return out


def of(samples, name, **labels):
    """The value of one series; 0 where it is not there."""
    return samples.get((name, *sorted(labels.items())), 0)


def now(d):
    return read(scrape(d)[2])


def checked(text):
    done = subprocess.run([installed("promtool"), "check", "metrics"], input=text.encode(),
                          capture_output=True)
    same((done.returncode, done.stdout, done.stderr), (0, b"", b""), "promtool check metrics")


# ---- figures ----


def test_calls_are_counted_by_method_and_outcome():
    with Daemon(listen=EVERYWHERE) as d:
        with d.connect() as c:
            for _ in range(7):
                c.ping()
            # Pipelined, in one write: they share a time, but each counts.
            c.send(b"".join(request("ping", id=i) + b"\n" for i in range(500)))
            for _ in range(500):
                c.read_line()
            for i in range(3):
                c.call_text(request("memory.add", {}, id=i))
            c.call("memory.add", {"content": "The bridge is green."})
            c.call("memory.search", {"query": "bridge"})
            c.call_text(b"no JSON")
            c.send(b"[" + b",".join([request("health")] * 4) + b"]\n")
            c.read_line()
        with d.connect() as c:
            c.send(Length.wrap(request("health")))
            Length.read(c)
        got = now(d)

    def calls(method, outcome):
        return of(got, "koine_calls_total", dialect="koine", method=method, outcome=outcome)

    same(calls("ping", "ok"), 507, "pings")
    same(calls("memory.add", "refused"), 3, "refused adds")
    same(calls("memory.add", "ok"), 1, "adds")
    same(calls("memory.add", "failed"), 0, "failed adds")
    same(calls("memory.search", "ok"), 1, "searches")
    same(calls("health", "ok"), 5, "health")
    same(calls("unknown", "refused"), 1, "what was no call")
    same(of(got, "koine_call_refusals_total", dialect="koine", reason="params"), 3, "params")
    same(of(got, "koine_call_refusals_total", dialect="koine", reason="parse"), 1, "parse")
    same(of(got, "koine_search_duration_seconds_count"), 1, "searches on a thread")
    check(of(got, "koine_store_commit_duration_seconds_count") >= 1, "commits")
    check(of(got, "koine_store_batch_calls_sum") >= 1, "calls in commits")
    same(of(got, "koine_events_published_total"), 1, "events")


def test_times_add_up():
    with Daemon(listen=EVERYWHERE) as d:
        with d.connect() as c:
            for _ in range(20):
                c.ping()
            c.call("debug.sleep", {"ms": 50})
        got = now(d)
    for key in [k for k in got if k[0].endswith("_count")]:
        name = key[0][:-len("_count")]
        buckets = [(float(dict(k[1:])["le"]), v) for k, v in got.items()
                   if k[0] == name + "_bucket" and
                   tuple(x for x in k[1:] if x[0] != "le") == key[1:]]
        values = [v for _, v in sorted(buckets)]
        same(values, sorted(values), "buckets of %r" % (key,))
        same(values[-1], got[key], "the last bucket of %r" % (key,))
    labels = {"dialect": "koine", "method": "debug.sleep"}
    check(of(got, "koine_call_duration_seconds_sum", **labels) >= 0.03, "too short")
    same(of(got, "koine_call_duration_seconds_bucket", le="0.03", **labels), 0, "below 30 ms")
    same(of(got, "koine_call_duration_seconds_count", **labels), 1, "calls")


def test_names_that_clients_make_up_make_no_series():
    with Daemon(listen=EVERYWHERE, debug=False) as d:
        # What scrapes and refusals themselves make is there from now on.
        with d.connect() as c:
            c.call_text(request("no.such"))
        now(d)
        before = set(now(d))
        with d.connect() as c:
            for i in range(2000):
                name = 'x%d\\"} 1\\nkoine_fake{a=\\"' % i
                c.send(request(name, id=i) + b"\n")
            for _ in range(2000):
                c.read_line()
            c.call_text(request("unknown"))
            c.call_text(request("other"))
        for i in range(20):
            scrape(d, path="/no/such/%d" % i)
            scrape(d, path="/metrics?x%d=1" % i)
        got = now(d)
        same(set(got) - before, set(), "new series")
        same(of(got, "koine_calls_total", dialect="koine", method="unknown", outcome="refused"), 2003,
             "calls of unknown methods")
        checked(scrape(d)[2])


def test_connections_and_bytes():
    with Daemon(listen=EVERYWHERE) as d:
        before = now(d)
        clients = [d.connect() for _ in range(5)]
        for c in clients:
            c.ping()
        got = now(d)
        same(of(got, "koine_connections", dialect="koine"), 6, "open: these, and the scrape's own")
        same(of(got, "koine_connections_accepted_total", dialect="koine") -
             of(before, "koine_connections_accepted_total", dialect="koine"), 6, "accepted")
        sent = len(request("ping") + b"\n")
        check(of(got, "koine_received_bytes_total", dialect="koine") -
              of(before, "koine_received_bytes_total", dialect="koine") >= 5 * sent, "bytes in")
        check(of(got, "koine_sent_bytes_total", dialect="koine") > 0, "bytes out")
        check(of(got, "koine_process_open_fds") > 6, "descriptors")
        check(of(got, "koine_process_max_fds") >= of(got, "koine_process_open_fds"), "limit")
        check(of(got, "koine_process_resident_memory_bytes") > 1 << 20, "memory")
        check(of(got, "koine_process_cpu_seconds_total") > 0, "processor")
        for c in clients:
            c.close()
        wait_until(lambda: of(now(d), "koine_connections", dialect="koine") == 1, "their end")


def test_tasks_approvals_and_sessions():
    agent = "%s %s" % (sys.executable, os.path.join(HERE, "session_agent.py"))
    with Daemon("--set", "session.program=" + agent, listen=EVERYWHERE) as d, d.connect() as c:
        one = c.call("approval.create", {"tool": "Bash", "input": {"command": "make"}})["id"]
        two = c.call("approval.create", {"tool": "Bash", "input": {"command": "ls"}})["id"]
        same(of(now(d), "koine_approvals_pending"), 2, "pending")
        c.call("approval.decide", {"id": one, "decision": "deny", "comment": "no"})
        c.call("approval.decide", {"id": two, "decision": "approve"})
        c.call("session.launch", {"query": "say Hi", "working_dir": d.root})

        def ended():
            got = now(d)
            return of(got, "koine_agent_turns_total", agent="claude", via="session",
                      outcome="done") == 1 and got

        got = wait_until(ended, "the end of the session")
        same(of(got, "koine_approvals_pending"), 0, "pending")
        same(of(got, "koine_approvals_decided_total", outcome="denied", by="client"), 1, "denied")
        same(of(got, "koine_approvals_decided_total", outcome="approved", by="client"), 1, "approved")
        same(of(got, "koine_approval_wait_seconds_count"), 2, "waits")
        same(of(got, "koine_agent_tokens_total", agent="claude", via="session", kind="input"), 10, "in")
        same(of(got, "koine_agent_tokens_total", agent="claude", via="session", kind="output"), 20,
             "out")
        same(of(got, "koine_agent_cost_usd_total", agent="claude", via="session"), 0.05, "cost")
        task = c.call("task.submit", {"prompt": "What is green?", "agent": "recall"})
        check(task, "%r", task)
        wait_until(lambda: of(now(d), "koine_tasks", state="completed") == 1, "the task's end")
        checked(scrape(d)[2])


def test_rules_that_decide_are_told_apart():
    with Daemon("--set", "policy.fast.tool=Read", "--set", "policy.fast.verdict=allow",
                listen=EVERYWHERE) as d, d.connect() as c:
        c.call("approval.create", {"tool": "Read", "input": {}})
        got = now(d)
        same(of(got, "koine_approvals_decided_total", outcome="approved", by="rule"), 1, "by a rule")
        same(of(got, "koine_approval_wait_seconds_count"), 0, "waits")


def test_tokens_of_models_are_counted_by_what_for():
    with Provider() as p, Folder() as f:
        p.play(OPENAI.answer("A tram.", input=100, output=7))
        p.play(OPENAI.answer("Tom | - | Tom drives a tram", input=30, output=5))
        with open(f("koine.conf"), "w") as conf:
            conf.write("[agent model]\nkind = openai\nurl = %s\nmodel = scripted\n"
                       "[chat]\nagent = model\n"
                       "[memory]\nextract = model\nextract_idle = 1\n" % p.url)
        with Daemon("--config", f("koine.conf"), listen=EVERYWHERE) as d, d.connect() as c:
            c.call("chat.send", {"message": "What does Tom drive?"})
            got = wait_until(lambda: (lambda x: x if of(x, "koine_agent_turns_total", agent="model",
                                                        via="facts", outcome="done") else None)(now(d)),
                             "facts")
            for via, kind, n in (("chat", "input", 100), ("chat", "output", 7), ("facts", "input", 30),
                                 ("facts", "output", 5)):
                same(of(got, "koine_agent_tokens_total", agent="model", via=via, kind=kind), n, via)
            same(of(got, "koine_agent_turns_total", agent="model", via="chat", outcome="done"), 1, "turns")
            same([k for k in got if k[0] == "koine_agent_cost_usd_total"], [], "nobody told a cost")


# ---- who may ask, and how ----


def test_both_forms():
    with Daemon(listen=EVERYWHERE) as d:
        for kind in ("http", "unix"):
            status, headers, text = scrape(d, kind)
            same((status, headers["Content-Type"]),
                 (200, "text/plain; version=0.0.4; charset=utf-8"), kind)
            check("# EOF" not in text and "# UNIT" not in text, "%r", text[-200:])
            checked(text)
            status, headers, text = scrape(d, kind, Accept=OPENMETRICS)
            same((status, headers["Content-Type"]),
                 (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"), kind)
            check(text.endswith("\n# EOF\n"), "%r", text[-200:])
            check("# UNIT koine_call_duration_seconds seconds\n" in text, "no unit")
            check("# TYPE koine_calls counter\n" in text, "no family")


def test_only_get_and_head():
    with Daemon(listen=EVERYWHERE) as d:
        status, headers, text = scrape(d, method="HEAD")
        same((status, text), (200, ""), "HEAD")
        for method in ("POST", "PUT", "DELETE"):
            status, headers, text = scrape(d, method=method)
            same((status, headers["Allow"]), (405, "GET, HEAD"), method)
        same(scrape(d, path="/metrics/")[0], 405, "another path, with GET")
        with d.connect("http") as c:
            c.send(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            check(b"koine_build_info{" in c.read_rest(), "HTTP/1.0")
        with d.connect("http") as c:
            same(post(c, request("ping")).status, 200, "a call beside it")


def test_the_gate_is_the_same():
    with Folder() as folder:
        path = folder("token")
        with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(TOKEN + "\n")
        with Daemon("--set", "koine.token_file=" + path, listen=EVERYWHERE) as d:
            right = {"Authorization": "Bearer " + TOKEN}
            same(scrape(d)[0], 401, "no token")
            same(scrape(d, Authorization="Bearer wrong")[0], 403, "a wrong one")
            same(scrape(d, Host="evil.example", **right)[0], 403, "a foreign host")
            same(scrape(d, Origin="http://evil.example", **right)[0], 403, "a foreign page")
            status, _, text = scrape(d, **right)
            same(status, 200, "the right one")
            got = read(text)

            def refused(reason):
                return of(got, "koine_http_requests_refused_total", dialect="koine", reason=reason)

            same((refused("token"), refused("host"), refused("origin")), (2, 1, 1), "turned away")


def test_a_listener_for_figures_does_nothing_else():
    with Daemon("--listen", "metrics=http:127.0.0.1:0", listen=EVERYWHERE) as d:
        place = d.address("http", "metrics").partition(":")[2]

        def ask(method, path, body=None):
            c = http.client.HTTPConnection(place)
            try:
                c.request(method, path, body)
                r = c.getresponse()
                return r.status, r.read().decode()
            finally:
                c.close()

        status, text = ask("GET", "/metrics")
        same(status, 200, "a scrape")
        checked(text)
        same(ask("POST", "/", request("ping")), (404, '{"error":"Not found"}'), "a call")
        same(ask("POST", "/rpc", request("daemon.stop"))[0], 404, "another")
        same(ask("POST", "/metrics", request("ping"))[0], 405, "and another")
        status, text = ask("GET", "/metrics")
        same(of(read(text), "koine_calls_total", dialect="metrics", method="metrics", outcome="ok"), 1,
             "the scrape before")
        with d.connect() as c:
            # Nobody speaks anything but HTTP there.
            c.ping()


def test_a_foreign_user_comes_in_only_where_it_is_named():
    if os.geteuid() != 0:
        raise Skip("only root can be somebody else")
    with Daemon("--listen", "metrics=http:127.0.0.1:0", "--set", "listen.metrics.allow_uids=65534",
                listen=EVERYWHERE) as d:
        def status(dialect):
            place = d.address("http", dialect).partition(":")[2]
            done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                                   "http://%s/metrics" % place], capture_output=True, user=65534)
            return done.stdout.decode()

        same(status("metrics"), "200", "at the listener for it")
        same(status("koine"), "000", "at koine's own")
        same(of(now(d), "koine_connections_refused_total", dialect="koine", reason="uid"), 1, "refused")


# ---- a real Prometheus ----


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Prometheus:
    """The server itself, with its data in a folder that goes."""

    def __init__(self, folder, target, token):
        self.port = free_port()
        config = folder("prometheus.yml")
        with open(config, "w") as f:
            json.dump({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [os.path.join(SOURCE, "dist/prometheus/koine.rules.yml")],
                "scrape_configs": [{"job_name": "koine",
                                    "authorization": {"credentials_file": token},
                                    "static_configs": [{"targets": [target]}]}],
            }, f)
        with open(folder("prometheus.log"), "wb") as log:
            self.process = subprocess.Popen(
                [installed("prometheus"), "--config.file=" + config, "--storage.tsdb.path=" + folder("tsdb"),
                 "--web.listen-address=127.0.0.1:%d" % self.port],
                cwd=folder.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def get(self, path, **query):
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(query))
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as r:
                return json.load(r)["data"]
        except (ConnectionError, urllib.error.URLError):
            return None

    def ask(self, query):
        """The one value of a query; None while there is none."""
        data = self.get("query", query=query)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None


def test_prometheus_scrapes_it():
    installed("prometheus")
    with Folder() as folder:
        token = folder("token")
        with open(token, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(TOKEN)
        with Daemon("--set", "koine.token_file=" + token, listen=EVERYWHERE) as d, d.connect() as c:
            for _ in range(42):
                c.ping()
            target = d.address("http").partition(":")[2]
            with Prometheus(folder, target, token) as p:
                pings = 'koine_calls_total{dialect="koine",method="ping",outcome="ok"}'
                wait_until(lambda: p.ask(pings) == 42, "42 pings in Prometheus")
                same(p.ask('up{job="koine"}'), 1, "up")
                same(p.ask("koine_build_info"), 1, "build")
                found = wait_until(lambda: p.get("targets")["activeTargets"], "targets")
                same(found[0]["lastError"], "", "errors of the scrape")
                # It asked for OpenMetrics: so it knows a family by its name without "_total".
                known = p.get("metadata", metric="koine_calls") or {}
                same([m["type"] for m in known.get("koine_calls", [])], ["counter"], "type")
                rules = wait_until(lambda: p.get("rules")["groups"], "rules")
                check(sum(len(g["rules"]) for g in rules) >= 5, "%r", rules)
                # Each could be evaluated.
                wait_until(lambda: all(r["health"] == "ok" for g in p.get("rules")["groups"]
                                       for r in g["rules"]), "rules that hold")


def test_the_rules_are_sound():
    done = subprocess.run([installed("promtool"), "check", "rules",
                           os.path.join(SOURCE, "dist/prometheus/koine.rules.yml")],
                          capture_output=True)
    check(done.returncode == 0, "%r %r", done.stdout, done.stderr)


# ---- the command, and the documents ----


def koine(d, *args):
    return subprocess.run([KOINE, *args], capture_output=True, timeout=PATIENCE,
                          env=clean_environment({"KOINE_SOCKET": d.socket_path}))


def test_koine_metrics_prints_them():
    with Daemon(listen=EVERYWHERE) as d:
        done = koine(d, "metrics")
        same((done.returncode, done.stderr), (0, b""), "koine metrics")
        checked(done.stdout.decode())
        check(done.stdout.startswith(b"# HELP koine_build_info "), "%r", done.stdout[:80])
        done = koine(d, "metrics", "--openmetrics")
        check(done.returncode == 0 and done.stdout.endswith(b"# EOF\n"), "%r", done.stdout[-80:])
        done = koine(d, "metrics", "--json")
        same(json.loads(done.stdout)["content_type"][:10], "text/plain", "--json")
        with d.connect() as c:
            answer = json.loads(c.call_text(request("daemon.metrics", {"format": "xml"})))
            same(answer["error"]["data"]["field"], "format", "a form that nobody knows")


def test_a_textfile_is_whole_and_for_all():
    with Daemon(listen=EVERYWHERE) as d, Folder() as folder:
        path = folder("koine.prom")
        before = os.umask(0o077)
        try:
            for _ in range(2):
                done = koine(d, "metrics", "--textfile", path)
                same((done.returncode, done.stdout, done.stderr), (0, b"", b""), "--textfile")
        finally:
            os.umask(before)
        same(stat.S_IMODE(os.stat(path).st_mode), 0o644, "mode")
        with open(path) as f:
            checked(f.read())
        same(os.listdir(folder.path), ["koine.prom"], "nothing is left beside it")
        done = koine(d, "metrics", "--textfile", folder("none", "koine.prom"))
        same(done.returncode, 73, "a folder that is not there")
        check(b"cannot write " in done.stderr, "%r", done.stderr)
        same(os.listdir(folder.path), ["koine.prom"], "nothing is left beside it")


def test_every_family_stands_in_the_document():
    with open(os.path.join(SOURCE, "doc/metrics.md"), encoding="utf-8") as f:
        page = f.read()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", page, re.M)
    with Daemon(listen=EVERYWHERE) as d:
        text = scrape(d)[2]
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.M))
    same([(name, kind) for name, kind, _, _ in rows], list(kinds.items()), "families")
    same({name: words for name, _, _, words in rows}, helps, "what they are")
    named = {name: re.findall(r"`(\w+)`", labels) for name, _, labels, _ in rows}
    for key in read(text):
        family = re.sub(r"_(bucket|sum|count)$", "", key[0])
        family = family if family in named else key[0]
        same(sorted(l for l, _ in key[1:] if l != "le"), sorted(named[family]), "labels of " + family)


if __name__ == "__main__":
    main(globals())
