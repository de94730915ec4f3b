"""Arrivals to chunk gaps and inter-token latencies, for all requests of a run at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from measurements.run_folder.tables import Table
from measurements.statistics import Floats


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """Pooled gaps in seconds, one a token where tokens are known; and of how many requests."""

    seconds: Floats
    requests: int
    of_chunks: bool  # some chunk's tokens are unknown: these are chunk gaps by name


def with_chunk_tokens(tokens: Table, requests: Table) -> Table:
    """Fill in one token a chunk where a request's usage counts exactly as many as its chunks."""
    counts = np.asarray(tokens["tokens"], dtype=np.float64)
    single = _usage_a_chunk(tokens, requests) == 1
    return {**tokens, "tokens": np.where(np.isnan(counts) & single, 1.0, counts)}


def with_mean_tokens(tokens: Table, requests: Table) -> Table:
    """Fill in unknown tokens of a chunk by the mean, good enough for tokens per second alone.

    It is the mean of the chunk's own request where that has a usage, else that of all others;
    where nothing is known of any, it stays unknown.
    """
    counts = np.asarray(tokens["tokens"], dtype=np.float64)
    counts = np.where(np.isnan(counts), _usage_a_chunk(tokens, requests), counts)
    known = counts[~np.isnan(counts)]
    fallback = known.mean() if known.size else np.nan
    return {**tokens, "tokens": np.where(np.isnan(counts), fallback, counts)}


def _usage_a_chunk(tokens: Table, requests: Table) -> Floats:
    """Return for each chunk its request's output tokens over its chunks; NaN without a usage."""
    owners = np.asarray(tokens["request_id"], dtype=np.float64)
    ids, places, chunks = np.unique(owners, return_inverse=True, return_counts=True)
    return (_of_each(ids, requests, "output_tokens") / chunks)[places]


def _of_each(ids: Floats, requests: Table, column: str) -> Floats:
    """Return a column of the request table for each id; NaN for those that have not ended."""
    known = np.asarray(requests["request_id"], dtype=np.float64)
    order = np.argsort(known)
    if not known.size:
        return np.full(ids.size, np.nan)
    places = order[np.searchsorted(known, ids, sorter=order).clip(max=known.size - 1)]
    values = np.asarray(requests[column], dtype=np.float64)[places]
    return np.where(known[places] == ids, values, np.nan)


def pooled_gaps(tokens: Table) -> Gaps:
    """Return each gap divided among its chunk's tokens, counted once for each of them.

    A chunk that is known to carry no new token ends no gap: its wait belongs to the next one.
    """
    owners, arrivals, counts = _ordered(tokens)
    within = owners[1:] == owners[:-1]
    gaps, carried = np.diff(arrivals)[within], counts[1:][within]
    contributing = int(np.unique(owners[1:][within]).size)
    if np.isnan(carried).any():
        return Gaps(seconds=gaps, requests=contributing, of_chunks=True)
    each = np.repeat(gaps / carried, carried.astype(np.int64))
    return Gaps(seconds=each, requests=contributing, of_chunks=False)


def _ordered(tokens: Table) -> tuple[Floats, Floats, Floats]:
    counts = np.asarray(tokens["tokens"], dtype=np.float64)
    kept = _rows(tokens, ~(counts < 1))  # NaN stays
    order = np.lexsort((kept["index"], kept["request_id"]))
    owners, arrivals, carried = (
        np.asarray(kept[name], dtype=np.float64)[order]
        for name in ("request_id", "arrival_s", "tokens")
    )
    return owners, arrivals, carried


def _rows(table: Table, chosen: NDArray[np.bool_]) -> Table:
    return {name: column[chosen] for name, column in table.items()}
