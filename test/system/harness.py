"""
A real daemon over real sockets, for the tests beside this file.

Daemon starts koined in a folder of its own, waits until it is ready, and stops
it by its pid. A test fails when the daemon logs a warn or err line that the test
did not announce, ends in another way than it was told to, or prints a
sanitizer's report. Where KOINE_TEST_SERVER is the address of a PostgreSQL server,
each folder has a database there instead of a file. Client speaks the three framings with deadlines, so that a
daemon that does not answer is a failure and not a hang.
"""
import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from libpq import query

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KOINED = os.environ.get("KOINED", os.path.join(SOURCE, "build", "koined"))
KOINE = os.environ.get("KOINE", os.path.join(SOURCE, "build", "koine"))
SANITIZED = os.environ.get("KOINE_SANITIZED") == "1"

# The python3 of programs that tests run is the one that runs the tests: the first in a PATH may have to look for it.
os.environ["PATH"] = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]

# Long enough that only a daemon that hangs is late, on a busy machine too.
PATIENCE = 60.0
MIB = 1 << 20
MESSAGE_MAX = 16 * MIB

UNEXPECTED_LOG = re.compile(rb"^(?:\S+ (?:warn|err) |<[0-4]>)")
SANITIZER = re.compile(rb"Sanitizer|runtime error:|Assertion .* failed")


# The path of a Unix socket has 107 bytes, and tests use up to 80 of them below this folder.
if len(tempfile.gettempdir()) > 24:
    os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"


class Failure(Exception):
    """What a test found wrong."""


class Skip(Exception):
    """What this machine lacks for a test."""


def missing(what):
    """Skips a test that lacks what ./dev test installs, or fails it where CI is "true"."""
    if os.environ.get("CI") == "true":
        raise Failure("there is no %s; ./dev test installs it" % what)
    raise Skip("no %s; ./dev test installs it" % what)


def installed(*names, path=None):
    """The path of the first of these programs that is there."""
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None) or missing(names[0])


def check(condition, why="", *args):
    if not condition:
        raise Failure(why % args if args else why)


def same(got, want, what="answer"):
    if got != want:
        raise Failure("%s is %.300r, not %.300r" % (what, got, want))


def note(figure):
    """A figure worth reading, where it means something."""
    if not SANITIZED:
        print("     " + figure, flush=True)


def wait_until(condition, what, patience=PATIENCE):
    """Asks again and again until the condition holds."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure("waited %.0f s in vain for %s" % (patience, what))
        time.sleep(0.005)


# ---- processes, as /proc shows them ----


def rss(pid, line="VmRSS:"):
    """Resident bytes; 0 where a sanitizer makes the figure meaningless."""
    with open("/proc/%d/status" % pid) as f:
        for found in f:
            if found.startswith(line) and not SANITIZED:
                return int(found.split()[1]) * 1024
    return 0


def peak_rss(pid):
    """The most that it ever had."""
    return rss(pid, "VmHWM:")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    """Of its main thread. The guard that a host among several has ends with it."""
    out = []
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in map(int, f.read().split()):
            with contextlib.suppress(OSError), open("/proc/%d/comm" % child) as name:
                if name.read() != "koined-guard\n":
                    out.append(child)
    return out


def descriptors(pid):
    """Descriptor number to what it is."""
    out = {}
    for name in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(OSError):
            out[int(name)] = os.readlink("/proc/%d/fd/%s" % (pid, name))
    return out


def descriptor_flags(pid, fd):
    with open("/proc/%d/fdinfo/%d" % (pid, fd)) as f:
        for line in f:
            if line.startswith("flags:"):
                return int(line.split()[1], 8)
    raise Failure("no flags for descriptor %d" % fd)


def raise_descriptor_limit():
    """The soft limit to the hard one; how many descriptors we may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


# ---- a server in place of a file ----

# postgresql://USER@HOST:PORT/, of one that may make databases.
SERVER = os.environ.get("KOINE_TEST_SERVER")
TEMPLATE = "koine_template"  # a database there with koined's tables and no data
databases = {}  # a folder's


def only_in_a_file(why):
    """For a test of what a file has and a server has not, or has in another way."""
    if SERVER:
        raise Skip("only in a file: " + why)


