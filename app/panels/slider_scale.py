"""Slider positions and numbers of streams: each of 1 to 16 has its own step, then coarser ones."""

from bisect import bisect_left
from itertools import chain

# Steps grow with the value: by 1 to 16, by 2 to 32, by 4 to 64, by 8 to 128, by 16 to 256.
STREAMS = tuple(
    chain(range(1, 17), range(18, 33, 2), range(36, 65, 4), range(72, 129, 8), range(144, 257, 16))
)
LAST_POSITION = len(STREAMS) - 1


def streams_at(position: int) -> int:
    """Return the streams at a slider position; positions outside count as the nearest one."""
    return STREAMS[min(max(position, 0), LAST_POSITION)]


def position_of(streams: int) -> int:
    """Return the position whose value is nearest to so many streams, the lower one of two."""
    above = min(bisect_left(STREAMS, streams), LAST_POSITION)
    below = max(above - 1, 0)
    return below if streams - STREAMS[below] <= STREAMS[above] - streams else above
