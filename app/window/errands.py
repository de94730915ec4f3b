"""Work that may take longer than a frame, done aside and collected by the timer."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

Done = Callable[[Future[Any]], None]


class Errands:
    """One thread; what it finished is handed over in `poll`, on the thread that polls.

    On Linux a thread has its own niceness and its children inherit it: made before the window
    lowers its own priority, this thread starts engines and load workers at the usual one.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="errands")
        self._executor.submit(int).result()  # the thread starts now, with the niceness of now
        self._pending: list[tuple[Future[Any], Done]] = []

    @property
    def busy(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._pending)

    def run(self, work: Callable[[], Any], done: Done) -> None:
        """Do some work aside; `done` gets its future, finished, from a later `poll`."""
        self._pending.append((self._executor.submit(work), done))

    def poll(self) -> None:
        """Hand over what is finished."""
        finished = [pair for pair in self._pending if pair[0].done()]
        self._pending = [pair for pair in self._pending if pair not in finished]
        for future, done in finished:
            done(future)

    def close(self) -> None:
        """Let the thread end."""
        self._executor.shutdown(wait=False, cancel_futures=True)
