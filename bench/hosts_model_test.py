#!/usr/bin/env python3
"""The model of bench/hosts says what arithmetic says where that is easy, and nothing impossible elsewhere."""

import sys

sys.dont_write_bytecode = True

import hosts_model
from hosts_model import Costs, first_limit, limits, rate

COSTS = Costs({"claim": 100_000, "end": 100_000, "commit": 500_000, "commit_many": 500_000 + 255 * 20_000, "many": 256,
               "beat": 400_000, "tell": 30_000, "wake": 60_000, "page": 80_000, "page_many": 80_000 + 999 * 2_000,
               "page_events": 1000, "around": 0})


def near(a, b, part=0.05):
    assert abs(a - b) <= part * b, (a, b)


def main():
    near(COSTS.event, 20e-6)
    near(COSTS.changes(1, 1), 0.2e-3)
    near(COSTS.locked(2), 0.52e-3)

    # One host with one slot: a task, then a batch that ends it and claims the next.
    near(rate(COSTS, 1, 0.05, slots=1)["rate"], 1 / (0.05 + COSTS.changes(1, 1) + COSTS.locked(2)))
    # What is around a task counts once, without the store's part of it.
    slow = Costs({**{name: 100_000 for name in ("claim", "end", "commit", "commit_many", "beat", "tell", "wake", "page",
                                                 "page_many")}, "many": 256, "page_events": 1000, "around": 10_300_000})
    near(slow.around, 0.01)
    near(rate(slow, 1, 0.05, slots=1)["rate"], 1 / (0.06 + 0.3e-3))
    # Far from any limit, hosts do not notice each other.
    near(rate(COSTS, 3, 1.0, slots=4)["rate"], 3 * rate(COSTS, 1, 1.0, slots=4)["rate"])
    # Where tasks take no time, one host is bound by its writer, many by the lock that they share.
    one, many = rate(COSTS, 1, 1e-6, slots=16), rate(COSTS, 30, 1e-6, slots=16)
    near(one["rate"], 16 / (COSTS.changes(16, 16) + COSTS.locked(32)), 0.1)
    # Batches are not always full.
    assert 0.5 < many["rate"] * COSTS.locked(32) / 16 < 1.05 and many["busy"] > 0.98, many
    # The same seed, the same figures.
    assert rate(COSTS, 7, 0.2) == rate(COSTS, 7, 0.2)

    # More load uses more of everything, and who has many hosts pays for their feeds.
    low, high = limits(COSTS, 10, 10), limits(COSTS, 10, 100)
    assert all(high[name] >= low[name] for name in low), (low, high)
    found = [first_limit(COSTS, n) for n in (1, 10, 100, 1000)]
    assert found[0][1] == "writer" and found[3][0] < found[2][0], found
    assert found[-1][2] == {"connections"} and not found[0][2], found
    # The limit is where it says.
    most, limit, _ = found[1]
    near(limits(COSTS, 10, most)[limit], 1.0)
    assert hosts_model.picture(COSTS).startswith("<svg")


main()
