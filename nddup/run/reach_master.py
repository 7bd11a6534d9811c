"""Check first that a Spark master or a Spark Connect server can be reached: Spark itself would wait long for either."""

import re
import socket

from nddup.errors import ConfigError
from nddup.redaction import drop_login

WAIT_SECONDS = 5.0
"""Time for each address of a master: longer than any network takes, shorter than people wait."""

SERVER = "sc://"
PORT = 15002
"""Port of a Spark Connect server whose address has none."""

_ADDRESS = re.compile(r"\[?([^\[\]]+)\]?:(\d+)")


def require_reachable(master: str, *, wait: float = WAIT_SECONDS) -> None:
    """Refuse `spark://HOST:PORT[,HOST:PORT…]` or `sc://HOST[:PORT]/…` if nothing answers at any of the addresses.

    Any other master passes: Spark itself reports what is wrong with it.

    Raises:
        ConfigError: naming each address, and why it cannot be reached.

    Cost: a connection attempt an address, until one answers; each takes at most `wait` seconds.
    """
    if not master.startswith(("spark://", SERVER)):
        return
    refused = []
    for address in address_of(master).partition("://")[2].split(","):
        parts = _ADDRESS.fullmatch(address)
        if parts is None:
            return  # Spark will refuse it
        try:
            socket.create_connection((parts[1], int(parts[2])), timeout=wait).close()
        except (OSError, OverflowError) as error:
            refused.append(f"{address} ({_reason(error)})")
        else:
            return
    what = "server" if master.startswith(SERVER) else "master"
    raise ConfigError(f"Spark did not start: no {what} can be reached at {', '.join(refused)}")


def address_of(master: str) -> str:
    """Return the address of a master or a server, without a server's parameters: they may include a token.

    Example:
        >>> address_of("sc://host/;token=abc"), address_of("sc://host:443"), address_of("local[2]")
        ('sc://host:15002', 'sc://host:443', 'local[2]')
    """
    if not master.startswith(SERVER):
        return drop_login(master)
    host = drop_login(master).removeprefix(SERVER).partition("/")[0].partition(";")[0]
    return f"{SERVER}{host}" if re.search(r":\d+$", host) else f"{SERVER}{host}:{PORT}"


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (getattr(error, "strerror", None) or str(error)).lower()
