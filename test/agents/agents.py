"""
The agents, each as its users get it: what it is told so that it talks to the model of the tests and to
nobody else, what its tools are called, and how it is asked for a turn.

Some are here more than once: a class is one agent and one way in which it asks before a command runs.
"""
import base64
import json
import os
import signal
import socket
import subprocess
import threading
import urllib.request

from harness import KOINE, check, wait_until
from model import Call, Written
from world import FACT, PACKAGES, PATIENCE, QUESTION, Run, Screen, node, package


class Agent:
    flags = ()  # of koine connect, for approvals
    has_dialog = False  # at the same time as koine asks
    edits = "work/new.txt"  # what it is asked to make
    port_is_held = False  # by a service manager
    rewrites = ()  # files of its own that it writes when it runs

    def environment(self, world):
        return {}

    def settings(self, world):
        """Of koined."""
        return []

    def connect(self, world):
        """So that commands are asked about."""
        world.connect(*self.flags)
        if world.seconds:
            world.replace(self.files_of_koine, "--timeout 590", "--timeout %d" % world.seconds)
            self.accept(world)

    def accept(self, world):
        """What a person does when koine's hooks were changed by hand."""

    def start(self, world, prompt):
        return Run([self.name, *self.turn, prompt], world.env, world.folder)

    def memory_add(self):
        return Call(self.tools + "memory_add", content=FACT)

    def memory_search(self):
        return Call(self.tools + "memory_search", query=QUESTION)

    def ask_human(self):
        return Call(self.tools + "ask_human", question="Which colour?")


# ---- Claude Code ----


class Claude(Agent):
    """By PermissionRequest: where it would have asked by itself."""
    name = "claude"
    way = "claude"
    files_of_koine = (".claude.json", ".claude/settings.json")
    rewrites = (".claude.json",)
    tools = "mcp__koine__"
    listed = "✔ Connected"
    turn = ("-p",)
    allowed = "Bash(ls)"
    mode = "default"
    refusal = "needs approval"

    @staticmethod
    def program():
        return [package("@anthropic-ai/claude-code-linux-*/claude")]

    def environment(self, world):
        return {"ANTHROPIC_BASE_URL": world.model.url, "ANTHROPIC_API_KEY": "scripted",
                "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_TMPDIR": world("tmp")}

    def files(self, world):
        known = {"hasCompletedOnboarding": True, "theme": "dark",
                 "customApiKeyResponses": {"approved": ["scripted"], "rejected": []},
                 "projects": {world.folder: {"hasTrustDialogAccepted": True}}}
        return {".claude.json": json.dumps(known, indent=2) + "\n",
                ".claude/settings.json": CLAUDE_SETTINGS % (self.mode, self.allowed)}

    @staticmethod
    def shell(command):
        return Call("Bash", command=command, description="Does it")

    @staticmethod
    def edit(path):
        return Call("Write", file_path=path, content="Hello.\n")

    def unanswered(self, world, run, marker):
        """Without a dialog it says no by itself."""
        run.finish()
        check(not os.path.exists(marker), "it ran")
        check(self.refusal in world.model.told("run")[0], "the model was told %r",
              world.model.told("run"))


CLAUDE_SETTINGS = """\
{
\t"model": "sonnet",
\t"permissions": {"defaultMode": "%s", "allow": ["%s"]}
}"""


class ClaudeScreen(Claude):
    """By PermissionRequest, on a terminal: its own dialog is there at the same time."""
    way = "claude-screen"
    has_dialog = True

    def start(self, world, prompt):
        return Screen([self.name, prompt], world)

    @staticmethod
    def allow_at_dialog(run):
        run.wait_shown(DIALOG)
        run.press(b"\r")

    def unanswered(self, world, run, marker):
        """The dialog stays."""
        wait_until(lambda: world.ends() == ["expired"], "the end of the question", PATIENCE)
        check(not os.path.exists(marker), "it ran")
        self.allow_at_dialog(run)
        run.finish()
        check(os.path.exists(marker), "it did not run: %r", world.model.told("run"))


DIALOG = b"Doyouwanttoproceed?"


class ClaudeOthers(Claude):
    """With another MCP server, all of whose tools it may use."""
    way = "claude-gate"
    allowed = "mcp__other"


class ClaudeAuto(ClaudeScreen):
    """By PreToolUse, on a terminal, in the mode in which a model decides what it may do."""
    way = "claude-auto"
    has_dialog = False
    flags = ("--gate",)
    mode = "auto"

    def unanswered(self, world, run, marker):
        """The dialog asks, which in this mode is not there otherwise, and so does koine beside it."""
        run.wait_shown(DIALOG)
        wait_until(lambda: len(world.ends()) == 2, "another question", PATIENCE)
        check(not os.path.exists(marker), "it ran")


