"""The event log over the wire: order, catching up, slow clients, what is gone."""
import json
import os
import re
import select
import signal
import subprocess

from harness import (KOINE, PATIENCE, SERVER, Client, Daemon, Folder, Length, check,
                     clean_environment, main, post, request, same, wait_until)


class Listener(Client):
    """A client that keeps answers and notifications apart, in the order they came."""

    def read(self):
        return json.loads(self.read_line())

    def subscribe(self, **params):
        return self.call("event.subscribe", params or None, id=77)

    def event(self):
        m = self.read()
        check("method" in m, "no notification: %r", m)
        same(m["method"], "event", "method")
        return m["params"]

    def events(self, n):
        return [self.event() for _ in range(n)]


def listener(d):
    c = Listener(d.address("unix"))
    d.clients.append(c)
    return c


def add(c, content, **more):
    return c.call("memory.add", dict(more, content=content))["id"]


def add_many(c, n, start=0):
    """So many memories, all sent before the first answer is read."""
    for at in range(start, start + n, 200):
        upto = min(start + n, at + 200)
        c.send(b"".join(request("memory.add", {"content": "number %d" % i}, id=i) + b"\n"
                        for i in range(at, upto)))
        for i in range(at, upto):
            check("result" in json.loads(c.read_line()), "not added")


def test_events_have_all_their_members():
    with Daemon() as d:
        c = listener(d)
        same(c.subscribe(), {"subscription": 1, "last": 0})
        id = add(d.connect(), "a secret", user_id="ann", category="fact")
        e = c.event()
        same(sorted(set(e) - {"host"}), ["data", "seq", "subscription", "time", "type"], "members")
        same("host" in e, bool(SERVER), "where it happened")
        same((e["subscription"], e["seq"], e["type"]), (1, 1, "memory.added"))
        same(e["data"], {"id": id, "user": "ann", "category": "fact"}, "data")
        check(len(e["time"]) == 24 and e["time"].endswith("Z"), "time: %r", e["time"])
        held = c.call("event.list")
        del e["subscription"]
        same(held, {"events": [e], "last": 1, "more": False, "gone": 0})


def test_an_answer_precedes_its_event():
    with Daemon() as d:
        c = listener(d)
        c.subscribe()
        for i in range(100):
            c.send(request("memory.add", {"content": "one %d" % i}, id=i) + b"\n")
            same(c.read().get("id"), i, "the answer first")
            same(c.event()["seq"], i + 1, "then the event")


def test_answers_precede_events_in_one_pipelined_read():
    with Daemon() as d:
        c = listener(d)
        c.send(b"".join([request("event.subscribe", id=0) + b"\n"] +
                        [request("memory.add", {"content": "piped %d" % i}, id=i) + b"\n"
                         for i in range(1, 61)]))
        answered, told = set(), 0
        while told < 60:
            m = c.read()
            if "id" in m:
                answered.add(m["id"])
                continue
            told += 1
            same(m["params"]["seq"], told, "seq")
            check(told in answered, "event %d before its answer", told)


def test_a_batch_is_answered_before_its_events():
    with Daemon() as d:
        c = listener(d)
        calls = [request("event.subscribe", id=0)] + [
            request("memory.add", {"content": "batched %d" % i}, id=i) for i in range(1, 30)]
        c.send(b"[" + b",".join(calls) + b"]\n")
        first = c.read()
        check(isinstance(first, list) and len(first) == 30, "no batch: %.200r", first)
        same([e["seq"] for e in c.events(29)], list(range(1, 30)))


def test_what_failed_is_not_told():
    with Daemon() as d:
        c = listener(d)
        c.subscribe()
        for bad in ({"content": ""}, {"content": "x", "category": "nonsense"}):
            c.send(request("memory.add", bad) + b"\n")
            check("error" in c.read(), "accepted")
        same(c.call("memory.delete", {"memory_id": "none"}, id=5)["deleted"], False)
        add(d.connect(), "good")
        same(c.event()["seq"], 1)


def test_types_and_ids_choose():
    with Daemon() as d:
        c = listener(d)
        same(c.subscribe(types=["chat.*"])["subscription"], 1)
        same(c.subscribe(types=["*.deleted", "memory.updated"])["subscription"], 2)
        same(c.subscribe(session_id="talk")["subscription"], 3)
        other = d.connect()
        id = add(other, "to go")
        other.call("memory.update", {"memory_id": id, "importance": 0.9})
        other.call("memory.delete", {"memory_id": id})
        same([(e["subscription"], e["type"]) for e in c.events(2)],
             [(2, "memory.updated"), (2, "memory.deleted")])
        c.quiet()


