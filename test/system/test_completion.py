#!/usr/bin/env python3
"""
Completion in real shells, against a real koined: what bash, zsh and fish offer for a line, what
they put on it, and what is run when it is entered. And that no text of a model gets out of it.
"""
import contextlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import time

from harness import (KOINE, KOINED, PATIENCE, SANITIZER, SOURCE, Daemon, Folder, check, clean_environment, installed,
                     main, same, wait_until)
from test_chat_cli import Terminal

SCRIPTS = os.path.join(SOURCE, "dist", "completions")
AGENT = os.path.join(SOURCE, "test", "system", "session_agent.py")

# What would act if a shell took it for more than a text. Each begins with its own letter.
HOSTILE = [
    "a$(touch HACKED)", "b`touch HACKED`", "c'; touch HACKED; '", 'd"; touch HACKED; "$(touch HACKED)',
    "e f", "g\\h", "i*?[x]", "j:k:l", "m!!", "n #o", "p{q,r}", "s<t>u", "v&w|x;touch HACKED",
    "y\u00e9$(touch HACKED)", "z%s%n=~", "A'$(touch HACKED)", "B\\$(touch HACKED)", "C$HOME",
]
# What cannot be seen, or would pass for an option: never a candidate.
HIDDEN = ["D\033]0;x\007", "E\nF", "G\tH", "I\u202eJ", "K\u200bL", "--json"]
SAYS = "$(touch HACKED) `touch HACKED`\n'\"\033]0;owned\007\033[31m\t: \\ %s\u202e end"


def environment(folder, daemon=None, **more):
    """That of somebody at a shell: a home, and the programs in the path."""
    path = os.pathsep.join([os.path.dirname(KOINE), os.path.dirname(KOINED), os.environ["PATH"]])
    env = clean_environment({"PATH": path, "HOME": folder.path, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                             # However busy the machine is.
                             "KOINE_COMPLETE_MS": "60000", **more})
    env["XDG_CONFIG_HOME"] = env["XDG_DATA_HOME"] = env["XDG_STATE_HOME"] = folder.path
    if daemon:
        env["KOINE_SOCKET"] = os.path.join(daemon.root, "koine.sock")
    return env


def run(argv, env, folder):
    done = subprocess.run(argv, env=env, cwd=folder.path, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=PATIENCE)
    check(not SANITIZER.search(done.stderr), "sanitizer report: %r", done.stderr[:2000])
    same(done.returncode, 0, "exit code (%r)" % done.stderr[:500])
    return done.stdout.decode(), done.stderr.decode()


def direct(env, folder, *words, shell="fish", program=KOINE):
    """How to go on, and the candidates with their descriptions."""
    out, err = run([program, "__complete", shell, *words], env, folder)
    same(err, "", "stderr")
    how, *lines = out.split("\n")[:-1]
    return how, dict((line.split("\t") + [""])[:2] for line in lines)


def offered(env, folder, *words, **more):
    return list(direct(env, folder, *words, **more)[1])


# ---- the shells ----


BASH = r"""
source %s/koine.bash
compopt() { :; }
while (($#)); do
	COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("${@:3:$2}") COMP_CWORD=$(($2 - 1)) COMP_TYPE=9
	shift $(($2 + 2))
	COMPREPLY=()
	_koine
	printf '%%s\n' "${COMPREPLY[@]}" ---
done
"""


def cut(line):
    """The words of a line as bash cuts it for a completion, with their number before them."""
    words = re.findall(r"[=:]+|[^\s=:]+", line) + ([""] if line[-1:] in " =:" else [])
    return [line, str(len(words)), *words]


def split_answers(out, n):
    answers = [a.split("\n")[:-1] for a in out.split("---\n")[:-1]]
    same(len(answers), n, "answers in %r" % out[-500:])
    return [[a for a in answer if a] for answer in answers]


def ask_bash(env, folder, lines):
    out, err = run(["bash", "--norc", "-c", BASH % SCRIPTS, "bash", *[w for l in lines for w in cut(l)]],
                   env, folder)
    same(err, "", "stderr")
    return split_answers(out, len(lines))


def ask_fish(env, folder, lines):
    script = ("source %s/koine.fish; for line in $argv; complete -C $line; echo ---; end"
              % SCRIPTS)
    out, err = run(["fish", "--no-config", "-c", script, *lines], env, folder)
    same(err, "", "stderr")
    return [[c.split("\t")[0] for c in a] for a in split_answers(out, len(lines))]