class ClaudeGate(Claude):
    """By PreToolUse: also where it would not have asked."""
    way = "claude-gate"
    flags = ("--gate",)
    allowed = "Bash(touch *)\", \"Write"
    refusal = "timed out waiting for an answer"


class ClaudeHttp(Claude):
    """By PermissionRequest, over HTTP: koined is the hook itself."""
    way = "claude-http"
    flags = ("--http",)
    port_is_held = True

    def settings(self, world):
        return ["--set", "listen.mcp=on"]

    def connect(self, world):
        world.connect(*self.flags)
        if world.seconds:
            world.replace(self.files_of_koine, '"Koine-Timeout": "590"',
                          '"Koine-Timeout": "%d"' % world.seconds)


class ClaudePrompt(Claude):
    """By an MCP tool that it is told to ask; koine is put in by hand, and there is no hook."""
    way = "claude-prompt"
    turn = ("--permission-prompt-tool", "mcp__koine__permission_prompt", "-p")
    refusal = "timed out waiting for an answer"

    def settings(self, world):
        return ["--set", "approval.timeout=%d" % world.seconds]

    def connect(self, world):
        world.run("mcp", "add", "--scope", "user", "koine", "--", KOINE, "mcp")


# ---- Codex ----


class Codex(Agent):
    """
    By PreToolUse, in `codex exec`, which asks nobody by itself. This model writes programs that call
    the tools.
    """
    name = "codex"
    way = "codex-gate"
    model = "gpt-6.1-sol"
    flags = ("--gate",)
    files_of_koine = (".codex/config.toml", ".codex/hooks.json")
    tools = "mcp__koine/"
    listed = "enabled"
    turn = ("exec", "--sandbox", "workspace-write")

    @staticmethod
    def program():
        return [node(), package("@openai/codex/bin/codex.js")]

    def files(self, world):
        return {".codex/config.toml": CODEX_SETTINGS % (self.model, world.model.url, world.folder)}

    def accept(self, world):
        with AppServer(world) as server:
            server.trust_hooks()

    @staticmethod
    def shell(command):
        return Written("exec", "await tools.exec_command(%s);" % json.dumps({"cmd": command}))

    @staticmethod
    def edit(path):
        return Written("exec", "await tools.apply_patch(%s);" % json.dumps(PATCH % path))

    @staticmethod
    def unanswered(world, run, marker):
        """Silence is no objection: it does what it would have done without a gate."""
        run.finish()
        check(os.path.exists(marker), "it did not run: %r", world.model.told("run"))


PATCH = """\
*** Begin Patch
*** Add File: %s
+Hello.
*** End Patch
"""

CODEX_SETTINGS = """\
# mine
model = "%s"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted" # ours
base_url = "%s/v1"
wire_api = "responses"

[analytics]
enabled = false

[projects."%s"]
trust_level = "trusted\""""


class CodexServer(Codex):
    """
    By PermissionRequest, where a client such as its own screen is there to be asked. This model calls
    the tools one by one.
    """
    way = "codex"
    model = "gpt-5.5"
    flags = ()
    edits = "new.txt"  # not where its sandbox lets it write anyway

    def start(self, world, prompt):
        return AppServer(world, prompt)

    @staticmethod
    def shell(command):
        return Call("exec_command", cmd=command, sandbox_permissions="require_escalated",
                    justification="May I?")

    @staticmethod
    def edit(path):
        return Written("apply_patch", PATCH % path)

    @staticmethod
    def unanswered(world, run, marker):
        """Its own dialog asks."""
        wait_until(lambda: run.asked, "a question to the client", PATIENCE)
        check(not os.path.exists(marker), "it ran")
        run.answer("decline")
        run.finish()
        check(not os.path.exists(marker), "it ran")


