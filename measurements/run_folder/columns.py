"""The columns of the log: the project's public interface (`docs/run-folder.md` explains each)."""

FORMAT_VERSION = 1

SENDS = ("request_id", "planned_s", "sent_s", "concurrency", "warmup", "worker", "prompt_id")

TOKENS = (
    "request_id",
    "index",
    "arrival_s",
    "since_send_s",
    "tokens",
    "kind",
    "burst",
    "clock",
)

# A row for each chunk without generated text, and for the end of the stream: what other tools
# take for a token, or for the end of a request, and this lab does not.
EVENTS = ("request_id", "at_s", "since_send_s", "what")

REQUESTS = (
    "request_id",
    "response_id",
    "concurrency",
    "warmup",
    "planned_s",
    "sent_s",
    "connect_s",
    "queue_s",
    "prefill_s",
    "ttft_s",
    "ttft_answer_s",
    "tpot_s",
    "e2e_s",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "finish_reason",
    "status",
    "http_status",
    "reason",
    "client_lag_s",
    "clock",
    "prompt_id",
)

# A row at each change of the run's state, of the target, or of whether the target is in flight
# (held = 1): what output tokens/s and the step line in the charts are made from.
LOAD = ("at_s", "state", "concurrency", "held")

# A row a second: the worker about itself.
CLIENT = ("at_s", "in_flight", "lag_p50_s", "lag_p99_s", "loop_lag_s", "cpu_share", "burst_share")

# A row a second, from the engine's /metrics; empty where the engine has none.
SERVER_METRICS = (
    "at_s",
    "running",
    "waiting",
    "kv_usage",
    "prompt_tokens_total",
    "generation_tokens_total",
    "prefix_queries_total",
    "prefix_hits_total",
    "ttft_sum_s",
    "ttft_count",
    "itl_sum_s",
    "itl_count",
)

FILES = {
    "sends.csv": SENDS,
    "tokens.csv": TOKENS,
    "events.csv": EVENTS,
    "requests.csv": REQUESTS,
    "load.csv": LOAD,
    "client.csv": CLIENT,
    "server_metrics.csv": SERVER_METRICS,
}
