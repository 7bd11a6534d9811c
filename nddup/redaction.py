"""Removes secrets from everything that is written: secret settings of Spark, and the user and password of a URI.

A setting is secret by Spark's own rule: `spark.redaction.regex` matches in its key or its value. A pattern that the
user sets there is added to Spark's default. The values of secret settings are remembered, so that a message of Java or
Hadoop that quotes one can be cleaned as well.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from nddup.shown import printable

RULE = "spark.redaction.regex"
DEFAULT = "(?i)secret|password|token|access[.]?key|credential"
"""Spark's default in 4.3."""

HIDDEN = "*********(redacted)"
"""Replaces a secret, as in Spark."""

IN_PLANS = r"(?<=://)[^\s/?#:@]*:[^\s/?#]*(?=@)"
"""For `spark.redaction.string.regex`: matches the user and password of a URI in query plans, as in the event log."""

LEAST_REMEMBERED = 6
"""Least length of a secret that is replaced wherever it occurs: a shorter one may be part of a common word."""

CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""In URIs of these schemes the part before the @ is the name of a container, not a login."""

_SCHEME = r"\b([A-Za-z][A-Za-z0-9+.-]*)://"
# A login ends at the last @ before the path. A password may contain a slash: Java quotes it. `host:port/` is no login.
_LOGIN = re.compile(_SCHEME + r"(?:[^/?#]*|[^/@:]*:(?!\d+/).*)@", re.DOTALL)
_LOGIN_IN_TEXT = re.compile(_SCHEME + r"(?:[^\s/?#]*|[^\s/@:]*:(?!\d+/)\S*)@")
_ASSIGNMENT = re.compile(r"""\b((?:spark|fs)\.[\w.-]+)(["']?\s*[=:]\s*["']?)(?!expected\b|unknown\b)([^\s"',;]+)""")

_patterns: dict[str, re.Pattern[str]] = {DEFAULT: re.compile(DEFAULT)}
_remembered: set[str] = set()


def follow(settings: Iterable[tuple[str, object]]) -> None:
    """Apply the redaction rule of these settings from now on, and remember the secrets among them.

    Args:
        settings: keys and values of Spark's settings.
    """
    given = [(str(key), str(value)) for key, value in settings]
    for key, value in given:
        if key == RULE and value not in _patterns:
            try:
                _patterns[value] = re.compile(value)
            except re.error:  # valid in Java only: treat every setting as a secret
                _patterns[value] = re.compile("")
    for key, value in given:
        if _is_secret(key) and len(value) >= LEAST_REMEMBERED:
            _remembered.add(value)


def hide_setting(key: str, value: Any) -> Any:  # noqa: ANN401 - of YAML
    """Return the value of a setting without its secrets.

    Args:
        key: the full key, `section.key`, or Spark's own.
        value: of the setting.

    Example:
        >>> hide_setting("spark.hadoop.fs.s3a.secret.key", "abc"), hide_setting("lexicon.saved", "ftp://me:abc@host/a")
        ('*********(redacted)', 'ftp://host/a')
    """
    is_of_spark = key.startswith("spark.")
    if is_of_spark and (_is_secret(key) or _is_secret(str(value))):
        return HIDDEN
    return drop_login(value) if isinstance(value, str) else value


def hide_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all sections of settings without their secrets; what is no section is one setting."""
    return {
        section: {key: hide_setting(key if section == "spark" else f"{section}.{key}", value)
                  for key, value in values.items()} if isinstance(values, Mapping) else hide_setting(section, values)
        for section, values in settings.items()
    }  # fmt: skip


def drop_login(uri: str) -> str:
    """Return a URI without its user and password, any other text unchanged.

    Example:
        >>> [drop_login(uri) for uri in ("ftp://me:abc@host:21/a@b", "hdfs://host:8020/a@b", "abfs://box@account/a")]
        ['ftp://host:21/a@b', 'hdfs://host:8020/a@b', 'abfs://box@account/a']
    """
    return _LOGIN.sub(_without_login, uri)


def clean(text: str) -> str:
    """Return a message without remembered secrets, values of secret settings, logins of URIs and acting characters.

    Example:
        >>> clean("no ftp://me:abc@host/a: fs.s3a.secret.key=abc is wrong")
        'no ftp://host/a: fs.s3a.secret.key=*********(redacted) is wrong'
    """
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _ASSIGNMENT.sub(lambda found: f"{found[1]}{found[2]}{HIDDEN}" if _is_secret(found[1]) else found[0], text)
    return printable(_LOGIN_IN_TEXT.sub(_without_login, text))


def _is_secret(text: str) -> bool:
    return any(pattern.search(text) for pattern in _patterns.values())


def _without_login(found: re.Match[str]) -> str:
    return found[0] if found[1].lower() in CONTAINER_SCHEMES else f"{found[1]}://"