def server_sql(text, name="postgres"):
    try:
        query(SERVER + name, text)
    except RuntimeError as why:
        raise Failure("%s: %s" % (text, why)) from None


def create_database(name, template):
    """The SQL. Copying files takes half the server's time of the default, which writes the copy to the log (WAL)."""
    if not template:
        return "CREATE DATABASE " + name
    return "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy" % (name, template)


def database_of(root):
    """The address of a folder's database, a copy of the template."""
    root = os.path.realpath(root)
    if root not in databases:
        databases[root] = "koine_%d_%d" % (os.getpid(), time.monotonic_ns())
        server_sql(create_database(databases[root], TEMPLATE))
    return SERVER + databases[root]


def copy_empty_store(root):
    """Making its tables takes a quarter of the CPU time of a daemon that starts and stops."""
    empty = os.environ.get("KOINE_EMPTY_STORE")
    if empty and not SERVER:
        shutil.copyfile(empty, os.path.join(root, "koine.db"))
        os.chmod(os.path.join(root, "koine.db"), 0o600)


def own_store(root):
    """Gives the copy to the user who owns the folder."""
    path = os.path.join(root, "koine.db")
    owner = os.stat(root)
    if os.path.exists(path) and os.stat(path).st_uid != owner.st_uid:
        os.chown(path, owner.st_uid, owner.st_gid)


def change_store(root, text):
    """SQL beside the daemon whose folder it is."""
    if SERVER:
        server_sql("SET search_path = koine; " + text, databases[os.path.realpath(root)])
    else:
        with contextlib.closing(sqlite3.connect(os.path.join(root, "koine.db"), timeout=PATIENCE)) as db:
            db.executescript(text)


def clear_databases(below):
    """Of folders that go, and of those below them."""
    below = os.path.realpath(below)
    for root in [r for r in databases if r == below or r.startswith(below + "/")]:
        server_sql("DROP DATABASE %s WITH (FORCE)" % databases.pop(root))


def drop_databases():
    for name in databases.values():
        server_sql("DROP DATABASE %s WITH (FORCE)" % name)


# ---- the daemon ----


def clean_environment(extra=None):
    """Nothing of the caller's settings; defaults that touch nothing outside."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("KOINE_", "XDG_", "LISTEN_", "NOTIFY_", "WATCHDOG_", "AIWG_", "ASH_",
                               "HUMANLAYER_", "OPENCLAW_"))}
    env["XDG_CONFIG_HOME"] = "/dev/null"
    env["XDG_STATE_HOME"] = "/dev/null"
    env["XDG_RUNTIME_DIR"] = "/dev/null"
    env["HOME"] = "/dev/null"
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.update(extra or {})
    return env


def preloaded(name):
    """Variables for a koined with one of our modules before its libraries, where that was built: test/failing, test/clock."""
    module = os.environ.get("KOINE_" + name)
    if not module or not os.path.exists(module):
        return {}
    options = [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]
    return {"LD_PRELOAD": module, "ASAN_OPTIONS": ":".join(filter(None, options))}


class Folder:
    """A private folder that goes with its test."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="koine-test-")
        return self

    def __exit__(self, *exc):
        clear_databases(self.path)
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, *names):
        return os.path.join(self.path, *names)


def run_koined(*args, env=None, timeout=PATIENCE):
    """For runs that end by themselves: --check, refusals."""
    done = subprocess.run([KOINED, *args], stdin=subprocess.DEVNULL, capture_output=True,
                          env=clean_environment(env), timeout=timeout)
    if SANITIZER.search(done.stderr):
        raise Failure("sanitizer report: %r" % done.stderr[:2000])
    return done


def reachable(uid):
    """Whether that user can run koined where it was built. Only root can tell."""
    child = os.fork()
    if child == 0:
        os.setuid(uid)
        os._exit(0 if os.access(KOINED, os.X_OK) else 1)
    return os.waitpid(child, 0)[1] == 0


