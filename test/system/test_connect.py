#!/usr/bin/env python3
"""
koine connect on real files in a private HOME: what it writes, leaves, refuses and takes out. What
it has written is then used: the server that a file names is started as an agent would.
"""
import json
import os
import random
import re
import shutil
import stat
import subprocess
import tomllib

from harness import KOINE, PATIENCE, Daemon, Folder, Skip, check, main, same, wait_until
from test_chat_cli import Terminal, environment, koine

AGENTS = ("claude", "codex", "gemini", "opencode", "copilot", "cursor", "vscode", "zed")
WITH_PROJECTS = tuple(a for a in AGENTS if a not in ("copilot", "zed"))
FOLDERS = (".claude", ".codex", ".gemini", ".config/opencode", ".copilot", ".cursor", ".config/Code/User",
           ".config/zed")
SERVER = {  # file, and where the server stands in it
    "claude": (".claude.json", "mcpServers"), "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "opencode": (".config/opencode/opencode.json", "mcp"),
    "copilot": (".copilot/mcp-config.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "zed": (".config/zed/settings.json", "context_servers"),
}
SETTINGS = '{\r\n\t"model": "opus",\r\n\t"permissions": {"allow": ["Bash(ls)"]}\r\n}'
TOML = '# mine\nmodel = "gpt"\n\n[projects."/w"] # here\ntrust_level = "trusted"'


class Home(Folder):
    """A home with programs of its own; PATH has nothing else of agents."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(self("bin"))
        self.env = environment(HOME=self.path, PATH=self("bin") + ":/usr/bin:/bin",
                               XDG_RUNTIME_DIR=self("run"))
        for name in ("KOINE_SOCKET", "XDG_CONFIG_HOME"):
            self.env.pop(name, None)
        return self

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self(name)), exist_ok=True)
        with open(self(name), "w", newline="", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self(name), mode)
        return self(name)

    def read(self, name):
        with open(self(name), newline="", encoding="utf-8") as f:
            return f.read()

    def program(self, name, line):
        self.write("bin/" + name, "#!/bin/sh\n%s\n" % line, 0o755)

    def all(self):
        """Every file with its bytes and mode, to see that nothing changed, or what did."""
        out = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                out[os.path.relpath(path, self.path)] = (
                    os.readlink(path) if os.path.islink(path) else
                    (self.read(os.path.relpath(path, self.path)), os.lstat(path).st_mode))
        return out

    def connect(self, *args, code=0, **more):
        return koine(dict(self.env, **more), "connect", *args, code=code)


def full_home(home):
    for folder in FOLDERS:
        os.makedirs(home(folder), exist_ok=True)


def load(home, name):
    text = home.read(name)
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


# ---- what is written ----


def test_every_agent_gets_its_server():
    with Home() as home:
        full_home(home)
        for agent in AGENTS:
            home.connect(agent, "--yes")
            name, member = SERVER[agent]
            server = load(home, name)[member]["koine"]
            line = server["command"]
            if isinstance(line, str):
                line = [line] + server["args"]
            same(line[:2], [KOINE, "mcp"], agent)
            same(line[2:], ["--start"] + (["--socket", home("run/koine/koine.sock")]
                                          if agent == "codex" else []), "arguments for " + agent)
            same(stat.S_IMODE(os.stat(home(name)).st_mode), 0o600, "mode of " + name)


def test_claude_is_asked_only_where_it_would_ask():
    with Home() as home:
        full_home(home)
        home.connect("claude", "--yes")
        settings = load(home, ".claude/settings.json")
        same(settings["permissions"], {"allow": ["mcp__koine"]})
        same(settings["hooks"].pop("PermissionRequest"), [{"matcher": "*", "hooks": [
            {"type": "command", "command": KOINE + " hook --timeout 590", "timeout": 600}]}])
        told = [{"hooks": [{"type": "command", "command": KOINE + " hook --timeout 5",
                            "timeout": 10}]}]
        same(settings["hooks"], {event: told for event in (
            "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop",
            "SessionEnd")})


def test_a_gate_has_each_agents_unit_of_time():
    events = {"claude": (".claude/settings.json", "PreToolUse", 600),
              "codex": (".codex/hooks.json", "PreToolUse", 600),
              "gemini": (".gemini/settings.json", "BeforeTool", 600000),
              "cursor": (".cursor/hooks.json", "beforeShellExecution", 600)}
    with Home() as home:
        full_home(home)
        before = home.all()
        for agent, (name, event, time) in events.items():
            home.connect(agent, "--yes")
            check(not os.path.exists(home(name)) or event not in load(home, name).get("hooks", {}),
                  "%s has a gate that nobody asked for", agent)
            home.connect(agent, "--yes", "--gate")
            [group] = load(home, name)["hooks"][event]
            [hook] = group.get("hooks", [group])
            same(hook["timeout"], time, "timeout of " + agent)
            check("mcp" not in group.get("matcher", ""), "%r waits for koine's tools", group)
            home.connect(agent, "--yes", "--undo")
        same(home.all(), before)


def test_copilot_gets_its_server_and_a_gate():
    with Home() as home:
        full_home(home)
        home.write(".copilot/settings.json", '{"trustedFolders":["/w"]}')
        before = home.all()
        home.connect("copilot", "--yes")
        same(load(home, ".copilot/mcp-config.json"), {"mcpServers": {"koine": {
            "type": "local", "command": KOINE, "args": ["mcp", "--start"], "tools": ["*"]}}})
        check("hooks" not in load(home, ".copilot/settings.json"), "a gate that nobody asked for")
        home.connect("copilot", "--yes", "--gate")
        settings = load(home, ".copilot/settings.json")
        same(settings["trustedFolders"], ["/w"])
        [hook] = settings["hooks"]["preToolUse"]
        same((hook["type"], hook["bash"], hook["timeoutSec"]),
             ("command", KOINE + " hook --timeout 590", 600))
        # Which tools it may use is the user's choice.
        home.write(".copilot/mcp-config.json",
                   home.read(".copilot/mcp-config.json").replace('"*"', '"memory_add"'))
        check("already connected" in home.connect("copilot", "--yes").out, "the choice is undone")
        home.write(".copilot/mcp-config.json",
                   home.read(".copilot/mcp-config.json").replace('"memory_add"', '"*"'))
        home.connect("copilot", "--yes", "--undo")
        same(home.all(), before)


def test_a_gate_is_before_commands_and_edits():
    gates = {"claude": (".claude/settings.json", "PreToolUse", ("Bash", "Edit", "Write")),
             "codex": (".codex/hooks.json", "PreToolUse", ("Bash", "apply_patch")),
             "gemini": (".gemini/settings.json", "BeforeTool",
                        ("run_shell_command", "write_file", "replace"))}
    with Home() as home:
        full_home(home)
        for agent, (name, event, tools) in gates.items():
            home.connect(agent, "--yes", "--gate")
            [group] = load(home, name)["hooks"][event]
            missing = set(tools) - set(group["matcher"].split("|"))
            check(not missing, "%s is not asked before %s", agent, missing)


def test_an_agent_that_was_not_tried_is_called_so():
    with Home() as home:
        full_home(home)
        check("documentation" in home.connect("zed", "--yes").out, "zed was tried?")


def test_variables_say_where_files_are():
    with Home() as home:
        for name in ("c", "x", "g"):
            os.mkdir(home(name))
        home.program("claude", "echo 1")
        home.program("opencode", "echo 1")
        home.connect("claude", "--yes", CLAUDE_CONFIG_DIR=home("c"))
        home.connect("codex", "--yes", CODEX_HOME=home("x"))
        home.connect("opencode", "--yes", XDG_CONFIG_HOME=home("g"))
        for name in ("c/.claude.json", "c/settings.json", "x/config.toml", "x/hooks.json",
                     "g/opencode/opencode.json"):
            check(os.path.exists(home(name)), "%s is not there", name)
        check(not os.path.exists(home(".claude.json")), "the home was written, too")


def test_the_other_name_of_a_file_is_used_if_it_exists():
    with Home() as home:
        home.write(".config/opencode/opencode.jsonc", '{\n  // mine\n  "theme": "x",\n}\n')
        done = home.connect("opencode", "--yes")
        check("[agent-server opencode]" in done.out, "how its approvals come is not said")
        check("// mine" in home.read(".config/opencode/opencode.jsonc"), "the comment is lost")
        check('"mcp"' in home.read(".config/opencode/opencode.jsonc"), "it is not there")
        check(not os.path.exists(home(".config/opencode/opencode.json")), "there are two")


def test_a_socket_that_was_named_is_carried_on():
    with Home() as home:
        full_home(home)
        home.connect("claude", "--yes", KOINE_SOCKET="/a b/k.sock")
        same(load(home, ".claude.json")["mcpServers"]["koine"]["args"],
             ["mcp", "--socket", "/a b/k.sock"])
        [group] = load(home, ".claude/settings.json")["hooks"]["PermissionRequest"]
        same(group["hooks"][0]["command"], KOINE + " hook --timeout 590 --socket '/a b/k.sock'")
        # Another one replaces it, in both files, and nothing is duplicated.
        home.connect("claude", "--yes", "--socket", "/other.sock")
        same(load(home, ".claude.json")["mcpServers"]["koine"]["args"],
             ["mcp", "--socket", "/other.sock"])
        [group] = load(home, ".claude/settings.json")["hooks"]["PermissionRequest"]
        check(group["hooks"][0]["command"].endswith("--socket /other.sock"), "%r", group)
        home.connect("claude", "--yes", "--undo")
        same([n for n in home.all() if "claude" in n], [], "what is left")


def test_a_path_that_cannot_be_written_is_refused():
    with Home() as home:
        full_home(home)
        before = home.all()
        for socket in ("/it's.sock", "/a\nb.sock"):
            done = home.connect("claude", "--yes", "--socket", socket, code=64)
            check("quote or a control character" in done.err, "%r", done.err)
        done = home.connect("claude", "--yes", "--url", "http://127.0.0.1:1/", code=64)
        check("Unix socket" in done.err, "%r", done.err)
        same(home.all(), before)


# ---- what users have added ----


def arguments(home, agent):
    name, member = SERVER[agent]
    server = load(home, name)[member]["koine"]
    return server["args"] if "args" in server else server["command"][1:]


def test_server_starts_koined_unless_a_service_manager_does():
    with Home() as home:
        full_home(home)
        home.program("systemctl", 'echo "LoadState=loaded"; echo "ActiveState=active"; echo active')
        home.connect("claude", "--yes")
        same(arguments(home, "claude"), ["mcp"])
        home.program("systemctl", "exit 1")
        home.connect("claude", "--yes")
        same(arguments(home, "claude"), ["mcp", "--start"])
        # It would start another koined than the one at this socket.
        home.connect("cursor", "--yes", "--socket", home("x.sock"))
        same(arguments(home, "cursor"), ["mcp", "--socket", home("x.sock")])


def test_added_arguments_stay():
    with Home() as home:
        full_home(home)
        home.program("systemctl", 'echo "LoadState=loaded"; echo "ActiveState=active"; echo active')
        for agent in AGENTS:
            home.connect(agent, "--yes")
            name = SERVER[agent][0]
            added = '"mcp", "--start", "--tools", "memory"'
            text = home.read(name)
            home.write(name, re.sub(r'"mcp"(?!\s*:)', added, text).replace(
                '"KOINE_SESSION_ID"', '\'MINE\', # mine\n"KOINE_SESSION_ID"'))
            before = home.read(name)
            home.connect(agent, "--yes")
            same(home.read(name), before, agent)
            home.connect(agent, "--yes", "--socket", "/x.sock")
            same(arguments(home, agent),
                 ["mcp", "--start", "--tools", "memory", "--socket", "/x.sock"], agent)
            if agent == "codex":
                check("MINE" in load(home, name)["mcp_servers"]["koine"]["env_vars"], "MINE is gone")
            home.connect(agent, "--yes", "--undo")
        same(home.connect("--json", code=0).out.count('"connected":"no"'), len(AGENTS))


def test_what_is_added_in_other_ways_stays():
    with Home() as home:
        full_home(home)
        for agent in ("codex", "zed"):
            home.connect(agent, "--yes")
        name = ".codex/config.toml"
        home.write(name, home.read(name).replace(
            'args = ["mcp",', 'args = [\n  "mcp", # "one", two\n  \'--tools\',\n  "memory",').replace(
                '"XDG_RUNTIME_DIR"]', '"XDG_RUNTIME_DIR",\n  "MINE",\n]'))
        name = ".config/zed/settings.json"
        home.write(name, home.read(name).replace('"env": {}', '"env": {"MINE": "1"}'))
        before = {n: home.read(n) for n in (".codex/config.toml", name)}
        check("MINE" in before[name] and "MINE" in before[".codex/config.toml"], "%r", before)
        for agent in ("codex", "zed"):
            home.connect(agent, "--yes")
        same({n: home.read(n) for n in before}, before)
        # A list that ends with a comma.
        text = before[".codex/config.toml"]
        at = text.index("]", text.index("args"))
        home.write(".codex/config.toml", text[:at] + ",\n" + text[at:])
        home.connect("codex", "--yes", "--socket", "/x.sock")
        same(arguments(home, "codex"), ["mcp", "--tools", "memory", "--start", "--socket", "/x.sock"])


def test_path_with_a_space_works_with_every_agent():
    with Home() as home, Folder() as there:
        full_home(home)
        os.mkdir(there("a b"))
        program = there("a b/koine")
        shutil.copy(KOINE, program)
        before = home.all()
        for agent in AGENTS:
            koine(home.env, "connect", agent, "--yes", "--gate", program=program)
            done = koine(home.env, "connect", agent, "--yes", "--gate", program=program)
            check("already connected" in done.out, "%s: %s", agent, done.out)
            # Another one takes its place.
            home.connect(agent, "--yes", "--gate")
            check("a b" not in home.read(SERVER[agent][0]), "%s keeps the old path", agent)
            koine(home.env, "connect", agent, "--yes", "--gate", program=program)
            koine(home.env, "connect", agent, "--yes", "--undo", program=program)
            same(home.all(), before, agent)


HAND_MADE = {
    ".claude.json": '{"a": 1, "mcpServers": {"koine":{"command":"koine" , "args":["mcp"]} }}',
    ".claude/settings.json": '{"hooks": {"Stop": [{"hooks":[{"type":"command","command":'
                             '"koine hook --timeout 3"}]}]}, "permissions":{"allow":["mcp__koine"]}}',
    ".codex/config.toml": 'a = 1\n[mcp_servers.koine] # mine\ncommand = \'koine\'\nargs = [\'mcp\']\n\n'
                          '[mcp_servers.koine.env]\nX = "1"\n\n[b]\nc = 2\n',
    ".cursor/mcp.json": '{"mcpServers": {\n"koine": {"command":"koine","args":["mcp","--start"]}}}',
    ".config/opencode/opencode.json": '{"mcp": {"koine": {"type":"local", // mine\n'
                                      '"command": ["koine","mcp"],"enabled":true,},}}',
}


def test_hand_made_entries_survive_undo():
    with Home() as home:
        full_home(home)
        for name, text in HAND_MADE.items():
            home.write(name, text)
        before = home.all()
        for agent in ("claude", "codex", "cursor", "opencode"):
            home.connect(agent, "--yes")
            home.connect(agent, "--yes", "--gate")
            home.connect(agent, "--yes", "--undo")
        same(home.all(), before)


def test_hand_made_entries_survive_undo_after_other_changes():
    with Home() as home:
        full_home(home)
        for name, text in HAND_MADE.items():
            home.write(name, text)
        for agent in ("claude", "codex", "cursor", "opencode"):
            home.connect(agent, "--yes", "--gate")
        for name in HAND_MADE:
            text = home.read(name)
            home.write(name, "new = 1\n" + text if name.endswith("toml") else
                       text.replace("{", '{"new": 1, ', 1))
        for agent in ("claude", "codex", "cursor", "opencode"):
            home.connect(agent, "--yes", "--undo")
        for name, text in HAND_MADE.items():
            same(home.read(name), "new = 1\n" + text if name.endswith("toml") else
                 text.replace("{", '{"new": 1, ', 1), name)


def test_undo_by_another_koine_is_the_identity():
    names = [SERVER[agent][0] for agent in AGENTS] + [".claude/settings.json", ".codex/hooks.json",
                                                      ".copilot/settings.json", ".cursor/hooks.json"]
    with Home() as home, Folder() as there:
        program = shutil.copy(KOINE, there("koine"))
        for text in (None, "", "\n", "{}", '{"hooks": {}}', '{\r\n "hooks": {"Stop": []}, "mcp": {\r\n} }'):
            full_home(home)
            for name in names if text is not None else []:
                home.write(name, "" if name.endswith("toml") else text)
            before = home.all()
            for agent in AGENTS:
                koine(home.env, "connect", agent, "--yes", "--gate", "--socket", "/x.sock", program=program)
                home.connect(agent, "--yes", "--undo")
            same(home.all(), before, "%r" % text)


def test_undo_takes_out_what_has_no_backup():
    with Home() as home:
        full_home(home)
        before = home.all()
        home.connect("cursor", "--yes")
        same(home.read(".cursor/mcp.json.koine-backup"),
             "koine connect made this file; koine connect --undo removes it.\n", "the mark of a created file")
        home.connect("cursor", "--yes", "--undo")
        same(home.all(), before)
        for agent in AGENTS:
            home.write(SERVER[agent][0], "" if agent == "codex" else '{"mine": 1}')
            home.connect(agent, "--yes", "--gate")
        for name in home.all():
            if name.endswith(".koine-backup"):
                os.unlink(home(name))
        connected = home.all()
        for agent in AGENTS:
            check("already connected" in home.connect(agent).out, agent)
        same(home.all(), connected)
        for agent in AGENTS:
            home.connect(agent, "--yes", "--undo")
            same("koine" in home.read(SERVER[agent][0]) if os.path.exists(home(SERVER[agent][0])) else False,
                 False, agent)
        same([n for n in home.all() if n not in before and n not in {SERVER[a][0] for a in AGENTS}], [])


def test_existing_backup_is_not_overwritten():
    with Home() as home:
        full_home(home)
        home.write(".cursor/mcp.json", '{"now": 1}')
        home.write(".cursor/mcp.json.koine-backup", "of an earlier day")
        home.connect("cursor", "--yes")
        same(home.read(".cursor/mcp.json.koine-backup"), '{"now": 1}')
        same(home.read(".cursor/mcp.json.koine-backup.1"), "of an earlier day")
        home.connect("cursor", "--yes", "--undo")
        same(home.read(".cursor/mcp.json"), '{"now": 1}')
        same(sorted(os.listdir(home(".cursor"))), ["mcp.json", "mcp.json.koine-backup.1"])


def test_undo_succeeds_although_its_backup_cannot_be_kept():
    with Home() as home:
        full_home(home)
        home.write(".cursor/mcp.json", "{}")
        home.connect("cursor", "--yes")
        home.write(".cursor/mcp.json", home.read(".cursor/mcp.json").replace("{", '{"new": 1,', 1))
        for i in range(1, 1001):  # as many as it tries
            home.write(".cursor/mcp.json.koine-backup.%d" % i, "")
        said = home.connect("cursor", "--yes", "--undo").err
        check("koine" not in home.read(".cursor/mcp.json"), "not undone")
        check("mcp.json was changed, but koine cannot rename the older backup: File exists" in said, "%s", said)


def test_hand_made_entries_survive_undo_beside_an_older_backup():
    """Also if the backup has such an entry, or the file has no entry that starts koine."""
    allowed = {".claude/settings.json": '{"permissions":{"allow":["mcp__koine"]}}'}
    for files, older in ((HAND_MADE, None), (HAND_MADE, '{"old": 1}'), (allowed, '{"old": 1}')):
        with Home() as home:
            full_home(home)
            for name, text in files.items():
                is_toml = name.endswith("toml")
                was = text.replace("mcp'", "mcp', '-v'").replace('mcp"]', 'mcp", "-v"]').replace("3", "4")
                home.write(name, text)
                home.write(name + ".koine-backup", was if older is None else "" if is_toml else older)
            home.write(".cursor/mcp.json.koine-backup", "of an earlier day")
            for agent in ("claude", "codex", "cursor", "opencode"):
                home.connect(agent, "--yes")
                home.connect(agent, "--yes", "--gate")
                home.connect(agent, "--yes", "--undo")
            for name, text in files.items():
                same(home.read(name), text, name)
            if files is HAND_MADE:
                same(home.read(".cursor/mcp.json.koine-backup.1"), "of an earlier day")


def test_entry_made_by_hand_after_an_undo_survives_the_next():
    entry = '{"mine": 1, "mcpServers": {"koine": {"command": "/usr/bin/koine", "args": ["mcp"]}}}'
    with Home() as home:
        full_home(home)
        home.write(".cursor/mcp.json", "{}")
        home.connect("cursor", "--yes")
        home.write(".cursor/mcp.json", home.read(".cursor/mcp.json").replace("{", '{"new": 1,', 1))
        home.connect("cursor", "--yes", "--undo")
        same(home.read(".cursor/mcp.json.koine-backup.1"), "{}")
        home.write(".cursor/mcp.json", entry)
        home.connect("cursor", "--yes")
        check(KOINE in home.read(".cursor/mcp.json"), "it is not connected")
        home.connect("cursor", "--yes", "--undo")
        same(home.read(".cursor/mcp.json"), entry)


# ---- what is shown ----


def test_change_shows_no_secrets_of_others():
    other = {"other": {"command": "npx", "args": ["--token", "sk-SECRET"], "env": {"KEY": "SECRET"}}}
    settings = {"z": "y" * 300, "mcpServers": other, "more": {"password": "SECRET" + "x" * 3000}}
    with Home() as home:
        full_home(home)
        for indent in (None, 2):
            home.write(".claude.json", json.dumps(settings, indent=indent))
            home.write(".codex/config.toml", "# SECRET\n[mcp_servers.other]\nenv = { K = 'SECRET' }\n"
                       "bearer = \"SECRET\" #* SECRET\n")
            for args in ((), ("--undo",)):
                for agent in ("claude", "codex"):
                    out = home.connect(agent, "--yes", *args).out
                    check("SECRET" not in out and "yyy" not in out and "*/" not in out, "%s", out)
                    check(KOINE in out and '"mcp"' in out, "koine's own is not shown: %s", out)
                    check(all(len(line) < 400 for line in out.splitlines()), "%s", out)


def test_change_shows_no_secrets_within_koines_own_entry():
    with Home() as home:
        full_home(home)
        home.connect("cursor", "--yes")
        name, where = SERVER["cursor"]
        mine = load(home, name)
        mine[where]["koine"].update(env={"KEY": "SECRET"})
        home.write(name, json.dumps(mine))
        out = home.connect("cursor", "--yes", "--undo").out
        check("SECRET" not in out and KOINE in out and "KEY" in out, "%s", out)
        home.write(".codex/config.toml", 'a = """a quote: """"\nb = "SECRET"\n'
                   "c = '''one: ''''\nd = 'SECRET'\n[mcp_servers.koine]\n"
                   'command = "/old/koine"\nenv = { KEY = "SECRET" }\nargs = ["mcp"]\n')
        for args in ((), ("--undo",)):
            out = home.connect("codex", "--yes", *args).out
            check("SECRET" not in out and "/old/koine" in out and KOINE in out, "%s", out)


def test_one_sentence_says_what_is_added():
    with Home() as home:
        full_home(home)
        out = home.connect("claude", "--dry-run").out
        first = out.splitlines()[0]
        check(first.startswith("This adds koine mcp to Claude Code") and "PermissionRequest" in first
              and "PreToolUse" not in first, "%r", first)
        home.connect("claude", "--yes")
        first = home.connect("claude", "--yes", "--gate").out.splitlines()[0]
        check("of Claude Code, and adds koine hook as a hook for PreToolUse, Elicitation:" in first, "%r", first)
        first = home.connect("claude", "--yes", "--socket", "/x.sock").out.splitlines()[0]
        check(first.endswith("of Claude Code:"), "%r", first)
        home.write(".codex/config.toml", HAND_MADE[".codex/config.toml"])
        first = home.connect("codex", "--yes").out.splitlines()[0]
        check(first.endswith("of Codex, and adds koine hook as a hook for PermissionRequest:"), "%r", first)
        check(home.connect("claude", "--yes", "--undo").out.startswith("This removes koine"), "undo")


def test_koined_that_is_not_running_is_reported():
    with Home() as home, Daemon() as d:
        full_home(home)
        check("koined is not running. Start it: koine daemon start" in
              home.connect("claude", "--yes").out, "not said")
        check("koined is not running" in home.connect("claude", "--yes").out, "not said again")
        at = ("--socket", os.path.join(d.root, "koine.sock"))
        check("not running" not in home.connect("claude", "--yes", *at).out, "it runs")
        same(json.loads(home.connect("claude", "--yes", "--json", *at).out)["koined_runs"], True)


# ---- nothing else is touched ----


def test_connecting_twice_changes_nothing_and_undo_is_the_identity():
    with Home() as home:
        full_home(home)
        home.write(".claude/settings.json", SETTINGS, 0o640)
        home.write(".claude.json", '{"numStartups":3,"mcpServers":{}}')
        home.write(".codex/config.toml", TOML)
        home.write(".codex/hooks.json", "{}")
        home.write(".gemini/settings.json", '\ufeff// c\n{\n    "a": [1, 2,], // é\n}')
        home.write(".config/zed/settings.json", "// only a comment\n")
        before = home.all()
        for agent in AGENTS:
            home.connect(agent, "--yes", "--gate")
        connected = home.all()
        same(stat.S_IMODE(connected[".claude/settings.json"][1]), 0o640, "mode")
        same(connected[".claude/settings.json.koine-backup"], before[".claude/settings.json"])
        check(connected[".claude/settings.json"][0].count("\n") ==
              connected[".claude/settings.json"][0].count("\r\n"), "line ends are mixed")
        for agent in AGENTS:
            check("already connected" in home.connect(agent, "--yes", "--gate").out, agent)
        same(home.all(), connected)
        for agent in AGENTS:
            home.connect(agent, "--yes", "--undo")
        same(home.all(), before)
        for agent in AGENTS:
            check("not connected" in home.connect(agent, "--yes", "--undo").out, agent)
        same(home.all(), before)


def test_undo_leaves_what_others_have_added():
    with Home() as home:
        full_home(home)
        home.write(".claude/settings.json", SETTINGS)
        home.write(".codex/config.toml", TOML)
        home.connect("claude", "--yes")
        home.connect("codex", "--yes")
        text = home.read(".claude/settings.json")
        home.write(".claude/settings.json", text.replace('"model"', '"mine": {"x": 1}, "model"'))
        home.write(".codex/config.toml", home.read(".codex/config.toml") + "\n[mine]\nx = 1\n")
        home.connect("claude", "--yes", "--undo")
        home.connect("codex", "--yes", "--undo")
        same(home.read(".claude/settings.json"),
             SETTINGS.replace('"model"', '"mine": {"x": 1}, "model"'))
        same(home.read(".codex/config.toml"), TOML + "\n\n[mine]\nx = 1\n")


def test_a_hook_of_somebody_else_in_cursors_file_keeps_its_version():
    with Home() as home:
        full_home(home)
        home.connect("cursor", "--yes", "--gate")
        hooks = load(home, ".cursor/hooks.json")
        hooks["hooks"]["stop"] = [{"command": "mine"}]
        home.write(".cursor/hooks.json", json.dumps(hooks))
        home.connect("cursor", "--yes", "--undo")
        same(load(home, ".cursor/hooks.json"),
             {"version": 1, "hooks": {"stop": [{"command": "mine"}]}})


def random_toml(roll):
    values = ["1", '"a # b"', "'[mcp_servers.koine]'", "[ 1, # one\n  2,\n]", "1979-05-27 07:32:00Z",
              '"""\n[mcp_servers.koine]\ncommand = \\""""', "'''\n[x]\n'''", "0xdead_beef", "true",
              '{ a = 1, b = { c = "}" } }', "[{ a = 1 }, { a = 2 }]", "-inf", "1e5"]
    out = ""
    for i in range(roll.randrange(5)):
        if i:
            out += roll.choice(["[[list]]\n", "[ t%d . \"b.c\" ] # t\n", "[t%d.'x y']\n"]).replace(
                "%d", str(i))
        for k in range(roll.randrange(4)):
            out += roll.choice(["# [remark]\n", "", "\n"])
            out += roll.choice(["k%d = ", "  \"k\".'l'.m%d\t=  "]) % k + roll.choice(values)
            out += roll.choice(["\n", " # why\n"])
    out += roll.choice(["", "[mcp_servers.other]\ncommand = 'x'\n", "[mcp_servers]\n"])
    out = out.rstrip("\n") + roll.choice(["", "\n", "\n\n"])
    return out.replace("\n", roll.choice(["\n", "\n", "\r\n"]))


def test_any_toml_file_means_the_same_and_more():
    with Home() as home:
        full_home(home)
        for seed in range(60):
            text = random_toml(random.Random(seed))
            want = tomllib.loads(text)
            home.write(".codex/config.toml", text)
            home.connect("codex", "--yes")
            check(home.read(".codex/config.toml").startswith(text), "seed %d: changed", seed)
            got = tomllib.loads(home.read(".codex/config.toml"))
            server = got["mcp_servers"].pop("koine")
            same((server["command"], server["args"][0]), (KOINE, "mcp"), "seed %d" % seed)
            if not got["mcp_servers"] and "mcp_servers" not in want:
                del got["mcp_servers"]
            same(repr(got), repr(want), "seed %d" % seed)
            home.connect("codex", "--yes", "--undo")
            same(home.read(".codex/config.toml"), text, "seed %d" % seed)


# ---- asking ----


def test_nothing_is_written_unasked():
    with Home() as home:
        full_home(home)
        before = home.all()
        out = home.connect("claude", "--dry-run").out
        check("+" in out and "PermissionRequest" in out and ".claude.json" in out, "%r", out)
        done = home.connect("claude", code=64)
        check("--yes" in done.err, "%r", done.err)
        done = home.connect("claude", "--json", code=64)
        same(done.out, "")
        got = json.loads(home.connect("claude", "--json", "--dry-run").out)
        same((got["agent"], got["changed"], got["written"]), ("claude", True, False))
        same(home.all(), before)


def test_a_terminal_is_asked():
    with Home() as home:
        full_home(home)
        before = home.all()
        with Terminal(home.env, "connect", "claude") as t:
            t.expect("Write these changes? [y/N] ")
            t.type("n\r")
            t.expect("No changes written")
            t.leave(1)
        same(home.all(), before)
        with Terminal(home.env, "connect", "claude") as t:
            t.expect("Write these changes? [y/N] ")
            t.type("y\r")
            t.expect("wrote")
            t.leave(0)
        check(os.path.exists(home(".claude.json")), "nothing was written")


def test_a_file_that_changes_meanwhile_is_left_alone():
    with Home() as home:
        full_home(home)
        home.write(".claude/settings.json", SETTINGS)
        for late in ("{}", None):
            with Terminal(home.env, "connect", "cursor") as t:
                t.expect("Write these changes? [y/N] ")
                if late:
                    home.write(".cursor/mcp.json", late)
                else:
                    os.unlink(home(".cursor/mcp.json"))
                before = home.all()
                t.type("y\r")
                t.expect("another program changed the file")
                t.leave(65)
            same(home.all(), before, "after %r" % late)


# ---- what is refused ----


def refused(home, agent, words, code=65, *args):
    before = home.all()
    done = home.connect(agent, "--yes", *args, code=code)
    check(words in done.err, "%r lacks %r", done.err, words)
    same(home.all(), before, words)


def test_files_that_cannot_be_edited_are_refused():
    with Home() as home:
        full_home(home)
        for text, words in (('{\n"a": }', "line 2: invalid JSON"), ("[]", "line 1: the file"),
                            ('{"permissions":\n"x"}', "line 2: permissions is not an object"),
                            ('{"hooks":{},"hooks":{}}', "duplicate key"),
                            ('{"hooks":{"PermissionRequest":1}}', "is not a list"),
                            ("{}\0", "invalid JSON")):
            home.write(".claude/settings.json", text)
            refused(home, "claude", words)
        for text, words in (("a = [", "invalid TOML"), ("mcp_servers = 1", "line 1: mcp_servers"),
                            ("[mcp_servers]\nkoine.command = 'x'", "line 2: mcp_servers.koine"),
                            ("[[mcp_servers]]", "an array of tables"),
                            ("[mcp_servers.koine]\ncommand = 'mine'", "already has a different value")):
            home.write(".codex/config.toml", text)
            refused(home, "codex", words)
        with open(home(".gemini/settings.json"), "wb") as f:
            f.truncate((16 << 20) + 1)
        done = home.connect("gemini", "--yes", code=65)
        check("larger than" in done.err, "%r", done.err)


def test_what_is_not_a_file_of_ours_is_refused():
    with Home() as home, Folder() as outside:
        full_home(home)
        with open(outside("x.json"), "w") as f:
            f.write("{}")
        name = ".cursor/mcp.json"
        os.symlink(outside("x.json"), home(name))
        refused(home, "cursor", "symbolic link to a path outside", 77)
        os.unlink(home(name))
        os.symlink(home("nowhere"), home(name))
        refused(home, "cursor", "broken symbolic link", 77)
        os.unlink(home(name))
        os.mkdir(home(name))
        refused(home, "cursor", "not a regular file", 77)
        os.rmdir(home(name))
        home.write(name, "{}", 0o444)
        refused(home, "cursor", "read-only", 77)
        os.unlink(home(name))
        os.rmdir(home(".cursor"))
        os.symlink(outside.path, home(".cursor"))
        refused(home, "cursor", "symbolic link to a path outside", 77)
        same(os.listdir(outside.path), ["x.json"])


def test_a_link_within_the_home_stays_a_link():
    with Home() as home:
        full_home(home)
        home.write("dots/claude.json", SETTINGS)
        os.symlink("../dots/claude.json", home(".claude/settings.json"))
        home.connect("claude", "--yes")
        check(os.path.islink(home(".claude/settings.json")), "the link is gone")
        check("PermissionRequest" in home.read("dots/claude.json"), "it was not written")
        home.connect("claude", "--yes", "--undo")
        same(home.read("dots/claude.json"), SETTINGS)


def test_somebody_elses_file_or_home_is_refused():
    if os.getuid() != 0:
        raise Skip("only root can give files away")
    with Home() as home:
        full_home(home)
        os.chown(home.write(".cursor/mcp.json", "{}"), 12345, -1)
        refused(home, "cursor", "belongs to user 12345", 77)
        os.chown(home.path, 12345, -1)
        refused(home, "claude", "belongs to user 12345: run koine as that user", 77)


def test_agents_that_are_not_there_are_named():
    with Home() as home:
        done = home.connect("claude", "--yes", code=69)
        check("not installed" in done.err and home(".claude") in done.err, "%r", done.err)
        done = home.connect("cluade", code=64)
        check("did you mean claude" in done.err, "%r", done.err)
        done = home.connect("nobody-knows", code=64)
        check("unknown agent" in done.err, "%r", done.err)
        done = koine({k: v for k, v in home.env.items() if k != "HOME"}, "connect", "claude",
                     "--yes", "--undo", code=64)
        check("HOME" in done.err, "%r", done.err)


# ---- projects ----


def test_a_projects_files_have_nothing_of_this_machine():
    with Home() as home, Folder() as project:
        for agent in WITH_PROJECTS:
            home.connect(agent, "--yes", "--gate", "--project=" + project.path,
                         KOINE_SOCKET="/secret/k.sock")
        found = []
        for folder, _, names in os.walk(project.path):
            for name in names:
                path = os.path.join(folder, name)
                if not name.endswith(".koine-backup"):
                    found.append(os.path.relpath(path, project.path))
                with open(path) as f:
                    text = f.read()
                check(os.path.dirname(KOINE) not in text and "/secret" not in text and
                      home.path not in text and "token" not in text.lower(), "%s: %s", name, text)
                same(stat.S_IMODE(os.stat(path).st_mode), 0o644, name)
        same(sorted(found), [".claude/settings.json", ".codex/config.toml", ".codex/hooks.json",
                             ".cursor/hooks.json", ".cursor/mcp.json", ".gemini/settings.json",
                             ".mcp.json", ".vscode/mcp.json", "opencode.json"])
        same(home.all(), {}, "the home")
        listed = json.loads(home.connect("--json", "--project=" + project.path).out)
        same([r["agent"] for r in listed if r["connected"] == "yes"], list(WITH_PROJECTS))
        for agent in WITH_PROJECTS:
            home.connect(agent, "--yes", "--undo", "--project=" + project.path)
        same([n for _, _, names in os.walk(project.path) for n in names], [])
        check("has no documented settings file for projects" in home.connect("zed", "--yes", "--project=" + project.path,
                                                      code=64).err, "zed")
        check("is your home" in home.connect("claude", "--yes", "--project=" + home.path,
                                             code=64).err, "home")
        home.connect("claude", "--yes", "--project=" + project("none"), code=66)


# ---- the list ----


def test_the_list_shows_agents_versions_and_what_is_connected():
    with Home() as home:
        same(home.connect().out, "No supported agents found.\n")
        home.program("claude", "echo '2.1.325 (Claude Code)'; echo more")
        home.program("gemini", "exec sleep 1000")
        home.program("codex", "exit 3")
        home.program("opencode", "printf '\\033[2Jx\\n'")
        os.mkdir(home(".cursor"))
        home.connect("claude", "--yes")
        home.connect("cursor", "--yes")
        home.write(".gemini/settings.json", "{")
        rows = {r["agent"]: r for r in json.loads(home.connect("--json").out)}
        same(sorted(rows), sorted(AGENTS))
        same(rows["claude"]["version"], "2.1.325 (Claude Code)")
        same([rows[a].get("version") for a in ("gemini", "codex", "zed")], [None] * 3)
        same([rows[a]["connected"] for a in AGENTS],
             ["yes", "no", "unreadable", "no", "no", "yes", "no", "no"])
        same([rows[a]["measured"] for a in AGENTS], [True] * 5 + [False] * 3)
        done = home.connect()
        check("line 1: invalid JSON" in done.err, "%r", done.err)
        check("\033" not in done.out, "%r", done.out)
        check("zed" not in done.out and "2.1.325" in done.out, "%r", done.out)
        # Half of it is gone.
        home.write(".claude/settings.json", "{}")
        rows = {r["agent"]: r for r in json.loads(home.connect("--json").out)}
        same(rows["claude"]["connected"], "partly")


# ---- it works ----


def test_the_server_that_was_written_answers():
    with Home() as home, Daemon() as d:
        full_home(home)
        for agent in ("claude", "codex", "opencode"):
            home.connect(agent, "--yes", "--socket", os.path.join(d.root, "koine.sock"))
            name, member = SERVER[agent]
            server = load(home, name)[member]["koine"]
            line = server["command"]
            if isinstance(line, str):
                line = [line] + server["args"]
            # As little environment as an agent may leave.
            asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"}}}
            process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env={"HOME": home.path}, cwd=home.path)
            try:
                process.stdin.write(json.dumps(asked).encode() + b"\n")
                process.stdin.flush()
                same(json.loads(process.stdout.readline())["id"], 1, agent)
            finally:
                process.stdin.close()
                process.wait(PATIENCE)
                process.stdout.close()


def test_the_hook_that_was_written_decides():
    with Home() as home, Daemon() as d, d.connect() as c:
        full_home(home)
        os.mkdir(home("a b"))
        shutil.copy(KOINE, home("a b/koine"))
        koine(home.env, "connect", "claude", "--yes", "--socket",
              os.path.join(d.root, "koine.sock"), program=home("a b/koine"))
        [group] = load(home, ".claude/settings.json")["hooks"]["PermissionRequest"]
        told = {"session_id": "s", "cwd": "/w", "hook_event_name": "PermissionRequest",
                "tool_name": "Bash", "tool_input": {"command": "ls"}}
        process = subprocess.Popen(["/bin/sh", "-c", group["hooks"][0]["command"]],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env={"HOME": home.path, "PATH": "/usr/bin:/bin"})
        process.stdin.write(json.dumps(told).encode())
        process.stdin.close()
        [asked] = wait_until(lambda: c.call("approval.list", {"status": "pending"})["approvals"],
                             "the question")
        c.call("approval.decide", {"id": asked["id"], "decision": "deny", "comment": "not now"})
        answer = json.loads(process.stdout.read())
        process.wait(PATIENCE)
        process.stdout.close()
        same(answer["hookSpecificOutput"]["decision"], {"behavior": "deny", "message": "not now"})


if __name__ == "__main__":
    main(globals())
