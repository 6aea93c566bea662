"""The llama.cpp server of the ``xllamacpp`` wheel, as one process: ``_llamacpp.py MODEL.gguf PORT``.

The wheel holds the prebuilt C++ server but no command to start it. This launcher is that command. It is run by
``real_server.py`` with the Python of the engine's own environment, so it imports nothing of this project.
"""

import argparse
import importlib
import signal
import sys
import threading
from types import FrameType
from typing import Any


def build_parameters(library: Any, options: argparse.Namespace) -> Any:
    """Translate our options into the engine's parameter object; everything not named here keeps its default."""
    parameters = library.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options.port
    parameters.n_ctx = options.context  # Shared out evenly: one request can fill context / slots tokens.
    parameters.n_parallel = options.slots
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.use_jinja = True  # The chat template that the model file carries, rendered as its makers meant it.
    parameters.endpoint_metrics = True
    parameters.ui = False
    parameters.offline = True
    return parameters


def main() -> None:
    """Serve until SIGTERM or SIGINT; the server's threads live inside this process and end with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("port", type=int)
    parser.add_argument("--alias", default="kimi-k3.1-pro", help="the model name requests must use")
    parser.add_argument("--context", type=int, default=16384)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # Imported by name: the type checker of this project must not need the engine's wheel.
    library = importlib.import_module("xllamacpp")
    server = library.Server(build_parameters(library, options))
    print("listening on", server.listening_address, flush=True)
    stopped.wait()
    del server
    sys.exit(0)


if __name__ == "__main__":
    main()