class Daemon:
    """
    koined in a folder of its own, for a `with`.

    listen: addresses without their dialect; none for the default, koine.sock
    under the folder. announced: parts of warn and err lines that the test
    expects; each must come. possible: of those that may. exit_status: how it must end.
    clock: by how many seconds its time of day differs from ours, if the test moves its clocks: see pass_time().
    """

    def __init__(self, *args, listen=(), debug=True, env=None, announced=(), possible=(), exit_status=0,
                 root=None, wrapper=(), wait=True, clock=None, **popen):
        self.args = list(args)
        self.listen = listen
        self.debug = debug
        self.env = env
        self.announced = list(announced)
        self.possible = list(possible)
        self.exit_status = exit_status
        self.root = root
        self.own_root = root is None
        self.wrapper = list(wrapper)
        self.wait = wait
        self.clock = None
        if clock is not None:
            self.clock = tempfile.NamedTemporaryFile(prefix="koine-clock-")
            os.write(self.clock.fileno(), struct.pack("qq", 0, int(1000 * clock)))
        self.popen = popen
        self.process = None
        self.log_path = None
        self.addresses = []
        self.clients = []
        self.helper = None
        self.asked = 0
        self.log_from = 0

    def __enter__(self):
        if self.own_root:
            self.root = tempfile.mkdtemp(prefix="koine-test-")
            if "--store" not in self.args:
                copy_empty_store(self.root)
        try:
            self.start()
            if self.wait:
                self.wait_ready()
        except BaseException:
            self.clean_up()
            raise
        return self

    def command(self):
        out = [*self.wrapper, KOINED, "--root", self.root]
        for address in self.listen:
            out += ["--listen", "koine=" + address.replace("ROOT", self.root)]
        if SERVER and "--store" not in self.args:
            out += ["--store", database_of(self.root)]
        return out + (["--debug-methods"] if self.debug else []) + self.args

    def environment(self):
        # A test is agent and human at once; those of deciders say otherwise.
        env = {"KOINE_APPROVAL_AGENTS_DECIDE": "yes", **clean_environment(self.env)}
        if self.clock:
            env.update(preloaded("CLOCK"), CLOCK=self.clock.name)
        return env

    def move_clocks(self, steady, day):
        """By seconds: the one that its timers go by, and the time of day."""
        before = struct.unpack("qq", os.pread(self.clock.fileno(), 16, 0))
        after = [ms + int(seconds * 1000) for ms, seconds in zip(before, (steady, day))]
        os.pwrite(self.clock.fileno(), struct.pack("qq", *after), 0)

    def hurry(self, condition, what, step=0.25):
        """Waits until the condition holds, and each look at it takes so many of the daemon's seconds."""
        return wait_until(lambda: condition() or self.pass_time(step), what)

    def pass_time(self, seconds):
        """At once, and what is due then happens. Where its store is on a server the lease runs out, too, so we wait."""
        if SERVER:
            time.sleep(seconds)
        else:
            self.move_clocks(seconds, seconds)
            self.settle()  # wakes it

    def start(self):
        self.show_log()
        own_store(self.root)
        self.log_path = os.path.join(self.root, "log.%d" % time.monotonic_ns())
        self.log_from = 0
        self.addresses = []
        # A file, not a pipe: a daemon must not wait for us to read its log.
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log,
                                            env=self.environment(), **self.popen)

    def wait_ready(self, patience=PATIENCE):
        text = b""
        end = time.monotonic() + patience
        out = self.process.stdout.fileno()
        while b"koined: ready\n" not in text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                raise Failure("not ready after %.0f s: %r %r" % (patience, text, self.log()))
            part = os.read(out, 65536)
            if not part:
                raise Failure("ended before it was ready: %r %r" % (text, self.log()))
            text += part
        for line in text.decode().splitlines():
            words = line.split(" ", 2)
            if words[0] == "listening":
                self.addresses.append((words[1], words[2]))

    def address(self, kind="unix", dialect=None):
        for spoken, address in self.addresses:
            if address.startswith(kind + ":") and dialect in (None, spoken):
                return address
        raise Failure("nothing listens at %s: (%r)" % (kind, self.addresses))

    @property
    def pid(self):
        return self.process.pid

    @property
    def socket_path(self):
        return self.address("unix")[len("unix:"):]

    def log(self):
        """All of it, or what was logged since an earlier test."""
        with open(self.log_path, "rb") as f:
            f.seek(self.log_from)
            return f.read()

    def connect(self, kind="unix", dialect=None, **opts):
        client = Client(self.address(kind, dialect), **opts)
        self.clients.append(client)
        return client

    def settle(self):
        """Everything sent before has been read: the daemon takes turns in order."""
        if self.helper is None:
            self.helper = self.connect()
        self.helper.ping()

    def status(self):
        self.asked += 1
        with Client(self.address("unix")) as c:
            return c.call("daemon.status")

    def calls(self):
        """How many calls it has begun in all, without the questions asked here."""
        return sum(e["calls"] for e in self.status()["listeners"]) - self.asked

    def alive(self):
        check(self.process.poll() is None, "the daemon has ended: %s %r",
              self.process.returncode, self.log()[-500:])
        with Client(self.address("unix")) as c:
            c.ping()

    def signal(self, number):
        os.kill(self.pid, number)

    def wait_exit(self, patience=PATIENCE):
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise Failure("still there after %.0f s" % patience) from None

    def stop(self):
        for c in self.clients:
            c.close()
        self.helper = None
        self.clients = []
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait_exit()

    def lend(self):
        """Waits until nothing of an earlier test is left, and counts calls from here."""
        wait_until(lambda: self.status()["connections"] == 1, "the connections of an earlier test to end")
        wait_until(lambda: self.status()["calls_in_flight"] == 0, "the calls of an earlier test to end")
        earlier = self.calls()
        self.asked += earlier

    def take_back(self):
        """Closes what a test has opened, and looks at what was logged meanwhile."""
        for c in self.clients:
            c.close()
        self.clients = []
        self.helper = None
        self.alive()
        self.log_from += self.check_log()

    def check_log(self):
        """Returns how many bytes it has looked at."""
        log = self.log()
        check(not SANITIZER.search(log), "sanitizer report: %s",
              log[-4000:].decode(errors="replace"))
        missing = [a for a in self.announced if a.encode() not in log]
        for line in log.splitlines():
            if UNEXPECTED_LOG.match(line) and not any(a.encode() in line for a in self.announced + self.possible):
                raise Failure("unannounced log line: %r" % line)
        check(not missing, "announced, but not logged: %r", missing)
        return len(log)

    def __exit__(self, kind, *exc):
        try:
            status = self.stop()
            if kind is None:
                same(status, self.exit_status, "exit status")
            if kind is None or SANITIZER.search(self.log()):
                self.check_log()
        finally:
            self.clean_up()

    def show_log(self):
        """Prints the log of the last process, if somebody wants to see all of it."""
        if self.log_path and os.environ.get("VERBOSE"):
            print("---- log of koined %d\n%s----" % (self.pid, self.log().decode(errors="replace")), flush=True)

    def clean_up(self):
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.show_log()
        if self.clock:
            self.clock.close()
        if self.own_root and self.root:
            shutil.rmtree(self.root, ignore_errors=True)
            clear_databases(self.root)