class AppServer:
    """`codex app-server` with a client: what Codex's own screen is built on. For a `with`."""

    def __init__(self, world, prompt=None):
        self.world = world
        self.prompt = prompt
        self.asked = []
        self.answers = {}
        self.completed = threading.Event()
        self.ended = threading.Event()

    def __enter__(self):
        self.process = subprocess.Popen(["codex", "app-server"], env=self.world.env,
                                        cwd=self.world.folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            self.call("initialize", clientInfo={"name": "koine", "version": "1"})
            self.send(method="initialized")
            if self.prompt:
                self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.reader.join(PATIENCE)
            self.process.stdout.close()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self.answers[message["id"]] = message
            elif "id" in message:
                self.asked.append(message)
            elif message["method"] == "turn/completed":
                self.completed.set()
        self.ended.set()

    def send(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, **params):
        id = len(self.answers) + 1
        self.send(id=id, method=method, params=params)
        wait_until(lambda: id in self.answers or self.ended.is_set(), "an answer to " + method,
                   PATIENCE)
        check("result" in self.answers.get(id, {}), "%s: %r", method, self.answers.get(id))
        return self.answers[id]["result"]

    def begin(self):
        thread = self.call("thread/start", cwd=self.world.folder, approvalPolicy="on-request",
                           sandbox="workspace-write")["thread"]["id"]
        self.call("turn/start", threadId=thread, input=[{"type": "text", "text": self.prompt}])

    def answer(self, decision):
        self.send(id=self.asked[-1]["id"], result={"decision": decision})

    def finish(self):
        check(self.completed.wait(PATIENCE), "the turn did not end; asked: %r", self.asked)

    def trust_hooks(self):
        """What /hooks does."""
        hooks = self.call("hooks/list", cwds=[self.world.folder])["data"][0]["hooks"]
        for hook in hooks:
            self.call("config/batchWrite", edits=[{
                "keyPath": "hooks.state", "mergeStrategy": "upsert",
                "value": {hook["key"]: {"trusted_hash": hook["currentHash"]}}}])


# ---- Gemini CLI ----


class Gemini(Agent):
    """By BeforeTool; its own dialog is off, since a hook cannot answer it."""
    name = "gemini"
    way = "gemini-gate"
    flags = ("--gate",)
    files_of_koine = (".gemini/settings.json",)
    tools = "mcp_koine_"
    listed = "Connected"
    turn = ("--yolo", "-p")

    @staticmethod
    def program():
        return [node(), package("@google/gemini-cli/bundle/gemini.js")]

    def environment(self, world):
        return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": world.model.url,
                "GEMINI_MODEL": "gemini-2.5-pro", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def files(self, world):
        return {".gemini/settings.json": GEMINI_SETTINGS}

    @staticmethod
    def shell(command):
        return Call("run_shell_command", command=command, description="Does it")

    @staticmethod
    def edit(path):
        return Call("write_file", file_path=path, content="Hello.\n")

    @staticmethod
    def unanswered(world, run, marker):
        """Without a yes it is no: there is no dialog that could ask."""
        run.finish()
        check(not os.path.exists(marker), "it ran")
        check("timed out waiting for an answer" in world.model.told("run")[0], "the model was told %r",
              world.model.told("run"))


GEMINI_SETTINGS = """\
{
  // mine
  "general": {
    "enableAutoUpdate": false,
    "enableAutoUpdateNotification": false
  },
  "privacy": {
    "usageStatisticsEnabled": false
  },
  "security": {
    "auth": {
      "selectedType": "gemini-api-key"
    }
  },
  "telemetry": {"enabled":   false}
}"""


# ---- opencode ----


class Opencode(Agent):
    """Its server, whose client koined is."""
    name = "opencode"
    way = "opencode"
    files_of_koine = (".config/opencode/opencode.json",)
    tools = "koine_"
    listed = "connected"
    turn = ("run",)

    @staticmethod
    def program():
        return [package("opencode-linux-*/bin/opencode")]

    def environment(self, world):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}

    def files(self, world):
        return {".config/opencode/opencode.json": OPENCODE_SETTINGS % world.model.url}

    @staticmethod
    def shell(command):
        return Call("bash", command=command, description="Does it")

    @staticmethod
    def edit(path):
        return Call("write", filePath=path, content="Hello.\n")


class OpencodeServer(Opencode):
    has_dialog = True

    def settings(self, world):
        with socket.create_server(("127.0.0.1", 0)) as s:
            world.port = s.getsockname()[1]
        world.write("opencode.password", PASSWORD + "\n", 0o600)
        return ["--set", "approval.timeout=%d" % world.seconds,
                "--set", "agent-server.opencode.url=http://127.0.0.1:%d" % world.port,
                "--set", "agent-server.opencode.password_file=" + world("opencode.password")]

    def environment(self, world):
        return dict(super().environment(world), OPENCODE_SERVER_PASSWORD=PASSWORD)

    def connect(self, world):
        world.connect()

    def start(self, world, prompt):
        return Served(world, prompt)

    @staticmethod
    def allow_at_dialog(run):
        [asked] = run.call("GET", "/permission")
        run.call("POST", "/permission/%s/reply" % asked["id"], reply="once")

    def unanswered(self, world, run, marker):
        """opencode's own dialog waits."""
        wait_until(lambda: world.ends() == ["expired"], "the end of the question", PATIENCE)
        check(not os.path.exists(marker), "it ran")
        self.allow_at_dialog(run)
        run.finish()
        check(os.path.exists(marker), "it did not run: %r", world.model.told("run"))


