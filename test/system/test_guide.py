"""
Runs the commands of README.md, doc/guide.md and doc/dialects/README.md as a new user would.

Every command of their blocks runs unchanged on a terminal, as a user who is not root, in a namespace
with empty /home, /run and /tmp and only a loopback network. koined is started as the page says, by
koine daemon start. The output must match the page; times, ids and durations are ignored, and `…`
matches anything. A comment before a block marks a special one:

  <!-- meanwhile -->  runs in the background during the next block
  <!-- keys: X Y -->  a live view: types X, then Y, each when the screen has settled
  <!-- elsewhere: TEST -->  is run by that test instead
"""
import fcntl
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import termios
import time

from harness import KOINE, KOINED, PATIENCE, SOURCE, Failure, Skip, check, main, note, same

HOME = "/home/you"
PLACE = HOME + "/koine"
COLUMNS = 110

# ---- the page ----


class Block:
    """Some commands that stand together, with what each of them prints."""

    def __init__(self, page, line, kind, text):
        self.kind, _, self.argument = kind.partition(": ")
        self.commands = []
        for row in text.splitlines():
            if row.startswith("$ "):
                self.commands.append(["%s:%d" % (page, line), row[2:], []])
            elif self.commands and self.commands[-1][1].endswith("\\"):
                self.commands[-1][1] += "\n" + row
            elif self.commands:
                self.commands[-1][2].append(row)
            line += 1


def blocks(page):
    with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
        text = f.read()
    found = []
    for m in re.finditer(r"(?m)^(?:<!-- (.*) -->\n)?```(\w*)\n((?:.*\n)*?)```$", text):
        # What a shell is to run looks like it: nothing is left out by a forgotten "$".
        shell = m.group(2) in ("sh", "shell", "console")
        check(not shell, "%s: a block of shell without \"$\": %r", page, m.group(3)[:60])
        if "$ " in m.group(3)[:2] or "\n$ " in m.group(3):
            line = text.count("\n", 0, m.start(3)) + 1
            block = Block(page, line, m.group(1) or "", m.group(3))
            path = os.path.join(SOURCE, "test", block.argument)
            check(block.kind != "elsewhere" or os.path.exists(path), "%s:%d: there is no %s", page, line, path)
            found.append(block)
        else:
            check(not re.match(r"(\./dev|koined?|curl|sudo|apt|git) ", m.group(3)),
                  "%s: a command without \"$\": %r", page, m.group(3)[:60])
    return found


# What the guide and the manual said before commands and options were renamed: (kind of block, lines). Old
# names stay for one version.
PREVIOUS = [
    ("", ["$ koine daemon start", "$ koine status", "$ koine agents"]),
    ("", ["$ koine memory add 'Anna runs along the fjord' --subject Anna", "$ koine memory ls",
          "$ koine memory search where does anna run", "$ koine memory search fjord | cat",
          "$ koine memory add 'The release is on Friday' --category decision --expires 30"]),
    ("", ["$ koine send 'My name is Alice'", "$ koine messages", "$ koine messages default -n 1", "$ koine tokens -c default",
          "$ koine conversations", "$ koine conversations --ended", "$ koine conversations purge --all"]),
    ("", ["$ koine task add --runner recall -- where does anna run", "task-0000",
          "$ koine task add -r recall --after 0 -p 5 -- when is the release", "task-0001",
          "$ koine task follow 0", "$ koine task wait 1 && koine events -n 1 --type task.completed",
          "$ koine task get 1", "$ koine task list"]),
    ("", ["$ koine task add --runner recall --directory /tmp --stash --label weekend -- when is the release", "task-0002",
          "$ koine task add -r recall -d /tmp --stash -- when is the next release", "task-0003",
          "$ koine task edit 2 --runner recall --priority 5", "$ koine task list --label weekend",
          "$ koine task pause --group docs", "$ koine task enqueue 2 && koine task wait 2",
          "$ koine task resume --group docs", "$ koine task cancel 3",
          "$ koine task clean -s", "3 deleted", "$ koine task clean --group docs", "0 deleted", "$ koine task clean", "1 deleted"]),
    ("", ["$ koine run --follow -d /tmp -- echo 'as it is:' '$HOME'", "$ koine run --directory /tmp -w -c 'echo one | tr a-z A-Z'"]),
    ("", ["$ koine events -n 3", "$ koine automation list", "$ koine automation log", "$ koine notify", "$ koine notify list",
          "$ koine hosts", "$ koine hosts list", "$ koine project", "$ koine project list"]),
    ("meanwhile", ['$ koine ask "Deploy to production?" && echo deploying']),
    ("", ["$ koine approvals", "ID        …", "69df74bf  …", "$ koine approvals 69df", "…Deploy…", "$ koine approvals --exact $(koine approvals --json | grep -o '\"id\":\"[^\"]*' | cut -d'\"' -f4)", "…Deploy…",
          "$ koine approve 69df --comment go", "$ koine approvals --all", "$ koine grants"]),
    ("", ["$ mkdir -p ~/.config/koine",
          "$ printf '[session]\\nprogram = %s\\n' $PWD/examples/agent.sh >> ~/.config/koine/koine.conf",
          "$ koine daemon restart"]),
    ("meanwhile", ["$ koine session run --cwd /tmp --follow ship the release"]),
    ("keys: a q", ["$ koine approvals -w"]),
    ("", ["$ koine session list --status completed", "$ koine session run ship it | tee session",
          "$ koine session get $(cat session)", "$ koine session interrupt $(cat session)"]),
    ("", ["$ koine dialects enable nexus --yes --restart", "$ koine dialects", "$ koine dialects disable nexus --dry-run",
          "$ koine page --sessions", "$ koine backup koine-backup.db", "$ koine daemon stop"]),
]

