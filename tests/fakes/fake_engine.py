"""A stand-in for vLLM: the same command line, a tiny HTTP server, and processes that cling to life.

Its own options come first and end with `--`; what follows is what the lab gave to the engine.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main() -> None:
    own, theirs = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    options, engine = own_options(own), engine_options(theirs)
    register(options.pids)
    if options.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.clinging:
        start_clinging_processes(options.pids)
    if options.print:
        sys.stderr.write(options.print.read_text("utf-8"))
        sys.stderr.flush()
    if options.exit is not None:
        sys.exit(options.exit)
    if options.silent:
        signal.pause()
    serve(options, engine)


def own_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pids", type=Path, required=True, help="every process adds its pid here")
    parser.add_argument("--deaf", action="store_true", help="ignore TERM")
    parser.add_argument("--clinging", action="store_true", help="start the three descendants")
    parser.add_argument("--print", type=Path, help="a log to print at the start")
    parser.add_argument("--exit", type=int, help="end with this code at once")
    parser.add_argument("--silent", action="store_true", help="never open the port")
    parser.add_argument("--health", type=Path, help="a file: what /health answers")
    parser.add_argument("--no-template", action="store_true", help="chat is a 400")
    parser.add_argument("--served-as", help="what the model list says instead of the asked name")
    return parser.parse_args(arguments)


def engine_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", default="tiny-lm")
    return parser.parse_known_args(arguments)[0]


def register(pids: Path) -> None:
    with pids.open("a") as file:
        file.write(f"{os.getpid()}\n")


def start_clinging_processes(pids: Path) -> None:
    """One that ignores TERM, one in a session of its own, one daemon that was forked twice."""
    before = len(pids.read_text().split())
    linger = [sys.executable, "-I", "-S", "-c", LINGER, str(pids)]
    subprocess.Popen(linger)
    subprocess.Popen(linger, start_new_session=True)
    # The forking parent ends at once, which is what makes a daemon of its child.
    twice = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
    subprocess.run([sys.executable, "-I", "-S", "-c", twice, *linger], check=True)
    while len(pids.read_text().split()) < before + 3:
        time.sleep(0.005)


LINGER = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""


def serve(options: argparse.Namespace, engine: argparse.Namespace) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self.answer(health(options.health), {})
            elif self.path == "/v1/models":
                name = options.served_as or engine.served_model_name
                entry = {"id": name, "owned_by": "vllm", "root": "some/own-name"}
                self.answer(200, {"data": [entry | {"max_model_len": 512}]})
            elif self.path == "/version":
                self.answer(200, {"version": "0.32.0"})
            else:
                self.answer(404, {})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            if options.no_template and self.path == "/v1/chat/completions":
                self.answer(400, {"error": {"message": "There is no chat template. Sorry."}})
            else:
                self.answer(200, {"choices": []})

        def answer(self, status: int, content: dict) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((engine.host, engine.port), Handler)
    server.daemon_threads = True
    server.serve_forever()


def health(file: Path | None) -> int:
    return int(file.read_text()) if file and file.exists() else 200


if __name__ == "__main__":
    main()