ZSH = r"""
PS1='ready> '
fpath=(%s $fpath)
autoload -Uz compinit && compinit -u -D
line() { print -r -- "$BUFFER" >$TOLD.now; BUFFER=; mv $TOLD.now $TOLD }
zle -N line
bindkey '^Y' line
bindkey '^I' complete-word
setopt no_beep no_list_beep
"""

# Ctrl-T tells what Tab would offer, by what compadd gets. Tab itself does not work with it.
ZSH_ASK = r"""
compadd() {
	if [[ " $* " == *" -[OAD] "* ]]; then
		builtin compadd "$@"
		return
	fi
	local -a __hits
	builtin compadd -A __hits "$@"
	(( $#__hits )) && print -rl -- $__hits >>$TOLD.now
	builtin compadd "$@"
}
tell() {
	: >$TOLD.now
	zle list-choices
	BUFFER=
	mv $TOLD.now $TOLD
}
zle -N tell
bindkey '^T' tell
"""

BASH_RC = r"""
PS1='ready> '
source %s/koine.bash
line() { printf '%%s\n' "$READLINE_LINE" >$TOLD.now; READLINE_LINE=; READLINE_POINT=0; mv $TOLD.now $TOLD; }
bind -x '"\C-y": line'
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
bind 'set page-completions off'
"""

FISH_RC = r"""
source %s/koine.fish
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function fish_prompt; echo -n 'ready> '; end
function line
    commandline -b >$TOLD.now
    commandline -r ''
    mv $TOLD.now $TOLD
end
bind \cy line
"""