lent = {}  # daemons that several tests use, by their arguments


@contextlib.contextmanager
def shared(*args, **opts):
    """
    A daemon that all tests of a file with the same arguments use, one after the other: a start and a stop take 0.1 s of
    CPU time with sanitizers. For tests that neither stop, kill nor configure it, and that read and write only what is
    theirs: their own user, project or conversation, or nothing that is kept. After a test that fails, the next one gets
    a new daemon. main() stops the daemons.
    """
    key = repr((args, sorted(opts.items())))
    if key not in lent:
        lent[key] = Daemon(*args, **opts).__enter__()
    d = lent[key]
    try:
        d.lend()
        yield d
        d.take_back()
    except BaseException:
        lent.pop(key).__exit__(*sys.exc_info())
        raise


def stop_shared():
    """Returns what was wrong with how they ended."""
    faults = []
    while lent:
        try:
            lent.popitem()[1].__exit__(None, None, None)
        except Exception as why:
            faults.append(str(why) or type(why).__name__)
    return faults


# ---- clients ----


def request(method, params=None, id=1):
    """One request's text; id is JSON text or a number, None for a notification."""
    text = '{"jsonrpc":"2.0","method":"%s"' % method
    if params is not None:
        text += ',"params":' + (params if isinstance(params, str) else json.dumps(params))
    if id is not None:
        text += ',"id":%s' % id
    return (text + "}").encode()


