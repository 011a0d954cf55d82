"""Starts this host's ranks under torchrun. `python -I agent.py FLAGS --no-python COMMAND` takes torchrun's flags, with
`--rdzv-backend bound` and `--rdzv-conf place=P,timeout=SECONDS`.

The rendezvous `bound` is torchrun's static one, and the store of place 0 listens on the endpoint's address alone;
torchrun's own store listens on all interfaces. Port 0 of the endpoint takes a free port, for ranks of one host."""

import socket
import sys

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousInfo, RendezvousParameters, rendezvous_handler_registry
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from torch.distributed.run import main

NAME = "bound"


class Bound(StaticTCPRendezvous):
    def get_backend(self) -> str:
        return NAME

    def next_rendezvous(self) -> RendezvousInfo:
        descriptor = None
        if self.rank == 0:
            family = socket.AF_INET6 if ":" in self.master_addr else socket.AF_INET
            listener = socket.create_server((self.master_addr, self.master_port), family=family, backlog=1024)
            self.master_port = listener.getsockname()[1]
            descriptor = listener.detach()  # the store closes it
        self._store = TCPStore(
            self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout,
            master_listen_fd=descriptor,
        )  # fmt: skip
        return super().next_rendezvous()


def bound(p: RendezvousParameters) -> Bound:
    address, _, port = p.endpoint.rpartition(":")
    return Bound(
        address.strip("[]"), int(port), int(p.config["place"]), p.max_nodes, p.run_id, int(p.config["timeout"])
    )


if __name__ == "__main__":
    rendezvous_handler_registry.register(NAME, bound)
    sys.exit(main())
