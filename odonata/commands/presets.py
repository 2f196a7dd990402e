"""The watts of a preset's network, and the workload on which other simulators were measured."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from odonata.experiment.units import show_power
from topology.presets import PRESETS, Preset

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


def preset_facts() -> dict[str, dict[str, Any]]:
    """Returns every preset for JSON, by name, with the power of its whole network in watts: without
    traffic, and with every cable full in both directions."""
    return {
        name: asdict(preset)
        | {
            "network_idle_w": preset.power.idle_w(preset.machine),
            "network_peak_w": preset.power.peak_w(preset.machine),
        }
        for name, preset in PRESETS.items()
    }


def network_watts(preset: Preset) -> str:
    """Returns the same for people, as '67.3 to 70.8 kW'."""
    idle, peak = preset.power.idle_w(preset.machine), preset.power.peak_w(preset.machine)
    low, high = show_power(idle), show_power(peak)
    return f"{low.split()[0] if low.split()[1] == high.split()[1] else low} to {high}"