PASSWORD = "scripted-password"


class Served:
    """`opencode serve`, and a prompt. For a `with`."""

    def __init__(self, world, prompt):
        self.world = world
        self.prompt = prompt

    def __enter__(self):
        world = self.world
        self.run = Run(["opencode", "serve", "--port", str(world.port)], world.env, world.folder)
        try:
            wait_until(lambda: '"connected"' in world.koine("call", "agent.server.list"),
                       "koined at opencode's server", PATIENCE)
            session = self.call("POST", "/session")["id"]
            self.turn = threading.Thread(target=self.ask, args=(session,), daemon=True)
            self.turn.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        os.killpg(self.run.process.pid, signal.SIGTERM)
        self.run.process.wait(PATIENCE)
        self.run.__exit__()

    def call(self, method, path, **body):
        word = base64.b64encode(("opencode:" + PASSWORD).encode()).decode()
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (self.world.port, path), method=method,
            data=json.dumps(body).encode() if method == "POST" else None,
            headers={"Authorization": "Basic " + word, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def ask(self, session):
        self.call("POST", "/session/%s/message" % session,
                  parts=[{"type": "text", "text": self.prompt}])

    def finish(self):
        self.turn.join(PATIENCE)
        check(not self.turn.is_alive(), "the turn did not end")


OPENCODE_SETTINGS = """\
{
  // mine
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false,
  "share": "disabled",
  "model": "scripted/scripted",
  "small_model": "scripted/scripted",
  "enabled_providers": ["scripted"],
  "permission": {"bash": "ask", "edit": "ask"},
  "provider": {
    "scripted": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "%s/v1", "apiKey": "scripted"},
      "models": {"scripted": {}},
    },
  },
}
"""


# ---- GitHub Copilot CLI ----


class Copilot(Agent):
    """By preToolUse; -p cannot ask, so it is allowed everything that koine lets pass."""
    name = "copilot"
    way = "copilot-gate"
    flags = ("--gate",)
    files_of_koine = (".copilot/mcp-config.json", ".copilot/settings.json")
    tools = "koine-"
    listed = "koine (local)"
    turn = ("--allow-tool", "koine", "--allow-tool", "shell", "--allow-tool", "write",
            "--allow-all-paths", "-p")
    matcher = '"matcher": "bash|write_bash|create|edit|apply_patch",'

    @staticmethod
    def program():
        return [package("@github/copilot-linux-*/copilot")]

    def environment(self, world):
        # It unpacks itself, which takes 230 MB, once for all tests.
        return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": world.model.url + "/v1",
                "COPILOT_PROVIDER_API_KEY": "scripted", "COPILOT_MODEL": "scripted",
                "COPILOT_AUTO_UPDATE": "false",
                "COPILOT_CACHE_HOME": os.path.join(os.path.dirname(PACKAGES), "copilot-cache")}

    def files(self, world):
        return {".copilot/settings.json": COPILOT_SETTINGS % world.folder}

    @staticmethod
    def shell(command):
        return Call("bash", command=command, description="Does it", mode="sync", initial_wait=30)

    @staticmethod
    def edit(path):
        return Call("create", path=path, file_text="Hello.\n")

    @staticmethod
    def unanswered(world, run, marker):
        """It would ask, and cannot."""
        run.finish()
        check(not os.path.exists(marker), "it ran")
        check("timed out waiting for an answer" in world.model.told("run")[0], "the model was told %r",
              world.model.told("run"))


COPILOT_SETTINGS = """\
{
  // mine
  "trustedFolders": ["%s"]
}
"""

HTTP = ClaudeHttp()
OTHERS = ClaudeOthers()
AGENTS = (Claude(), CodexServer(), Gemini(), Opencode(), Copilot())
# Those whose questions koine answers, each in every way that it asks.
ASKING = (Claude(), ClaudeScreen(), ClaudeGate(), ClaudeAuto(), HTTP, ClaudePrompt(), CodexServer(), Codex(), Gemini(), OpencodeServer(),
          Copilot())
