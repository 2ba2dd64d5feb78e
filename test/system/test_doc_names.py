"""Every command, option, setting and method that a document or man page names exists."""
import atexit
import functools
import glob
import os
import re
import shlex
import subprocess

from harness import KOINE, KOINED, SOURCE, Daemon, Folder, check, main, same

# Names with a dot and one of these ends are files.
FILES = ("bin", "c", "conf", "db", "h", "html", "json", "jsonc", "lock", "log", "md", "pc", "pid", "png", "prom", "py",
         "service", "sh", "sock", "socket", "svg", "token", "toml", "ts", "yaml", "yml")
# Options, settings and members of other programs and files.
FOREIGN = set("""
    --permission-prompt-tool --user --yolo
    [features] daemon.action_timeout_minutes daemon.max_parallel_actions mcp.koine rpc.LaunchSessionRequest
    """.split())
VALUED = ("-s", "--socket", "-u", "--url", "--framing", "-t", "--timeout", "--retries", "--wait", "--token-file",
          "--server-uid", "--color")
OLD_NAMES = "\n## Old names\n"  # the heading in doc/cli.md of what no help shows
SHORT = {"-s", "-u", "-t", "-j", "-V", "-h"}


def output(*argv, status=True):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check(done.returncode == 0 or not status, "%r: %r", argv, done.stdout)
    return done.stdout.decode()


# ---- what exists ----


class Programs:
    """koine and koined, by their completions, which read the tables that the programs use."""

    def __init__(self, folder):
        os.environ.update(XDG_RUNTIME_DIR=folder, KOINE_COMPLETE_MS="30000")
        with Daemon("--debug-methods") as d, d.connect() as c:
            self.methods = {m["name"] for m in c.call("rpc.discover")["methods"]}
        self.root = os.path.join(folder, "root")
        self.literals = ""
        for path in glob.glob(os.path.join(SOURCE, "src", "**", "*.[ch]"), recursive=True) + \
                glob.glob(os.path.join(SOURCE, "examples", "*.c")):
            with open(path, encoding="utf-8") as f:
                self.literals += f.read()
        self.settings = {line.split("=")[0] for line in self.completions(KOINED, "--set", "")}
        self.sections = {s.split(".")[0] for s in self.settings}

    @functools.lru_cache(None)
    def completions(self, program, *words):
        lines = output(program, "__complete", "bash", *words).splitlines()
        return [line.split("\t")[0].replace("\\", "") for line in lines[1:]]

    def words(self, *path):
        """The subcommands, or words of a fixed set, that may come next."""
        return [w for w in self.completions(KOINE, *path, "") if re.fullmatch(r"[a-z][a-z-]*", w)]

    @functools.lru_cache(None)
    def help(self, *path):
        return output(KOINE, *path, "--help")

    def options(self, *path):
        short = re.findall(r"(?<![\w-])-[a-zA-Z](?![\w-])", self.help(*path) + self.help())
        return set(self.completions(KOINE, *path, "--")) | set(short) | SHORT

    @functools.lru_cache(None)
    def all_options(self):
        found = self.options() | set(self.completions(KOINED, "--"))
        for command in self.words():
            found |= self.options(command)
            for sub in self.words(command):
                found |= set(self.completions(KOINE, command, sub, "--"))
        return found

    def takes_id(self, path):
        usage = re.search(r"(?im)^usage: koine %s(.*)" % " ".join(path), self.help(*path))
        return usage and re.fullmatch(r"[ \[\]|.\-]*ID[ \[\].]*(--comment TEXT|TEXT.*)?", usage.group(1))

    @functools.lru_cache(None)
    def has_setting(self, section, name, key):
        """With the name of a section that has one, as [agent NAME]."""
        if not name:
            if section == "listen":
                key, name = "%s" % key, ""
            if "%s.%s" % (section, key) in self.settings:
                return True
        full = ".".join(filter(None, (section, name and "x" if section != "listen" else name, key)))
        said = output(KOINED, "--check", "--root", self.root, "--set", full + "=on", status=False)
        return "unknown setting" not in said and "unknown dialect" not in said

    def has_name(self, name):
        """A method, an event, a setting, or what else is written so in the sources."""
        section, _, key = name.partition(".")
        return name in self.methods or name in self.settings or \
            '"%s"' % name in self.literals or '"%s\\"' % name in self.literals or \
            (section not in self.methods and "." not in key and section in self.sections
             and self.has_setting(section, "", key))


