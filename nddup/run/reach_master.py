"""Whether the master of a Spark cluster can be reached: asked before a Java machine starts, and waits for a minute."""

import re
import socket

from nddup.errors import ConfigError

WAIT_SECONDS = 5.0
"""For each address of a master: longer than any network takes, shorter than people wait."""

_ADDRESS = re.compile(r"\[?([^\[\]]+)\]?:(\d+)")


def require_reachable(master: str, *, wait: float = WAIT_SECONDS) -> None:
    """Refuse `spark://HOST:PORT[,HOST:PORT…]` where nobody answers at any of the addresses.

    Any other master passes: Spark itself says what is wrong with it.

    Raises:
        ConfigError: it names each address, and why it cannot be reached.

    Cost: a connection; at most `wait` seconds an address.
    """
    if not master.startswith("spark://"):
        return
    refused = []
    for address in master.removeprefix("spark://").split(","):
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            return  # Spark refuses it
        try:
            socket.create_connection((parts[1], int(parts[2])), timeout=wait).close()
        except (OSError, OverflowError) as error:
            refused.append(f"{address} ({_reason(error)})")
        else:
            return
    raise ConfigError(f"Spark did not start: no master can be reached at {', '.join(refused)}")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (getattr(error, "strerror", None) or str(error)).lower()