class Response:
    def __init__(self, status, headers, body, head):
        self.status = status
        self.headers = headers
        self.body = body
        self.head = head

    def header(self, name):
        return self.headers.get(name.lower())


class Client:
    def __init__(self, address, timeout=PATIENCE):
        kind, _, place = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            place = place.encode() if isinstance(place, str) else place
        else:
            host, _, port = place.rpartition(":")
            self.socket = socket.socket(socket.AF_INET)
            place = (host, int(port))
        # Connecting waits for room in the backlog: with Python's own timeout it would not.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                               struct.pack("ll", int(timeout), 0))
        try:
            self.socket.connect(place)
        except BaseException:
            self.socket.close()
            raise
        self.socket.settimeout(timeout)
        self.got = bytearray()
        self.open = True

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.open:
            self.open = False
            self.socket.close()

    def reset(self):
        """Leaves without a word: what is on its way is lost."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_all_it_takes(self, data):
        """Sends; a peer that closes while we do is no fault."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def more(self):
        """Reads some; False at the end of the stream."""
        try:
            part = self.socket.recv(262144)
        except socket.timeout:
            raise Failure("no answer; so far %.200r" % bytes(self.got)) from None
        self.got += part
        return bool(part)

    def need(self, n):
        while len(self.got) < n:
            check(self.more(), "the stream ended; so far %.200r", bytes(self.got))

    def take(self, n):
        self.need(n)
        out = bytes(self.got[:n])
        del self.got[:n]
        return out

    def take_until(self, mark):
        start = 0
        while True:
            at = self.got.find(mark, start)
            if at >= 0:
                return self.take(at + len(mark))
            start = max(0, len(self.got) - len(mark) + 1)
            check(self.more(), "the stream ended; so far %.200r", bytes(self.got))

    def read_line(self):
        return self.take_until(b"\n")[:-1]

    def read_frame(self):
        return self.take(struct.unpack(">I", self.take(4))[0])

    def read_response(self, head_only=False):
        head = self.take_until(b"\r\n\r\n")
        lines = head[:-4].decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) .+", lines[0])
        check(found, "not a status line: %r", lines[0])
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            check(name.lower() not in headers, "header twice: %r", name)
            headers[name.lower()] = value.strip()
        # No page may ever read an answer.
        check(not any(n.startswith("access-control") for n in headers), "CORS header: %r", head)
        status = int(found.group(1))
        if status == 100:
            return Response(status, headers, b"", head)
        check("content-length" in headers, "no length: %r", head)
        body = b"" if head_only else self.take(int(headers["content-length"]))
        return Response(status, headers, body, head)

    def read_rest(self):
        """Everything until the peer's end, which must come."""
        while True:
            try:
                if not self.more():
                    break
            except ConnectionResetError:
                break
        out = bytes(self.got)
        self.got.clear()
        return out

    def ended(self):
        rest = self.read_rest()
        check(not rest, "expected the end of the stream, not %.200r", rest)

    def quiet(self, seconds=0.2):
        """Nothing has come, and nothing comes for a moment."""
        check(not self.got, "unexpected %.200r", bytes(self.got))
        if select.select([self.socket], [], [], seconds)[0]:
            self.more()
            raise Failure("unexpected %.200r" % bytes(self.got))

    def call_text(self, text):
        """One line there, one line back."""
        self.send(text + b"\n")
        return self.read_line()

    def call(self, method, params=None, id=1):
        answer = json.loads(self.call_text(request(method, params, id)))
        check("result" in answer, "%s failed: %r", method, answer)
        same(answer["id"], id, "id")
        return answer["result"]

    def ping(self):
        check(self.call("ping")["pong"] is True, "no pong")


def connect_when_up(path):
    """For a daemon whose word of being ready cannot be read."""
    def attempt():
        try:
            return Client("unix:" + path)
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    return wait_until(attempt, "a daemon at " + path)


