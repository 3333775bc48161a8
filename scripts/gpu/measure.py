"""Times contestants side by side in one process, as docs/performance.md says: CUDA graphs, rotated inputs, rounds in changing order.

A contestant is a function that queues one call for one set of inputs on PyTorch's current stream. Its turn is a graph of several calls
that go through all sets. In a round every contestant has its turn twice, one behind the other without a pause, and the second is
timed: what ran before decides the clock where a card is at its limit of power.
"""

import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Call = Callable[[int], Any]

# Sets of inputs hold half as much again as the second-level cache.
CACHE_FACTOR = 1.5


@dataclass(frozen=True)
class Plan:
    """How long is measured: rounds, and milliseconds of a turn."""

    rounds: int = 9
    turn_ms: float = 12.0
    seed: int = 0
    max_calls: int = 400


@dataclass(frozen=True)
class Times:
    """Microseconds of one call, by rounds."""

    us: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.us)

    @property
    def spread(self) -> float:
        """The distance between the quartiles over the median."""
        if len(self.us) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.us, n=4, method="inclusive")
        return (high - low) / self.median


@dataclass(frozen=True)
class Ratio:
    """How often one is faster than another, round by round: median, least and greatest."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, slow: Times, fast: Times) -> "Ratio":
        """`slow` over `fast`: above 1 where `fast` takes less time."""
        ratios = [a / b for a, b in zip(slow.us, fast.us, strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))


def input_sets(bytes_of_a_set: int, cache_bytes: int, least: int = 2) -> int:
    """How many sets of inputs must exist so that a call never finds its own in the cache."""
    return max(least, -(-int(CACHE_FACTOR * cache_bytes) // max(bytes_of_a_set, 1)))


def calls_of_a_turn(us_of_a_call: float, n_sets: int, plan: Plan) -> int:
    """Calls of a turn: whole passes over the sets, at least one."""
    wanted = min(plan.max_calls, plan.turn_ms * 1000 / max(us_of_a_call, 0.1))
    return max(1, round(wanted / n_sets)) * n_sets


def compare(torch: Any, contestants: Mapping[str, Call], n_sets: int, plan: Plan) -> dict[str, Times]:
    """Measures all contestants, interleaved. Each was called before, so that it is loaded and has its memory."""
    graphs, n_calls = {}, {}
    for name, call in contestants.items():
        n_calls[name] = calls_of_a_turn(_estimate(torch, call, n_sets), n_sets, plan)
        graphs[name] = _capture(torch, call, n_calls[name], n_sets)
    order, shuffle = list(contestants), random.Random(plan.seed)
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in order}
    for graph in graphs.values():
        graph.replay()
    for _ in range(plan.rounds):
        shuffle.shuffle(order)
        for name in order:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graphs[name].replay()
            start.record()
            graphs[name].replay()
            end.record()
            events[name].append((start, end))
    torch.cuda.synchronize()
    return {name: Times(tuple(1000 * a.elapsed_time(b) / n_calls[name] for a, b in events[name])) for name in contestants}


def _estimate(torch: Any, call: Call, n_sets: int) -> float:
    """Microseconds of a call, roughly, and never from the first one."""
    for index in range(n_sets):
        call(index)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for index in range(n_sets):
        call(index)
    end.record()
    torch.cuda.synchronize()
    return float(1000 * start.elapsed_time(end) / n_sets)


def _capture(torch: Any, call: Call, n_calls: int, n_sets: int) -> Any:
    """A graph of so many calls, set after set."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(n_calls):
            call(index % n_sets)
    return graph