def test_long_names_are_refused_with_the_field():
    with Daemon() as d:
        c = listener(d)
        for field, most in (("session_id", 256), ("run_id", 256), ("project", 4096)):
            for method in ("event.subscribe", "event.list"):
                c.send(request(method, {field: "x" * (most + 1)}, 5) + b"\n")
                error = c.read()["error"]
                same((error["code"], error["data"]), (-32602, {"field": field}), method)
                check("%s must not be longer than %d bytes" % (field, most) in error["message"],
                      "%r", error)
                c.call(method, {field: "x" * most})


def test_conversations_publish_their_turns():
    with Daemon() as d:
        c = listener(d)
        c.subscribe(session_id="talk")
        other = listener(d)
        answer = None
        other.send(request("chat.stream", {"content": "hello there", "conversation": "talk",
                                           "request_id": "r1"}, id=4) + b"\n")
        while answer is None:
            m = other.read()
            answer = m.get("result")
        created, started, ended = c.events(3)
        same([e["type"] for e in (created, started, ended)],
             ["chat.created", "chat.turn.started", "chat.turn.ended"])
        same(created["data"], {"conversation": "talk"})
        same(started["data"], {"conversation": "talk", "request_id": "r1", "agent": "recall"})
        same(ended["data"]["state"], "done")
        check(isinstance(ended["data"]["tokens"], dict), "tokens: %r", ended)
        same({e["session_id"] for e in (created, started, ended)}, {"talk"})
        d.connect().call("destroy_agent", {"agent_id": "talk"})
        e = c.event()
        same((e["type"], e["data"]), ("chat.ended", {"conversation": "talk"}))


def test_unsubscribing_ends_it():
    with Daemon() as d:
        c = listener(d)
        c.subscribe()
        same(c.subscribe(types=["memory.*"])["subscription"], 2)
        same(c.call("event.unsubscribe", {"subscription": 1}), {"unsubscribed": True})
        same(c.call("event.unsubscribe", {"subscription": 1}), {"unsubscribed": False})
        same(c.call("event.unsubscribe", {"subscription": -5}), {"unsubscribed": False})
        add(d.connect(), "for two")
        same(c.event()["subscription"], 2)
        c.quiet()
        same(c.subscribe()["subscription"], 3)


