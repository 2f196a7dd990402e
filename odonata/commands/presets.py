"""The workloads that come with a preset: those on which other simulators were measured."""

from __future__ import annotations

from typing import Any

MICROSECOND = 10**6
DURATION = 100 * MICROSECOND
GIBI = 2**30

# Network, traffic, and for how long; by preset.
_WORKLOADS: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    # 50 messages of 2,048 B a node, exponential gaps of 1,000 ns; until the last has arrived
    "codes-c": (
        {"terminal_buffer": 4096, "local_buffer": 4096, "global_buffer": 8192, "delay_ps": 50_000},
        {"message_bytes": 2048, "messages": 50, "load": 2048 / (5.25 * GIBI) * 1e6},
        1000 * MICROSECOND,
    ),
    # 100 messages of 4 KiB a node, load 0.3
    "codes-d": (
        {"terminal_buffer": 32768, "local_buffer": 16384, "global_buffer": 16384,
         "delay_ps": 100_000, "packet_bytes": 4096},
        {"message_bytes": 4096, "messages": 100, "load": 0.3},
        10_000 * MICROSECOND,
    ),
}  # fmt: skip


def workload(preset: str) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Returns parameters of `Network` and of `Traffic`, and the duration, for a preset."""
    network, traffic, end = _WORKLOADS.get(preset, ({}, {}, DURATION))
    return dict(network), dict(traffic), end
