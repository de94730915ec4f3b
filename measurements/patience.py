"""When a server fails again and again: how long a stream rests, and when a run gives up. Pure."""

from dataclasses import dataclass, field

from measurements.reply import Ending, Status

REST_NS = 250_000_000  # a stream whose request gave no token rests so long
CROWD = 5  # failures in a row from which on all streams together try once a rest
GIVE_UP_AFTER = 10  # failures in a row without a token …
GIVE_UP_NOT_BEFORE_NS = 1_000_000_000  # … and no good reply for so long
# Answers that say that the request itself is wrong: the next one would get the same.
HOPELESS = frozenset({400, 401, 403, 404, 405, 413, 422})


@dataclass
class Patience:
    """What went wrong since the last good reply."""

    failures: int = 0
    ever_good: bool = False
    sentence: str = ""  # why the run should end; empty while it need not
    _since_ns: int = 0
    _next_try_ns: int = field(default=0)

    def note(self, ending: Ending, http_status: int | None, tokens: int, now_ns: int) -> int:
        """Take the end of a request; return the time (ns) before which its stream should rest."""
        if ending.status is Status.OK or tokens:
            self.failures = 0
            self.ever_good = self.ever_good or ending.status is Status.OK
            return now_ns
        if self.failures == 0:
            self._since_ns = now_ns
        self.failures += 1
        self._judge(ending, http_status, now_ns)
        return now_ns + REST_NS

    def may_try(self, now_ns: int) -> bool:
        """Return whether a request may be sent now; while a server is down, one a rest."""
        if self.failures < CROWD:
            return True
        if now_ns < self._next_try_ns:
            return False
        self._next_try_ns = now_ns + REST_NS
        return True

    def _judge(self, ending: Ending, http_status: int | None, now_ns: int) -> None:
        reason = ending.reason.rstrip(".")
        if http_status in HOPELESS and not self.ever_good:
            self.sentence = f"The server does not accept the request: {reason}."
        elif self.failures >= GIVE_UP_AFTER and now_ns - self._since_ns >= GIVE_UP_NOT_BEFORE_NS:
            self.sentence = f"{self.failures} requests in a row failed, the last: {reason}."
