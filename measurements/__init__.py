"""Load, arrival times, statistics, KV-cache arithmetic, the run log. Knows no Qt and no engine."""
