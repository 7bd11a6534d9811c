"""The listing of a folder by Hadoop's FileSystem, in a few calls to Java for each folder instead of ten for each file.

Java writes the result of `listStatus` as one JSON text. It reads the fields of the statuses, not their getters: the
getter of the owner would start a program for each file of a local disk. Statuses that cannot be written so are asked
one by one.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError


class Entry(NamedTuple):
    """A file or folder: its URI, its path in its file system, and what the file system says of it."""

    uri: str
    path: str
    is_folder: bool
    size: int
    modified: int
    """In milliseconds."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def list_folder(jvm: Any, system: Any, path: Any) -> list[Entry]:  # noqa: ANN401 - Java objects
    """List a folder, sorted by name; a file gives itself. Raises what Java raises if it is not there.

    Cost: two calls to Java; ten for each file on file systems with unusual statuses.
    """
    statuses = system.listStatus(path)
    try:
        found = [_of_fields(row) for row in json.loads(_mapper_of(jvm).writeValueAsString(statuses))]
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError):
        found = [entry_of(status) for status in statuses]
    return sorted(found, key=lambda entry: entry.name)


@lru_cache(maxsize=1)
def _mapper_of(jvm: Any) -> Any:  # noqa: ANN401 - Java objects
    """Return the mapper that writes fields as JSON, made once for a session: looking up a Java class searches all jars.

    Raises:
        Py4JError, TypeError: in a Spark without the library Jackson.
    """
    jackson = jvm.com.fasterxml.jackson
    visible, of = jackson.annotation.JsonAutoDetect.Visibility, jackson.annotation.PropertyAccessor
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(of.ALL, visible.NONE).setVisibility(of.FIELD, visible.ANY)
    return mapper


def entry_of(status: Any) -> Entry:  # noqa: ANN401 - a Java object
    """Make an entry of a status by asking it for each value."""
    uri = status.getPath().toUri()
    size, modified = int(status.getLen()), int(status.getModificationTime())
    return Entry(str(uri.toString()), str(uri.getPath()), bool(status.isDirectory()), size, modified)


def _of_fields(row: dict[str, Any]) -> Entry:
    """Make an entry of the fields of a status; one of `viewfs` wraps that of another file system.

    Raises:
        KeyError, TypeError: if it has other fields.
    """
    uri = (row["modifiedPath"] if "modifiedPath" in row else row["path"])["uri"]
    facts = row.get("myFs", row)
    size, modified = int(facts["length"]), int(facts["modification_time"])
    return Entry(uri, unquote(urlsplit(uri).path), bool(facts["isdir"]), size, modified)