class Shell(contextlib.ExitStack):
    """A shell on a terminal. Ctrl-Y tells its line, and empties it."""

    def __init__(self, name, env, folder, more=""):
        super().__init__()
        installed(name)
        self.name, self.folder = name, folder
        self.told = folder("told")
        env = dict(env, TOLD=self.told, ZDOTDIR=folder.path)
        rc = {"bash": BASH_RC, "zsh": ZSH, "fish": FISH_RC}[name] % SCRIPTS + more
        with open(folder("rc"), "w") as f:
            f.write(rc)
        shutil.copy(folder("rc"), folder(".zshrc"))
        args = {"bash": ["--noprofile", "--rcfile", folder("rc"), "-i"], "zsh": ["-d", "-i"],
                "fish": ["--no-config", "-i", "-C", "source " + folder("rc")]}[name]
        start = os.getcwd()
        os.chdir(folder.path)
        try:
            self.terminal = self.enter_context(
                Terminal(env, *args, columns=120, program=shutil.which(name)))
        finally:
            os.chdir(start)
        self.terminal.expect("ready> ")

    def ask(self, keys):
        """What a key that tells has told. The terminal is read meanwhile, or it would be full."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.told)
        self.terminal.type(keys)
        self.until(lambda: os.path.exists(self.told))
        with open(self.told) as f:
            return f.read()

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < end, "in vain: %r", self.terminal.all[-2000:])
            if select.select([self.terminal.fd], [], [], 0.01)[0]:
                self.terminal.more(end)

    def line(self, keys):
        return self.ask(keys + "\x19")[:-1]

    def enter(self, keys, out):
        """Enters it; what it has written to a file."""
        path = self.folder(out)
        self.terminal.type(keys + "\r")
        self.until(lambda: os.path.exists(path) and os.path.getsize(path))
        with open(path) as f:
            return f.read()


def ask_zsh(env, folder, lines):
    with Shell("zsh", env, folder, ZSH_ASK) as shell:
        return [list(dict.fromkeys(shell.ask(line + "\x14").split("\n")[:-1])) for line in lines]


ASK = {"bash": ask_bash, "zsh": ask_zsh, "fish": ask_fish}


def ask(shell, env, folder, *lines):
    """What is offered for each line. A few at a time: each of these runs has its own time."""
    installed(shell)
    out = []
    for i in range(0, len(lines), 16):
        out += ASK[shell](env, folder, lines[i:i + 16])
    return out


# ---- every command and option of --help ----


def help_of(*words):
    return subprocess.run([KOINE, "help", *words], stdout=subprocess.PIPE, check=True).stdout.decode()


def commands_in(text):
    """Rows "  name  what it does", under a heading that is none of options, exits or examples."""
    out = []
    heading = ""
    for line in text.splitlines():
        if re.match(r"^\w.*:$", line):
            heading = line
        found = re.match(r"^  ([a-z]+) +\S", line)
        if found and not heading.startswith(("Options", "Common", "Exit", "Examples", "Parameters")):
            out.append(found.group(1))
    return out


def options_in(text):
    text = re.split("\nOptions|\nCommon options", text + "\nOptions")[1]
    return re.findall(r"^  (?:-\w, |    )(--[\w-]+)", text, re.M)


def walk():
    """Lines, and what must be offered for each."""
    out = [("koine ", commands_in(help_of("all"))), ("koine --", options_in(help_of("all")))]
    check(len(out[0][1]) > 20 and len(out[1][1]) > 8, "%r", out)
    for command in out[0][1]:
        text = help_of(command)
        subs = commands_in(text) if "\nCommands:\n" in text else []
        if subs:
            out.append(("koine %s " % command, subs))
        out.append(("koine %s --" % command, options_in(text)))
        for sub in subs:
            out.append(("koine %s %s --" % (command, sub), options_in(help_of(command, sub))))
    flags = subprocess.run([KOINED, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    out.append(("koined --", re.findall(r"^  (--[\w-]+)", flags, re.M)))
    return out


def check_walk(shell):
    with Folder() as folder:
        lines = walk()
        answers = ask(shell, environment(folder), folder, *[line for line, _ in lines])
        for (line, wanted), got in zip(lines, answers):
            same([w for w in wanted if w not in got], [], "missing behind %r" % line)


def test_all_of_help_is_offered_in_bash():
    check_walk("bash")


def test_all_of_help_is_offered_in_zsh():
    check_walk("zsh")


def test_all_of_help_is_offered_in_fish():
    check_walk("fish")


def test_help_is_the_description():
    with Folder() as folder:
        env = environment(folder)
        same(direct(env, folder, "task", "")[1]["show"], "Show one task in full")
        same(direct(env, folder, "task", "list", "--")[1]["--state"][:15], "show only tasks")
        # A command's own hides the common one.
        same(direct(env, folder, "hook", "--")[1]["--timeout"][:4], "wait")


def test_what_the_tables_say_of_values():
    rows = [
        (["task", "list", "--state", ""], "words", ["queued", "running", "completed", "failed", "skipped", "cancelled"]),
        (["task", "list", "--state=r"], "words", ["--state=running"]),
        (["--framing", ""], "words", ["line", "length", "http", "gob"]),
        (["hook", "-f", "c"], "words", ["claude", "codex", "cursor", "copilot"]),
        (["connect", "c"], "words", ["claude", "codex", "copilot", "cursor"]),
        (["connect", "claude", ""], "words", []),
        (["grant", ""], "words", ["list", "delete"]),
        (["help", "sess"], "words", ["session", "sessions"]),
        (["help", "session", "unarch"], "words", ["unarchive"]),
        (["backup", ""], "files", []),
        (["memory", "import", ""], "files", []),
        (["--token-file="], "files", []),
        (["task", "add", "--dir", ""], "folders", []),
        (["task", "add", "--", "--"], "words", []),
        (["task", "add", "some", ""], "words", []),
        (["no-such-command", ""], "words", []),
        (["task", "no-such", ""], "words", []),
        (["task", "show", "--no-such", ""], "words", []),
    ]
    with Folder() as folder:
        env = environment(folder)
        for words, how, wanted in rows:
            got = direct(env, folder, *words, shell="bash")
            same((got[0], list(got[1])), (how, wanted), "for %r" % (words,))


def test_dialects_are_offered_with_where_their_clients_look():
    with Folder() as folder:
        env = environment(folder)
        for words in (["dialect", "enable", ""], ["dialect", "disable", "hld", ""]):
            how, got = direct(env, folder, *words)
            same(how, "words")
            check("koine" not in got, "what has one place only: %r", got)
            same(got["nexus"], "http:127.0.0.1:8765")
            check({"ash", "hld", "ocg", "nexus", "aiwg", "gateway", "mcp"} <= set(got), "%r", got)
        same(list(direct(env, folder, "dialect", "enable", "ne", shell="bash")[1]), ["nexus"])
        # Settings that koined does not take are nothing to complain about at a Tab.
        os.makedirs(folder("broken/koine"))
        with open(folder("broken/koine/koine.conf"), "w") as f:
            f.write("[daemon]\nnonsense = 1\n")
        same(direct(dict(env, XDG_CONFIG_HOME=folder("broken")), folder, "dialect", "enable", ""), ("words", {}))


def test_koined_offers_its_own():
    rows = [
        (["--log-level", "w"], "words", ["warn"]),
        (["--log-level=e"], "words", ["--log-level=err"]),
        (["--listen", "as"], "open", ["ash="]),
        (["--config", ""], "files", []),
        (["--root", ""], "folders", []),
        (["--set", "daemon.log_l"], "open", ["daemon.log_level="]),
        (["--check", "--ad"], "words", ["--adopt"]),
    ]
    with Folder() as folder:
        env = environment(folder)
        for words, how, wanted in rows:
            got = direct(env, folder, *words, shell="bash", program=KOINED)
            same((got[0], list(got[1])), (how, wanted), "for %r" % (words,))


# ---- what the daemon knows ----


class World(contextlib.ExitStack):
    """A daemon that has something of everything."""

    def __init__(self):
        super().__init__()
        self.folder = self.enter_context(Folder())
        config = self.folder("koine.conf")
        with open(config, "w") as f:
            f.write("[agent model]\nkind=openai\nmodel=m\nurl=http://127.0.0.1:9\n"
                    "[rule tidy]\nevent=never.happens\nprompt=x\n")
        os.chmod(config, 0o600)
        self.daemon = self.enter_context(
            Daemon("--config", config, "--set", "session.program=%s %s" % (sys.executable, AGENT)))
        self.env = environment(self.folder, self.daemon)
        self.client = self.daemon.connect()
        call = self.client.call
        self.task = call("task.add", {"prompt": "fix the tests", "project": "", "delay": 3600})["id"]
        self.memory = call("memory.add", {"content": "Anna moved to Oslo"})["id"]
        self.approval = call("approval.create", {"tool": "Bash", "input": {"command": "make all"}})["id"]
        self.session = call("session.launch", {"query": "say hello", "working_dir": self.folder.path,
                                               "title": "greeting"})["id"]
        wait_until(lambda: call("session.get", {"id": self.session})["status"] == "completed",
                   "the session")
        self.grant = call("approval.grant", {"tool": "Read", "verdict": "allow"})["id"]
        run([KOINE, "send", "-c", "kitchen", "hello"], self.env, self.folder)

    def offered(self, *words, **more):
        return direct(self.env, self.folder, *words, **more)


def test_what_there_is_is_offered_with_its_first_words():
    with World() as w:
        rows = [
            (["task", "show", ""], w.task, "queued fix the tests"),
            (["task", "add", "--after", ""], w.task, "queued fix the tests"),
            (["session", "show", ""], w.session, "completed greeting say hello"),
            (["events", "--session", ""], w.session, "completed greeting say hello"),
            (["approve", ""], w.approval, "Bash make all"),
            (["approvals", ""], w.approval, "Bash make all"),
            (["memory", "show", ""], w.memory, "Anna moved to Oslo"),
            (["memory", "add", "--replaces", ""], w.memory, "Anna moved to Oslo"),
            (["grant", "delete", ""], w.grant, "allow Read"),
            (["send", "--agent", ""], "model", "openai m"),
            (["session", "add", "-a", ""], "recall", "recall"),
            (["messages", ""], "kitchen", "recall"),
            (["rule", "run", ""], "tidy", ""),
            (["call", ""], "memory.add", "Add a memory"),
            (["wire", ""], "ping", None),
            (["project", "show", ""], w.daemon.root, "nothing"),
        ]
        for words, value, said in rows:
            got = w.offered(*words)[1]
            check(value in got, "%r is not offered for %r: %r", value, words, got)
            check(said is None or got[value] == said, "%r: %r", words, got[value])
        how, params = w.offered("call", "memory.add", "")
        same(how, "open")
        same(params["content="], "Content of the memory")


def test_the_socket_on_the_line_is_asked():
    with World() as w:
        path = w.env["KOINE_SOCKET"]
        env = environment(w.folder)
        same(offered(env, w.folder, "task", "show", ""), [], "from nobody")
        for before in (["--socket", path], ["--socket=" + path], ["-s", path], ["-u", "unix:" + path]):
            same(offered(env, w.folder, *before, "task", "show", ""), [w.task], "%r" % before)
        same(offered(env, w.folder, "-s", path, "memory", "show", ""), [w.memory])


def test_each_shell_offers_what_there_is():
    with World() as w:
        for shell in ASK:
            installed(shell)
            lines = ["koine task show ", "koine approve ", "koine memory show ", "koine session log ",
                     "koine task list --state=r", "koine call memory.add con", "koined --listen=as"]
            got = ask(shell, w.env, w.folder, *lines)
            # bash replaces only what follows a "=".
            state, listen = ("", "") if shell == "bash" else ("--state=", "--listen=")
            same(got, [[w.task], [w.approval], [w.memory], [w.session], [state + "running"],
                       ["content="], [listen + "ash="]], "in %s" % shell)


def test_the_newest_come_first_and_no_more_than_a_hundred():
    with Daemon() as d, d.connect() as c, Folder() as folder:
        for i in range(120):
            c.call("memory.add", {"content": "number %d" % i})
        got = list(direct(environment(folder, d), folder, "memory", "show", "")[1].values())
        same(got, ["number %d" % i for i in range(119, 19, -1)])


# ---- without a daemon ----


def test_nothing_is_offered_and_nothing_said_without_a_daemon():
    with Folder() as folder:
        env = environment(folder)
        lines = ["koine task show ", "koine memory show ", "koine call ", "koine call memory.add ",
                 "koine approve ", "koine send --agent ", "koine --server-uid x task get ",
                 "koine task --project /no/such get "]
        for words in lines:
            out, _ = run([KOINE, "__complete", "bash", *words.split(" ")[1:]], env, folder)
            check(out in ("words\n", "open\n"), "%r: %r", words, out)
        for shell in ASK:
            installed(shell)
            same(ask(shell, env, folder, *lines), [[]] * len(lines), "in %s" % shell)


def test_a_server_that_does_not_answer_ends_in_time():
    with Folder() as folder, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(folder("koine.sock"))
        silent.listen(0)
        env = environment(folder, KOINE_SOCKET=folder("koine.sock"), KOINE_COMPLETE_MS="50")
        same(run([KOINE, "__complete", "bash", "task", "show", ""], env, folder)[0], "", "no answer")
        # Now nobody is let in any more: connecting itself waits.
        waiting = []
        with contextlib.ExitStack() as stack:
            while True:
                s = stack.enter_context(socket.socket(socket.AF_UNIX))
                s.setblocking(False)
                if s.connect_ex(folder("koine.sock")) != 0:
                    break
                waiting.append(s)
            same(run([KOINE, "__complete", "bash", "task", "show", ""], env, folder)[0], "")


def test_half_a_line_harms_nothing():
    with World() as w:
        for words in ([], ["fish"], ["ksh", ""], ["bash", "-"], ["bash", "--"], ["bash", "="],
                      ["bash", "--="], ["bash", "-s"], ["bash", "-s", ""], ["bash", "task", "-n"],
                      ["bash", "call", "no.such", ""], ["bash", "x" * 100000],
                      ["bash", "task", "list", "--group", "\xff\x01"], ["zsh", "help", "a", "b", "c", ""]):
            done = subprocess.run([KOINE, "__complete", *words], env=w.env, capture_output=True,
                                  timeout=PATIENCE)
            check(not SANITIZER.search(done.stderr) and done.returncode in (0, 64), "%r: %r", words, done)


# ---- texts of others ----


def hostile_tasks(client):
    for group in HOSTILE + HIDDEN:
        client.call("task.add", {"prompt": SAYS, "group": group, "project": "", "delay": 3600})


def is_harmless(text):
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", text)


def test_only_what_can_be_seen_is_offered():
    with Daemon() as d, d.connect() as c, Folder() as folder:
        hostile_tasks(c)
        c.call("memory.add", {"content": SAYS})
        c.call("approval.create", {"tool": "Bash", "input": {"command": SAYS}})
        env = environment(folder, d)
        same(sorted(offered(env, folder, "task", "list", "--group", "")), sorted(HOSTILE))
        for words in (["task", "show", ""], ["memory", "show", ""], ["approve", ""]):
            for shell in ASK:
                out, _ = run([KOINE, "__complete", shell, *words], env, folder)
                check(is_harmless(out), "%r", out)
                check("touch HACKED" in out, "%r", out)
                # A line for each: none has made another.
                n = len(HOSTILE + HIDDEN) if words[0] == "task" else 1
                same(out.count("\n"), n + 1, "lines in %r" % out)


def test_a_value_is_quoted_for_bash():
    with Daemon() as d, d.connect() as c, Folder() as folder:
        for group in ("~root", "=ls", "#x", "$(touch HACKED)", "\u00e9 \u00e8"):
            c.call("task.add", {"prompt": "x", "group": group, "project": "", "delay": 3600})
        same(sorted(offered(environment(folder, d), folder, "task", "list", "--group", "", shell="bash")),
             sorted(["\\~root", "=ls", "\\#x", "\\$\\(touch\\ HACKED\\)", "\u00e9\\ \u00e8"]))


def check_hostile(name):
    installed(name)
    with Daemon() as d, d.connect() as c, Folder() as folder:
        hostile_tasks(c)
        with Shell(name, environment(folder, d), folder) as shell:
            for i, group in enumerate(HOSTILE):
                out = shell.enter("koine --json task list --group %s\t >out%d" % (group[0], i),
                                  "out%d" % i)
                same([t["group"] for t in json.loads(out)], [group], "in %s" % name)
            # Descriptions on the screen: two Tabs list.
            shell.terminal.type("koine task show task-00\t\t")
            shell.terminal.expect("touch HACKED")
            shell.line("")
            for quote in "\"'":
                for group in HOSTILE:
                    shell.line("koine task list --group %s%s\t" % (quote, group[0]))
            listed = shell.terminal.all.decode(errors="replace")
        check("owned\007" not in listed and "\033]0;owned" not in listed, "the title was changed")
        check("\u202e" not in listed, "it was turned around")
        same(os.path.exists(folder("HACKED")), False, "something was run")


def test_no_text_gets_out_in_bash():
    check_hostile("bash")


def test_no_text_gets_out_in_zsh():
    check_hostile("zsh")


def test_no_text_gets_out_in_fish():
    check_hostile("fish")


def test_an_open_quote_runs_nothing():
    with Daemon() as d, d.connect() as c, Folder() as folder:
        hostile_tasks(c)
        for name in ASK:
            installed(name)
            with Shell(name, environment(folder, d), folder) as shell:
                for group, quote in ((g, q) for g in HOSTILE for q in "\"'"):
                    line = shell.line("koine task list --group %s%s\t" % (quote, group[0]))
                    # Whatever it is now, with the quote closed it may be wrong, and no more. koine
                    # itself is not in the path: what counts is what the shell does before.
                    for end in ("", quote):
                        subprocess.run([name, "-c", line + end], env=clean_environment(),
                                       cwd=folder.path, capture_output=True, timeout=PATIENCE)
                        check(not os.path.exists(folder("HACKED")), "%s ran %r", name, line + end)


# ---- on a terminal ----


def check_tab(name):
    with World() as w, Shell(name, w.env, w.folder) as shell:
        same(shell.line("koine sess\t").rstrip(), "koine session")
        same(shell.line("koine task can\t").rstrip(), "koine task cancel")
        same(shell.line("koine task show ta\t").rstrip(), "koine task show " + w.task)
        same(shell.line("koine task list --state=q\t").rstrip(), "koine task list --state=queued")
        same(shell.line("koine task list --stat\t").rstrip(), "koine task list --state")
        same(shell.line("koine call memory.add conte\t"), "koine call memory.add content=")
        same(shell.line("koined --log-level=deb\t").rstrip(), "koined --log-level=debug")
        os.mkdir(w.folder("some folder"))
        open(w.folder("some file"), "w").close()
        same(shell.line("koine store backup some\\ fi\t").rstrip(), "koine store backup some\\ file")
        same(shell.line("koine task add --directory some\t").rstrip(" /"),
             "koine task add --directory some\\ folder")
        same(shell.line("koined --config=some\\ fi\t").rstrip(), "koined --config=some\\ file")
        # In the middle of a line: what follows stays.
        shell.terminal.type("koine task can 3\x1b[D\x1b[D\t")
        check(re.fullmatch(r"koine task cancel +3", shell.line("")), "in the middle")


def test_tab_in_bash():
    check_tab("bash")


def test_tab_in_zsh():
    check_tab("zsh")


def test_tab_in_fish():
    check_tab("fish")


def test_descriptions_are_listed_and_not_typed():
    for name in ASK:
        installed(name)
        with World() as w, Shell(name, w.env, w.folder) as shell:
            shell.terminal.type("koine task \t\t")
            shell.terminal.expect("Wait until tasks have ended")
            if name == "bash":
                same(shell.line(""), "koine task ")


# The scripts are shell code, and koine gives each shell the same candidates. With a sanitizer bash is enough, because
# every Tab starts koine.
PLAIN = ("all_of_help_is_offered_in_zsh", "all_of_help_is_offered_in_fish", "no_text_gets_out_in_zsh",
         "no_text_gets_out_in_fish", "an_open_quote_runs_nothing", "tab_in_zsh", "tab_in_fish")

if __name__ == "__main__":
    main(globals(), plain=PLAIN)
