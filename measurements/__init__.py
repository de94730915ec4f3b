"""Load, arrival times, statistics, KV-cache arithmetic and the run log. Knows neither Qt nor engines."""