@functools.lru_cache(None)
def programs():
    folder = Folder().__enter__()
    atexit.register(folder.__exit__)
    os.makedirs(folder("run"), mode=0o700)
    return Programs(folder("run"))


# ---- what documents name ----


def documents():
    names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"]
    names += sorted(os.path.relpath(p, SOURCE) for pattern in ("doc/*.md", "doc/dialects/*.md", "doc/man/*.scd")
                    for p in glob.glob(os.path.join(SOURCE, pattern)))
    for name in names:
        with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
            yield name, f.read().split(OLD_NAMES)[0]


def is_manual(name):
    return name.endswith(".scd")


def split(name, text):
    """(blocks of code, pieces of code in the text)"""
    fence = re.compile(r"(?ms)^[ \t]*```(?:\w*)\n(.*?)^[ \t]*```$")
    blocks = fence.findall(text)
    rest = fence.sub("", text)
    if is_manual(name):
        blocks += re.findall(r"(?m)^\t(\$ .*?)(?:\+\+)?$", rest)
        if name.endswith("koine.1.scd"):
            commands = re.search(r"(?ms)^# COMMANDS$(.*?)^# ", rest + "\n# ")
            heads = re.findall(r"(?m)^\*([a-z]+(?:\*? \*?[a-z]+)?)\*", commands.group(1) if commands else "")
            heads += re.findall(r"(?m)^\*koine\*(?: \[_OPTION_\]\.\.\.)? \*([a-z]+)\*", rest)
            blocks += ["koine " + head.replace("*", "") for head in heads]
        rest = rest.replace("\\", "")
        spans = re.findall(r"(?<![\w*])\*([^*\n]+)\*", rest)
    else:
        blocks += re.findall(r"(?m)^    (?! )(.*)$", rest)
        spans = [re.sub(r"\s+", " ", s) for s in re.findall(r"`([^`]+)`", rest)]
    return blocks, spans


def command_lines(blocks, spans):
    for block in blocks:
        lines = block.replace("\\\n", " ").splitlines()
        prompted = [line for line in lines if line.lstrip().startswith("$ ")]
        yield from prompted or lines
    yield from spans


def calls(line):
    """The calls of koine and koined in a line, as words."""
    for part in re.split(r"&&|\|\||[|;&](?!\w)|\$\(| -- (?=koine )|<\(", line):
        m = re.match(r"\s*(?:\$ )?(?:sudo )?(?:[A-Z_]+=\S+ )*(?:\S*/)?(koined?) +(?![=(:])(.*)", part.rstrip(" )`"))
        if m:
            try:
                words = shlex.split(re.sub(r"  .*", "", m.group(2)), comments=True)
            except ValueError:
                words = m.group(2).split()
            yield m.group(1), [w.strip("[],.") for w in words if w.strip("[],.")]


def wrong_in_call(p, program, words):
    """What is wrong with a call, or nothing."""
    path, skip, literal = [], False, False
    options = []
    for i, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            break
        elif word.startswith("-") and len(word) > 1:
            options.append(word.split("=")[0])
            skip = program == "koine" and word in VALUED and not path
            if program == "koined" and word == "--set" and i + 1 < len(words):
                setting = words[i + 1].split("=")[0].lower().split(".")
                if len(setting) > 1 and not p.has_setting(setting[0], ".".join(setting[1:-1]), setting[-1]):
                    return "no setting %s" % words[i + 1]
                skip = True
        elif program == "koine" and not literal:
            choices = p.words(*path)
            if path in (["call"], ["wire"], ["discover"]) and re.match(r"(?!Arith)\w+\.\w", word) and not p.has_name(word):
                return "no method %s" % word
            if not re.fullmatch(r"[a-z][a-z-]*", word):
                literal = True
            elif word in choices:
                path.append(word)
                literal = len(path) == 2
            elif choices or not path:
                return "no command '%s'" % " ".join(["koine", *path, word])
            elif path != ["cancel"] and p.takes_id(path):
                return "'%s' is no command of koine %s" % (word, path[0])
            else:
                literal = True
    known = p.options(*path) if program == "koine" else set(p.completions(KOINED, "--")) | {"-h", "-V"}
    unknown = [o for o in options if re.fullmatch(r"--?[a-zA-Z][a-z-]*", o) and o not in known]
    return "no option %s of %s" % (unknown[0], " ".join([program, *path])) if unknown else None


