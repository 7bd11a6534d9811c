"""What Hadoop's FileSystem says of a folder, in a few calls to Java a folder instead of ten a file.

Java writes what `listStatus` gave as one JSON text, from the fields of the statuses: their getter of the owner would
start a program for each file of a local disk. Where a file system's statuses cannot be written so, each is asked.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError


class Entry(NamedTuple):
    """A file or folder: its address, its path in its file system, and what the file system says of it."""

    uri: str
    path: str
    is_folder: bool
    size: int
    modified: int
    """Milliseconds."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def list_folder(jvm: Any, system: Any, path: Any) -> list[Entry]:  # noqa: ANN401 - Java objects
    """What is in a folder, by name; of a file, the file itself. Raises what Java raises where it is not there.

    Calls to Java: two; of file systems with unusual statuses ten for each file.
    """
    statuses = system.listStatus(path)
    try:
        found = [_of_fields(row) for row in json.loads(_mapper_of(jvm).writeValueAsString(statuses))]
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError):
        found = [entry_of(status) for status in statuses]
    return sorted(found, key=lambda entry: entry.name)


@lru_cache(maxsize=1)
def _mapper_of(jvm: Any) -> Any:  # noqa: ANN401 - Java objects
    """What writes fields as JSON. Made once for a session: to look up a class of Java is to search all jars.

    Raises:
        Py4JError, TypeError: in a Spark without this library.
    """
    jackson = jvm.com.fasterxml.jackson
    visible, of = jackson.annotation.JsonAutoDetect.Visibility, jackson.annotation.PropertyAccessor
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(of.ALL, visible.NONE).setVisibility(of.FIELD, visible.ANY)
    return mapper


def entry_of(status: Any) -> Entry:  # noqa: ANN401 - a Java object
    """One status, asked for each value."""
    uri = status.getPath().toUri()
    size, modified = int(status.getLen()), int(status.getModificationTime())
    return Entry(str(uri.toString()), str(uri.getPath()), bool(status.isDirectory()), size, modified)


def _of_fields(row: dict[str, Any]) -> Entry:
    """One status from its fields; `viewfs` wraps another file system's.

    Raises:
        KeyError: if it has other fields; TypeError likewise.
    """
    uri = (row["modifiedPath"] if "modifiedPath" in row else row["path"])["uri"]
    facts = row.get("myFs", row)
    size, modified = int(facts["length"]), int(facts["modification_time"])
    return Entry(uri, unquote(urlsplit(uri).path), bool(facts["isdir"]), size, modified)