def subscribers(d):
    c = d.connect()
    c.send(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
    return int(re.search(rb"^koine_event_subscribers (\d+)\r?$", c.read_rest(), re.M).group(1))


def test_subscriptions_end_with_their_connection():
    with Daemon() as d:
        before = subscribers(d)
        clients = [listener(d) for _ in range(30)]
        for c in clients:
            c.subscribe()
            c.subscribe(since=0)
        same(subscribers(d), before + 60, "subscribers")
        for c in clients:
            c.reset()
        wait_until(lambda: subscribers(d) == before, "the subscriptions to end")
        add(d.connect(), "nobody hears")
        d.alive()


def test_since_a_number_has_neither_gap_nor_double():
    with Daemon() as d:
        add_many(d.connect(), 700)
        c = listener(d)
        writer = d.connect()
        writer.send(b"".join(request("memory.add", {"content": "meanwhile %d" % i}, id=i) + b"\n"
                             for i in range(300)))
        same(c.subscribe(since=100)["subscription"], 1)
        same([e["seq"] for e in c.events(900)], list(range(101, 1001)))
        for _ in range(300):
            writer.read_line()
        add(writer, "one more")
        same(c.event()["seq"], 1001)


def test_since_a_time():
    with Daemon() as d:
        w = d.connect()
        add_many(w, 5)
        c = listener(d)
        last = c.call("event.list")["events"][-1]["time"]
        c.subscribe(since="2020-01-01T00:00:00Z")
        same([e["seq"] for e in c.events(5)], [1, 2, 3, 4, 5])
        c.call("event.unsubscribe", {"subscription": 1})
        c.subscribe(since="2999-01-01")
        c.quiet()
        add(w, "now")
        same(c.event()["seq"], 6)
        check(c.call("event.list", {"since": last})["events"][-1]["seq"] == 6, "by time")


def test_lists_page_by_page():
    with Daemon() as d:
        c = d.connect()
        add_many(c, 250)
        since, seen = 0, []
        while True:
            page = c.call("event.list", {"since": since, "limit": 60})
            seen += [e["seq"] for e in page["events"]]
            check(page["last"] >= since, "goes back")
            since = page["last"]
            if not page["more"]:
                break
        same(seen, list(range(1, 251)))
        same([e["seq"] for e in c.call("event.list", {"limit": 3})["events"]], [248, 249, 250])
        same(len(c.call("event.list", {"limit": 0})["events"]), 100, "default")
        same(c.call("event.list", {"since": 10 ** 9})["last"], 250, "another log's number")


def refused(c, method, params):
    c.send(request(method, params) + b"\n")
    answer = json.loads(c.read_line())
    check("error" in answer, "%r accepted: %r", params, answer)
    return answer["error"]


def test_bad_asks_are_refused():
    with Daemon() as d:
        c = d.connect()
        for method in ("event.subscribe", "event.list"):
            for bad in ({"types": "task.*"}, {"types": [1]}, {"types": [""]},
                        {"types": ["x"] * 33}, {"types": ["x" * 101]}, {"since": -1},
                        {"since": 1.5}, {"since": "yesterday"}, {"since": {}}, {"since": True},
                        {"session_id": 5}):
                same(refused(c, method, bad)["code"], -32602, method)
        same(refused(c, "event.list", {"limit": -1})["code"], -32602)
        same(refused(c, "event.list", {"limit": "5"})["code"], -32602)
        same(refused(c, "event.unsubscribe", {})["code"], -32602)
        for _ in range(64):
            c.call("event.subscribe")
        same(refused(c, "event.subscribe", {})["code"], -32003, "the 65th")


def test_http_is_told_to_ask():
    with Daemon(listen=["unix:ROOT/k.sock", "http:127.0.0.1:0"]) as d:
        with d.connect("http") as c:
            answer = json.loads(post(c, request("event.subscribe")).body)
            same(answer["error"]["code"], -32005)
            check("event.list" in answer["error"]["message"], "%r", answer)
            check("result" in json.loads(post(c, request("event.list")).body), "no list")


def test_events_come_in_the_framing_of_their_connection():
    with Daemon() as d:
        c = d.connect()
        c.send(Length.wrap(request("event.subscribe", id=1)))
        same(json.loads(Length.read(c))["result"]["subscription"], 1)
        add(d.connect(), "framed")
        same(json.loads(Length.read(c))["params"]["type"], "memory.added")


def test_what_is_gone_is_said():
    with Folder() as f:
        with Daemon(root=f.path) as d:
            add_many(d.connect(), 50)
        with Daemon("--set", "events.keep=10", root=f.path) as d:
            c = listener(d)
            wait_until(lambda: c.call("event.list", {"since": 0})["gone"] == 40, "the sweep")
            c.subscribe(since=20)
            m = c.read()
            same(m["method"], "event.gone")
            same(m["params"], {"subscription": 1, "count": 20})
            same([e["seq"] for e in c.events(10)], list(range(41, 51)))
            page = c.call("event.list", {"since": 39})
            same((page["gone"], page["events"][0]["seq"]), (1, 41))


def test_numbers_go_on_after_a_kill():
    with Folder() as f:
        with Daemon(root=f.path, exit_status=-signal.SIGKILL) as d:
            add_many(d.connect(), 20)
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with Daemon(root=f.path) as d:
            c = listener(d)
            same(c.subscribe(since=15)["last"], 20)
            add(d.connect(), "after")
            same([e["seq"] for e in c.events(6)], [16, 17, 18, 19, 20, 21])


def test_a_hundred_hear_everything():
    with Daemon() as d:
        all = [listener(d) for _ in range(100)]
        for c in all:
            c.subscribe()
        w = d.connect()
        for i in range(5):
            add_many(w, 40, i * 40)
            for c in all:
                same([e["seq"] for e in c.events(40)], list(range(i * 40 + 1, i * 40 + 41)))


# ---- koine events ----


def koine(d, *args, status=0):
    done = subprocess.run([KOINE, "--socket", d.socket_path, "events", *args],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                          env=clean_environment({"TZ": "UTC"}))
    same(done.returncode, status, "exit status (%r)" % done.stderr)
    return done.stdout.decode().splitlines()


def numbers(lines):
    return [json.loads(line)["seq"] for line in lines]


class Follower:
    """koine events -f, for a `with`."""

    def __init__(self, path, *args):
        self.command = [KOINE, "--socket", path, "events", "-f", *args]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=clean_environment())
        self.got = b""
        return self

    def line(self):
        while b"\n" not in self.got:
            check(select.select([self.process.stdout], [], [], PATIENCE)[0], "no line came")
            part = os.read(self.process.stdout.fileno(), 65536)
            check(part, "it ended")
            self.got += part
        line, _, self.got = self.got.partition(b"\n")
        return line.decode()

    def lines(self, n):
        return [self.line() for _ in range(n)]

    def wait_word(self, word):
        """Until it says so on stderr."""
        err = self.process.stderr
        os.set_blocking(err.fileno(), False)
        text = bytearray()

        def said():
            text.extend(err.read() or b"")
            return word in text

        wait_until(said, "the word %r" % word)

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def test_cli_lists_for_people_and_programs():
    with Daemon() as d:
        c = d.connect()
        same(koine(d), [], "an empty log")
        add_many(c, 30)
        id = add(c, "a secret", user_id="ann", category="fact")
        lines = koine(d)
        same(len(lines), 20)
        check(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  memory\.added +id=%s  user=ann"
                           "  category=fact" % id, lines[-1]), "line: %r", lines[-1])
        same(numbers(koine(d, "--json", "-n", "5")), list(range(27, 32)))
        last = json.loads(koine(d, "--json", "-n1")[0])
        same(sorted(set(last) - {"host"}), ["data", "seq", "time", "type"])
        same(last["data"], {"id": id, "user": "ann", "category": "fact"})
        same(numbers(koine(d, "--json", "--since", "28")), [29, 30, 31])
        same(numbers(koine(d, "--json", "--since", "10m")), list(range(1, 32)))
        same(numbers(koine(d, "--json", "--since", "1d", "-n", "3")), [1, 2, 3])
        same(koine(d, "--since", "2999-01-01"), [])
        c.call("memory.delete", {"memory_id": id})
        same(numbers(koine(d, "--json", "--type", "chat.*", "--type", "*.deleted")), [32])