def wrong_calls(p, text, name="page.md"):
    for line in command_lines(*split(name, text)):
        for program, words in calls(line):
            wrong = wrong_in_call(p, program, words)
            if wrong:
                yield "%s: %s" % (line.strip(), wrong)


def wrong_options(p, text, name="page.md"):
    for piece in split(name, text)[1] if name != "bench/README.md" else ():
        # Calls of other programs have options of their own.
        if not re.match(r"\W*-|koined?\b", piece):
            continue
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w*])", piece):
            if option not in p.all_options() and option not in FOREIGN:
                yield "%s: no option %s" % (piece, option)


def wrong_settings(p, text, name="page.md"):
    blocks, spans = split(name, text)
    named = []
    for span in spans:
        named += re.findall(r"\[([a-z][a-z-]*)(?: ([A-Za-z_]+))?\] ([a-z][a-z_0-9]*)\b", span)
    for block in blocks:
        section = None
        for line in block.splitlines():
            heading = re.fullmatch(r"\s*\[([a-z][a-z-]*)(?: ([^\]]+))?\]", line)
            key = re.match(r"\s*([a-z][a-z_0-9]*) *= ", line + " ")
            section = heading.groups() if heading else None if line.lstrip().startswith("[") else section
            if section and key and not heading:
                named.append((section[0], section[1], key.group(1)))
    if name.endswith("koine.conf.5.scd"):
        for part in re.split(r"(?m)^# (?=\[)", text)[1:]:
            section = re.match(r"\[([a-z-]+)(?: ([A-Z]+))?\]", part)
            if section.group(1) != "listen":
                named += [(*section.groups(), key) for key in re.findall(r"\*([a-z_0-9]+)\* =", part.split("\n# ")[0])]
    for section, of, key in named:
        if "[%s]" % section in FOREIGN or key in ("in", "of", "and"):
            continue
        if not p.has_setting(section, "ash" if of == "DIALECT" else of or "", key):
            yield "[%s] %s: no such setting" % (section + (" " + of if of else ""), key)


def wrong_names(p, text, name="page.md"):
    """Methods, events and settings written with a dot, and methods that a page describes."""
    spans = split(name, text)[1]
    prefixes = {m.split(".")[0] for m in p.methods if "." in m} | p.sections
    for span in spans:
        for word in re.findall(r"(?<![\w./~@$-])([a-z]+\.[a-zA-Z_]+)(?![\w./*({-]|\.\w)", span):
            if word.split(".")[0] in prefixes and word.split(".")[1] not in FILES and word not in FOREIGN and \
                    not p.has_name(word):
                yield "%s: there is no %s" % (span, word)
    if re.search(r"dialects/(ash|hld|ocg|nexus|aiwg)\.md$", name):
        for word in re.findall(r"(?m)^\*\*`(\w[\w.]*)`\*\*", text):
            if word not in p.methods and '"%s"' % word not in p.literals:
                yield "%s: no such method" % word


def wrong_on_the_page(p, text):
    """Commands in the texts of web, which have no mark around them."""
    for line in re.findall(r"(?:[Rr]un|[Tt]ype|with) (koine [a-z]+(?: [a-z]+)?)", text):
        wrong = wrong_in_call(p, "koine", line.split()[1:2]) or \
            (p.words(line.split()[1]) and wrong_in_call(p, "koine", line.split()[1:]))
        if wrong:
            yield "%s: %s" % (line, wrong)