class Line:
    name = "line"

    @staticmethod
    def wrap(body):
        return body + b"\n"

    @staticmethod
    def read(client):
        return client.read_line()


class Length:
    name = "length"

    @staticmethod
    def wrap(body):
        return struct.pack(">I", len(body)) + body

    @staticmethod
    def read(client):
        return client.read_frame()


class Http:
    name = "http"

    @staticmethod
    def wrap(body, path="/", headers=""):
        return b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s" % (
            path.encode(), headers.encode(), len(body), body)

    @staticmethod
    def read(client):
        return client.read_response().body


FRAMINGS = (Line, Length, Http)


def post(client, body, path="/", headers="", method="POST", version="1.1", host="localhost"):
    """One HTTP request and its response; headers are whole lines."""
    head = "%s %s HTTP/%s\r\n" % (method, path, version)
    if host is not None:
        head += "Host: %s\r\n" % host
    head += "Content-Length: %d\r\n%s\r\n" % (len(body), headers)
    client.send(head.encode("latin-1") + body)
    return client.read_response(head_only=method == "HEAD")


# ---- running ----

servers_cpu = []  # seconds of servers that were nobody's child here


def cpu_used():
    """Seconds of this process, of all programs that it has waited for, and of their servers."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(s.ru_utime + s.ru_stime for s in spent) + sum(servers_cpu)


# The release build, in a run of all tests: what the sanitizers' build runs as well is left out, see main().
ONLY_MEASURED = os.environ.get("KOINE_ONLY_MEASURED") == "1" and "KOINE_NAMED" not in os.environ
EVERYTHING = "1" in (os.environ.get("KOINE_EVERY_TEST"), os.environ.get("KOINE_SOAK"))


def main(tests, measured=(), plain=()):
    """
    Runs the test_ functions of a module, or those whose names contain an argument and $TEST_FUNCTION.

    measured: the names of those that a release build answers in another way, because they measure memory, time or
    disk, or need a program without sanitizers. Where they are named, ./dev test runs only those with a release build.
    plain: the names of tests that exercise other programs more than ours. ./dev test runs them only with a release build,
    unless they are named; ./dev soak runs them in both.
    """
    passed = failed = skipped = 0
    part = os.environ.get("TEST_FUNCTION", "")
    measured = [*measured, *plain]
    missing = ["test_" + name for name in measured if "test_" + name not in tests]
    if missing:
        raise Failure("there is no %s" % ", ".join(missing))
    if measured and ONLY_MEASURED and not EVERYTHING and not SERVER:
        tests = {"test_" + name: tests["test_" + name] for name in measured}
    elif SANITIZED and not EVERYTHING and not part and len(sys.argv) == 1:
        tests = {name: test for name, test in tests.items() if name[len("test_"):] not in plain}
    for name, test in list(tests.items()):
        if not name.startswith("test_") or not callable(test):
            continue
        short = name[len("test_"):]
        if len(sys.argv) > 1 and not any(word in short for word in sys.argv[1:]):
            continue
        if part not in name:
            continue
        begun, used = time.monotonic(), cpu_used()
        try:
            test()
        except Skip as why:
            skipped += 1
            print("skip %s: %s" % (short, why), flush=True)
            continue
        except Exception as why:  # whatever it is, the other tests still run
            failed += 1
            text = str(why) or type(why).__name__
            print("FAIL %s: %s" % (short, text.replace("\n", "\n     ")), flush=True)
            if not isinstance(why, Failure) or os.environ.get("VERBOSE"):
                traceback.print_exc()
            continue
        passed += 1
        print("ok %s (%.1f s, %.2f s of CPU)" % (short, time.monotonic() - begun, cpu_used() - used), flush=True)
    for why in stop_shared():
        failed += 1
        print("FAIL the end of a shared daemon: %s" % why, flush=True)
    drop_databases()
    tail = ", %d skipped" % skipped if skipped else ""
    print("CPU: %.1f s" % cpu_used(), flush=True)
    print("%d passed, %d failed%s" % (passed, failed, tail), flush=True)
    sys.exit(1 if failed else 0)
