"""A session of Spark Connect: its server is elsewhere (`sc://…`), or started here (`spark.api.mode=connect`)."""

import os
from collections.abc import Mapping
from importlib import import_module

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nddup.errors import ConfigError, first_line, reason_of
from nddup.redaction import hide_setting
from nddup.run.reach_master import SERVER, address_of, require_reachable

REMOTE, MODE = "spark.remote", "spark.api.mode"
CLIENT = ("grpc", "grpc_status", "google.rpc", "zstandard")
NEEDED = "pip install 'nddup[connect]'"

STARTED_HERE = {"spark.connect.grpc.binding.address": "127.0.0.1"}
"""Settings of a server started for this process: only this machine can reach it."""


def server_of(master: str | None, settings: Mapping[str, str]) -> str | None:
    """Return the server to connect to, `sc://HOST:PORT`; None if none was named."""
    for text in (master, settings.get(REMOTE), os.environ.get("SPARK_REMOTE")):
        if text:
            return text if text.startswith(SERVER) else None
    return None


def is_started_here(settings: Mapping[str, str]) -> bool:
    """Return whether a server of Spark Connect is to be started with the session."""
    return (settings.get(MODE) or os.environ.get("SPARK_API_MODE", "")).lower() == "connect"


def require_client() -> None:
    """Refuse if packages that a client of Spark Connect needs are missing.

    Raises:
        ConfigError: naming the first missing one, and how to install them.
    """
    try:
        for name in CLIENT:
            import_module(name)
    except ImportError as error:
        raise ConfigError(f"Spark Connect needs {NEEDED} ({error})") from error


def lead_to(server: str, settings: Mapping[str, str]) -> SparkSession:
    """Open a session on a running server.

    Args:
        server: `sc://HOST:PORT/;PARAMETER=VALUE…`.
        settings: of the session. Settings of the server itself cannot be given here.

    Raises:
        ConfigError: if packages are missing, nothing answers there, or the server refuses the session or a setting.
    """
    require_client()
    require_reachable(server)
    try:
        spark = SparkSession.builder.remote(server).getOrCreate()
    except Exception as error:
        raise ConfigError(f"Spark did not start: {address_of(server)}: {reason_of(error)}") from error
    for key, value in settings.items():
        if key in (REMOTE, MODE):
            continue
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            raise ConfigError(f"{key}={hide_setting(key, value)}: {first_line(error)}") from error
    return spark
