"""The counters of a run under the names of a Cray Aries router, and the stall-to-flit ratio.

An Aries router counts at its tiles (Zhang 2021, section 3.5.1 and table 3.3). Ours correspond to
them as follows. A network tile is a port to another router:

* N_FLIT: flits that arrived over its link, by virtual channel;
* N_STALL: the time, in flits of that link, in which a channel that feeds it had a packet ready, no
  credit, and the link free: cycles lost in moving flits into this tile's buffer.

A processor tile is a port to a node: P_REQ_FLIT counts the flits sent to a node, P_REQ_STALL the
time, in flits of its link, in which a packet was ready and the node's ejection buffer was full. It
is 0 where nodes accept every packet (no `nic.ejection`), and where packets wait for that buffer in
input queues (a crossbar without output buffers; `eject_ps` of the inputs has it then). There are no
responses: P_RSP_* would be 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network

FLITS, STALL = COUNTERS.index("flits"), COUNTERS.index("stall_ps")


class Aries(NamedTuple):
    n_flit: npt.NDArray[np.int64]
    """By router, network tile (its ports but those to nodes, in order) and virtual channel."""
    n_stall: npt.NDArray[np.float64]
    """By router and network tile."""
    p_req_flit: npt.NDArray[np.int64]
    """By node."""
    p_req_stall: npt.NDArray[np.float64]
    """By node."""

    def stall_to_flit(self) -> npt.NDArray[np.float64]:
        """Returns by router the mean over its network tiles of stalls per incoming flit (Zhang,
        3.5.2). A tile that saw no flit counts as 0."""
        flits = self.n_flit.sum(axis=2)
        ratio = np.divide(self.n_stall, flits, out=np.zeros(flits.shape), where=flits > 0)
        mean: npt.NDArray[np.float64] = ratio.mean(axis=1) if ratio.shape[1] else ratio.sum(axis=1)
        return mean


def aries(network: Network, outcome: Mapping[str, Any]) -> Aries:
    """Returns the Aries counters from the outcome of a run of this network."""
    m = network.machine
    p, radix = m.nodes, m.radix
    counters = outcome["counters"][:, : m.routers * radix]
    sent = counters.reshape(m.n_routers, radix, network.channels, len(COUNTERS))
    feeder = m.ends()
    lit = feeder >= 0
    flits = sent[..., FLITS].reshape(-1, network.channels)[feeder]
    stall = sent[..., STALL].sum(axis=2).reshape(-1)[feeder].astype(float)
    rates = [m.local.bandwidth] * (m.routers - 1) + [m.global_.bandwidth] * m.global_links
    stall *= np.array(rates) / (network.flit_bytes * 1e12)
    eject = sent[:, :p, :, FLITS].sum(axis=2).reshape(-1)
    full = sent[:, :p, :, STALL].sum(axis=2).reshape(-1).astype(float)
    full *= m.terminal.bandwidth / (network.flit_bytes * 1e12)
    return Aries(flits * lit[..., None], stall * lit, eject, full)