def test_cli_pages_through_a_long_log():
    with Daemon() as d:
        add_many(d.connect(), 2300)
        same(numbers(koine(d, "--json", "--since", "0")), list(range(1, 2301)))
        same(numbers(koine(d, "--json", "--since", "0", "-n", "1500")), list(range(1, 1501)))


def test_cli_refuses_nonsense():
    with Daemon() as d:
        for bad in (["--since", "soon"], ["--since", "10x"], ["--type", ""], ["-n", "x"],
                    ["-n", "1001"], ["stray"]):
            koine(d, *bad, status=64)


def test_cli_says_what_is_gone():
    with Folder() as f:
        with Daemon(root=f.path) as d:
            add_many(d.connect(), 30)
        with Daemon("--set", "events.keep=10", root=f.path) as d:
            c = d.connect()
            wait_until(lambda: c.call("event.list", {"since": 0})["gone"] == 20, "the sweep")
            lines = koine(d, "--json", "--since", "5")
            same(json.loads(lines[0]), {"gone": 15})
            same(numbers(lines[1:]), list(range(21, 31)))
            with Follower(d.socket_path, "--since", "19") as follower:
                follower.wait_word(b"1 event was already deleted")
                check("memory.added" in follower.lines(10)[9], "no event")


def test_cli_follows_over_a_restart():
    with Folder() as f:
        with Daemon(root=f.path, exit_status=-signal.SIGKILL) as d:
            add_many(d.connect(), 15)
            follower = Follower(d.socket_path, "--json").__enter__()
            try:
                same(numbers(follower.lines(10)), list(range(6, 16)))
                add_many(d.connect(), 5, 50)
                same(numbers(follower.lines(5)), list(range(16, 21)))
                d.signal(signal.SIGKILL)
                d.wait_exit()
                follower.wait_word(b"lost connection to koined")
                with Daemon(root=f.path) as again:
                    add_many(again.connect(), 5, 100)
                    same(numbers(follower.lines(5)), list(range(21, 26)))
                    follower.wait_word(b"reconnected to koined")
            finally:
                follower.__exit__()


if __name__ == "__main__":
    main(globals())
