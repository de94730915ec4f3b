"""A lab without a window: starts the fake engine, says its state, and polls until it is killed."""

import sys
import time
from pathlib import Path

from fakes.fake_environment import fake_settings

from engine_launcher.engine import Engine


def main() -> None:
    folder = Path(sys.argv[1])
    engine = Engine(folder / "engines")
    engine.start(fake_settings(folder, *sys.argv[2:]))
    said = ""
    while True:
        state = engine.poll().state
        if state != said:
            said = state
            sys.stdout.write(f"{state}\n")
            sys.stdout.flush()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