# ---- what is printed, and what should be ----

VARIES = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,32}\b|\b\d{8,16}\b", "ID"),
    (r"\b\d+(\.\d+)? ?(ms|s|min|MB|MiB|KiB|KB|GB|GiB)\b", "N"),
    (r"\b(pid |pid=|duration=|\"created\":)\d+", "N"),
]
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78])")


def plain(row):
    """A row as it is on any day."""
    row = ESCAPES.sub("", row).replace("\r", "")
    for pattern, name in VARIES:
        row = re.sub(pattern, name, row)
    return re.sub(r"\s+", " ", row).strip()


def pattern(row):
    return ".*".join(re.escape(part) for part in plain(row).split("…"))


def rows(text):
    return [r for r in (plain(r) for r in text.split("\n")) if r]


def fits(wanted, text):
    wanted = "\n".join(pattern(r) for r in wanted if r.strip())
    return not wanted or re.fullmatch("(?s)" + wanted, "\n".join(rows(text)))


def learn(ids, wanted, text):
    """Which id of today's stands for the page's: people type its first characters."""
    short = r"\b(?=[0-9a-f]*\d)[0-9a-f]{8}(?:-[0-9a-f-]{27})?\b"
    old = re.findall(short, "\n".join(wanted))
    new = re.findall(short, ESCAPES.sub("", text))
    ids.update(zip(old, new) if len(old) == len(new) else [])


def today(command, ids):
    for old, new in ids.items():
        command = re.sub(r"\b%s([0-9a-f]{0,4})\b" % old[:4],
                         lambda m, new=new: new[:len(m.group(0))], command)
    return command


