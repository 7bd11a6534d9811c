"""The files that a Spark session reaches: Hadoop's, those of this machine, or those shared with a Connect server.

A client of Connect has no JVM to reach other files, so a path is a local path for both sides. This is verified: the
server is asked to read one of the inputs, and a file that this process wrote into the folder of the run. If it does not
find them, the run is refused.
"""

from dataclasses import replace
from secrets import token_hex

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nddup.errors import ConfigError, OutputError
from nddup.redaction import drop_login
from nddup.scanning.file_heads import is_hidden, is_refused
from nddup.scanning.input_files import InputFile, Listing, is_utf8, local_path, uri_of
from nddup.spark.reach import is_connect
from nddup.spark.sources import reader_of
from nddup.storage.files import Storage
from nddup.storage.local_storage import LocalStorage

WHERE = "over Spark Connect files lie where this process and the server have them under one local path"


class SharedStorage(LocalStorage):
    """A `LocalStorage` for a session with a server; the path of an input is a URI as Spark spells it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._is_seen = False

    def list_inputs(self, inputs: list[str]) -> Listing:
        """Find the files of INPUT paths, which are literal; folders are searched recursively. One small action.

        Raises:
            ConfigError: if an input does not exist, cannot be listed, or differs from what the server finds there.
        """
        for text in inputs:
            _require_local(f"INPUT {text}", text)
        listing = super().list_inputs(inputs)
        files = tuple(replace(file, path=uri_of(file.path)) for file in listing.files)
        seen = [file for file in files if is_utf8(file.path) and not (is_hidden(file.path) or is_refused(file.path))]
        if seen:  # Spark cannot open the others
            self._require_same(min(seen, key=lambda file: file.size))
        return Listing(files, listing.skipped, listing.repeated)

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there. ConfigError: also for a path of another file system."""
        _require_local(path, path)
        return super().exists(path)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents; for the first one, check that the server sees a file in it. One small action.

        Raises:
            ConfigError: for a path of another file system.
            OutputError: if it cannot be made or written, or the server does not see the file in it.
        """
        is_new = not self.exists(path)
        super().make_folder(path)
        if self._is_seen:
            return

        text = token_hex(16)
        sign = f"{path}/seen-{text[:8]}.txt"
        self.write_text(sign, text)
        try:
            read = [row["value"] for row in reader_of(self._spark, "text").load(local_path(sign)).collect()]
        except PySparkException:
            read = []
        self.remove(sign)
        if read != [text]:
            if is_new:
                self.remove(path)
            raise OutputError(f"{path}: the Spark server does not see what this process writes there; {WHERE}")
        self._is_seen = True

    def _require_same(self, file: InputFile) -> None:
        """Check that the server finds a file under its name and with its size."""
        asked = reader_of(self._spark, "binaryFile").load(local_path(file.path))
        try:
            found = [tuple(row) for row in asked.select(F.col("_metadata.file_path"), "length").collect()]
        except PySparkException:
            found = []
        if found != [(file.path, file.size)]:
            came = f"finds {drop_login(found[0][0])}, {found[0][1]} bytes" if found else "finds nothing there"
            raise ConfigError(f"INPUT {local_path(file.path)}: the Spark server {came}; {WHERE}")


def _require_local(what: str, path: str) -> None:
    try:
        local_path(path)
    except ConfigError as error:
        raise ConfigError(f"{drop_login(what)}: {WHERE}") from error


SessionFiles = Storage | SharedStorage


def files_of(spark: SparkSession) -> SessionFiles:
    """Return the files of a session: all that its Hadoop opens or, on Spark Connect, files of this machine."""
    return SharedStorage(spark) if is_connect(spark) else Storage(spark)


def files_at(spark: SparkSession, path: str) -> SessionFiles | LocalStorage:
    """Return the files to use for a folder and all in it: Python's if the folder is on this machine.

    Through Hadoop, each local file would cost several calls to Java, which starts a process to set its permissions.
    """
    files = files_of(spark)
    return LocalStorage() if isinstance(files, Storage) and files.is_own(path) else files
