"""Start, watch, explain and stop one engine. Knows neither Qt nor measurements."""