# ---- running it ----


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, command):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        self.fd = master
        self.text = ""
        self.process = subprocess.Popen(
            ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "bash", "-c", command],
            stdin=slave, stdout=slave, stderr=slave, cwd=PLACE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def read(self, seconds):
        """What has come, waiting so long for the first of it; False at its end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            piece = b""
        self.text += piece.decode("utf-8", "replace")
        return piece != b""

    def finish(self):
        end = time.monotonic() + 3 * PATIENCE
        while self.read(1):
            check(time.monotonic() < end, "it does not end: %s", self.text[-2000:])
        os.close(self.fd)
        return self.process.wait()

    def type(self, keys):
        for key in keys.split(" "):
            seen = -1
            while seen != len(self.text):
                seen = len(self.text)
                check(self.read(0.5), "it ended before %r", key)
            os.write(self.fd, {"Enter": b"\r"}.get(key, key.encode()))


class Reader:
    """Goes through a page, and does what it says."""

    def __init__(self):
        self.ids = {}
        self.meanwhile = []
        self.count = 0

    def compare(self, where, command, wanted, text):
        learn(self.ids, wanted, text)
        if not fits(wanted, text):
            raise Failure("%s: %s\n-- the page:\n%s\n-- printed:\n%s" % (
                where, command, "\n".join(wanted), ESCAPES.sub("", text)))

    def run_meanwhile(self, block):
        for where, command, wanted in block.commands:
            self.meanwhile.append((where, command, wanted, Terminal(today(command, self.ids))))

    def run(self, where, command, wanted, keys):
        """While something else goes on, it may not have come so far at the first try."""
        end = time.monotonic() + PATIENCE
        while True:
            t = Terminal(today(command, self.ids))
            if keys:
                t.type(keys)
            status = t.finish()
            if not self.meanwhile or keys or fits(wanted, t.text) or time.monotonic() > end:
                break
        if not keys:
            self.compare(where, command, wanted, t.text)
        same(status, 0, "%s: status of %s (%s)" % (where, command, t.text[-600:]))

    def run_block(self, block):
        if block.kind == "elsewhere":
            return
        self.count += len(block.commands)
        if block.kind == "meanwhile":
            return self.run_meanwhile(block)
        for where, command, wanted in block.commands:
            self.run(where, command, wanted, block.argument if block.kind == "keys" else "")
        for where, command, wanted, t in self.meanwhile:
            same(t.finish(), 0, "%s: status of %s (%s)" % (where, command, t.text[-600:]))
            self.compare(where, command, wanted, t.text)
        self.meanwhile = []


# ---- a machine that looks new ----


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14s", b"lo", 0x41, b""))


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def furnish():
    """Empty folders where users' things are, with the programs in PATH and the examples at hand."""
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "stage", "/mnt")
    os.mkdir("/mnt/bin")
    for program in (KOINE, KOINED):
        shutil.copy(program, "/mnt/bin/")
    shutil.copytree(os.path.join(SOURCE, "examples"), "/mnt/examples")
    for folder in ("/home", "/run", "/tmp"):
        mount("-t", "tmpfs", "-o", "mode=%s" % ("1777" if folder == "/tmp" else "755"), "fresh", folder)
    # .claude is where Claude Code was run once: koine connect finds it.
    for folder, mode in ((HOME, 0o755), (PLACE, 0o755), (HOME + "/.claude", 0o755), ("/run/user", 0o755),
                         ("/run/user/1000", 0o700)):
        os.mkdir(folder, mode)
    shutil.copytree("/mnt/examples", PLACE + "/examples")
    for top, folders, files in os.walk(HOME):
        for name in [top] + [os.path.join(top, f) for f in folders + files]:
            os.chown(name, 1000, 1000)
    os.chown("/run/user/1000", 1000, 1000)
    loopback_up()


def read_page(page):
    # Before the folders are empty that it may be in.
    found = [Block(page, 1, kind, "\n".join(lines)) for kind, lines in PREVIOUS] if page == "PREVIOUS" else blocks(page)
    furnish()
    keep = {k: os.environ[k] for k in ("LANG", "ASAN_OPTIONS", "UBSAN_OPTIONS") if k in os.environ}
    os.environ.clear()
    os.environ.update(keep, HOME=HOME, USER="you", XDG_RUNTIME_DIR="/run/user/1000", TERM="xterm",
                      PATH="/mnt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", SHELL="/bin/bash")
    reader = Reader()
    for block in found:
        reader.run_block(block)
    print("%s: %d commands" % (page, reader.count))


def reads(page):
    def test():
        if os.geteuid() != 0:
            raise Skip("a namespace of its own wants root")
        if subprocess.run(["unshare", "-mnpf", "true"], stderr=subprocess.DEVNULL).returncode:
            raise Skip("no namespaces here")
        done = subprocess.run(
            ["unshare", "-mnpf", "--kill-child", "--mount-proc", sys.executable, __file__, "--read", page],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        said = done.stdout.decode("utf-8", "replace")
        check(done.returncode == 0, "%s", said[-6000:])
        note(said.strip())
    return test


test_commands_of_the_readme_work_as_printed = reads("README.md")
test_commands_of_the_guide_work_as_printed = reads("doc/guide.md")
test_commands_of_the_protocols_page_work_as_printed = reads("doc/dialects/README.md")
test_commands_of_the_previous_version_still_work = reads("PREVIOUS")

if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read_page(sys.argv[2])
    else:
        main(globals())
