"""What the load did to a run's figures, in words. Pure."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from measurements.reply import Status
from measurements.run_folder.tables import Table


def load_marks(requests: Table, plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Return sentences on the counted requests of a run with this plan."""
    load, prompts = (_part(plan, name) for name in ("load", "prompts"))
    marks = []
    if prompts.get("unique_prefix") is False and len(requests["prompt_id"]):
        marks.append(_shared(requests))
    if isinstance(load.get("max_tokens"), int):
        marks.append(_cut(requests, load["max_tokens"]))
    marks.append(_unsent(requests, load))
    return tuple(filter(None, marks))


def _part(plan: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = plan.get(name)
    return found if isinstance(found, dict) else {}


def _shared(requests: Table) -> str:
    """Say that a prefix cache may have answered, and how far it did if the server tells."""
    cached, whole = (requests[n].astype(float) for n in ("cached_tokens", "prompt_tokens"))
    known = ~np.isnan(cached)
    told = "the server does not say how many tokens came from its prefix cache."
    if known.any():
        told = (
            f"{cached[known].sum():,.0f} of {whole[known].sum():,.0f} prompt tokens came from the "
            "prefix cache."
        )
    sent = [str(prompt_id) for prompt_id in requests["prompt_id"] if prompt_id]
    return (
        f"Prompts without a unique prefix, {len(set(sent))} different in {len(sent)} requests: "
        f"{told}"
    )


def _cut(requests: Table, max_tokens: int) -> str:
    """Say where replies were cut before their limit: by the model's length, as vLLM does it."""
    prompt, output = (requests[n].astype(float) for n in ("prompt_tokens", "output_tokens"))
    cut = (requests["finish_reason"].astype(str) == "length") & (output < max_tokens)
    places = np.flatnonzero(cut & ~np.isnan(prompt))
    if not places.size:
        return ""
    first = places[0]
    return (
        f"{places.size} replies were cut before their {max_tokens:,} tokens: a prompt of "
        f"{prompt[first]:,.0f} left room for {output[first]:,.0f} within the "
        f"{prompt[first] + output[first]:,.0f} of the model."
    )


def _unsent(requests: Table, load: Mapping[str, Any]) -> str:
    """Say how many requests of an open loop were due and still waiting when the run ended."""
    waiting = (requests["status"] == Status.CANCELLED.value) & np.isnan(
        requests["sent_s"].astype(float)
    )
    count = int(waiting.sum())
    if load.get("rate") is None or not count:
        return ""
    return (
        f"{count} requests were due and never sent: no more than {load.get('concurrency')} could "
        "be in flight, and the run ended before their turn."
    )