# ---- tests ----


def check_all(find):
    p = programs()
    found = ["%s: %s" % (name, wrong) for name, text in documents() for wrong in find(p, text, name)]
    check(not found, "%s", "\n".join(found))


def test_every_command_in_a_document_exists():
    check_all(wrong_calls)


def test_old_names_in_a_document_mean_the_new_ones():
    p = programs()
    with open(os.path.join(SOURCE, "doc", "cli.md"), encoding="utf-8") as f:
        found = re.findall(r"(?m)^\| `koine ([a-z ]+?)(?: \.\.\.)?` \| `koine ([a-z ]+?)(?: [.A-Z-].*)?` \|$", f.read().split(OLD_NAMES)[1])
    check(len(found) > 8, "only %d were found", len(found))
    for old, new in found:
        same(p.help(*old.split()), p.help(*new.split()), old)


def test_every_command_on_the_page_exists():
    p = programs()
    named = 0
    for path in glob.glob(os.path.join(SOURCE, "web", "*")):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        named += text.count("koine task add") + text.count("koine session add")
        same(list(wrong_on_the_page(p, text)), [], path)
    check(named > 1, "only %d commands were found", named)
    same(len(list(wrong_on_the_page(p, "Start one with koine session start."))), 1, "a command that does not exist")


def test_every_option_in_a_document_exists():
    check_all(wrong_options)


def test_every_setting_in_a_document_exists():
    check_all(wrong_settings)


def test_every_method_and_event_in_a_document_exists():
    check_all(wrong_names)


def test_names_that_do_not_exist_are_found():
    p = programs()
    for find, name, text in (
            (wrong_calls, "page.md", "Run `koine approval get`."),
            (wrong_calls, "page.md", "```\n$ koine session start\n```\n"),
            (wrong_calls, "page.md", "Run `koine task add --urgent fix it`."),
            (wrong_calls, "page.md", "`koined --set tasks.paralel=3`"),
            (wrong_calls, "page.md", "`koined --foreground`"),
            (wrong_calls, "page.md", "`koine call memory.find`"),
            (wrong_calls, "koine.1.scd", "See *koine task begin*."),
            (wrong_calls, "koine.1.scd", "# COMMANDS\n\n*daemon* *launch*\n\tStarts it.\n"),
            (wrong_calls, "koine.1.scd", "# SYNOPSIS\n\n*koine* [_OPTION_]... *launch* _ID_++\n"),
            (wrong_options, "page.md", "Use `--urgently`."),
            (wrong_options, "koine.1.scd", "*--urgently*\n\tStarts it at once."),
            (wrong_settings, "page.md", "Set `[listen] pages = on`."),
            (wrong_settings, "page.md", "```\n[agent ollama]\nadress = x\n```\n"),
            (wrong_settings, "koine.conf.5.scd", "# [tasks]\n\n*paralel* = 16\n\tTasks.\n"),
            (wrong_names, "page.md", "`memory.find` finds memories."),
            (wrong_names, "page.md", "The event `task.broken`."),
            (wrong_names, "page.md", "`limits.queue_byte` limits it."),
            (wrong_names, "doc/dialects/hld.md", "**`launchSessions`** starts one.")):
        same(len(list(find(p, text, name))), 1, "what is found in %r" % text)


def test_names_that_exist_are_accepted():
    p = programs()
    text = "`koine approval watch`, `koine task add --retry 2 -- fix it`, `[listen] page = on`, `[agent NAME] state`, " \
        "`memory.search`, `task.completed`, `limits.queue_bytes`, `koine.conf`, `--follow`, `koine deny ID -c why`"
    for find in (wrong_calls, wrong_options, wrong_settings, wrong_names):
        same(list(find(p, text)), [], "what is found")


if __name__ == "__main__":
    # Hundreds of helps of koine, compared with documents.
    main(globals(), plain=[name[len("test_"):] for name in globals() if name.startswith("test_")])
