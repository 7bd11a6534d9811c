"""JSON that others may have written: whatever is not the object that was expected is a ValueError."""

import json
from typing import Any


def load_object(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a text.

    Raises:
        ValueError: if it holds none, or one nested too deeply for Python's reader.

    Example:
        >>> load_object('{"a":' * 100_000)
        Traceback (most recent call last):
        ValueError: nested too deeply
    """
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - as of other damage
    return value
