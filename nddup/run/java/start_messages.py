"""The standard error of a JVM: held back while it starts, passed on afterwards, and read for why it did not start."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nddup.errors import reason_of
from nddup.redaction import clean
from nddup.run.java.installed import MODULE, OLDEST, Java

USUAL = ("WARNING: Using incubator modules",)
"""Beginnings of JVM warnings to suppress: they come at every start, before an option or logger could silence them."""

HOW = f"install Java {OLDEST} or newer (Debian: apt-get install openjdk-{OLDEST}-jre-headless), or set JAVA_HOME to it"
REFUSED = "the master did not accept the application within a minute; is it a Spark master, and of this version?"
STDERR = 2

_EXCEPTION = re.compile(r"^(?:Exception in thread \"[^\"]*\" )?(?:[a-z]\w*\.)+(?:\w+\$)*[A-Z]\w*(?:Exception|Error): ")
_USELESS = ("Error: Could not create the Java Virtual Machine", "Error: A fatal exception has occurred", "\tat ", "at ")
_LOGGED = re.compile(r"^[\d:/ ]*(?:ERROR|WARN|FATAL) [\w.$]+: ")


@contextmanager
def capture_jvm_stderr() -> Iterator[list[str]]:
    """Hold back the standard error of a process started in the block; yield its lines so far, without the `USUAL` ones.

    The process keeps this standard error for its whole life. If the block ends without an error, all its lines are
    passed on, later ones too. After an error they are not: the error's message will quote them. What this process
    itself writes to `sys.stderr` goes where it went before.
    """
    said: list[str] = []
    is_open, one_at_a_time = threading.Event(), threading.Lock()
    receiver, sender = os.pipe()
    sys.stderr.flush()
    before = os.dup(STDERR)

    def listen() -> None:
        with os.fdopen(receiver, errors="replace") as lines:
            for line in lines:
                if line.startswith(USUAL):
                    continue
                with one_at_a_time:
                    if is_open.is_set():
                        _pass_on(line)
                    else:
                        said.append(line.rstrip())

    thread = threading.Thread(target=listen, daemon=True)
    os.dup2(sender, STDERR)
    os.close(sender)
    thread.start()
    try:
        with _own_words(before):
            yield said
    except BaseException:
        os.dup2(before, STDERR)
        thread.join(timeout=1)  # it ends with the process, if that ends
        raise
    finally:
        os.dup2(before, STDERR)
        os.close(before)
    with one_at_a_time:
        is_open.set()
        for line in said:
            _pass_on(f"{line}\n")


@contextmanager
def _own_words(before: int) -> Iterator[None]:
    """Let `sys.stderr` write to the standard error `before` within the block, so that progress is still shown."""
    usual = sys.stderr
    try:
        is_usual = usual.fileno() == STDERR
    except (AttributeError, OSError, ValueError):  # a notebook, or a test, has put something else in its place
        is_usual = False
    if not is_usual:
        yield
        return
    with os.fdopen(os.dup(before), "w", encoding=usual.encoding, errors=usual.errors, buffering=1) as own:
        sys.stderr = own
        try:
            yield
        finally:
            sys.stderr = usual


def why_not_started(error: BaseException, said: list[str], java: Java | None) -> str:
    """Return one line that says why a session did not start: the deepest known cause.

    Args:
        error: raised by the start.
        said: Java's lines on standard error meanwhile.
        java: the Java that was to run; None if there is none.
    """
    logged = [line for line in said if _LOGGED.match(line.strip())]
    if "stopped SparkContext" in str(error):  # it does not say why
        return f"Spark did not start: {_plain(logged[0]) if logged else REFUSED}"
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return f"Spark did not start: {_plain(reason_of(error))}"

    # Java itself did not run, or it exited: the error does not say why.
    if java is None:
        return f"Spark did not start: no Java was found; {HOW}"
    if 0 < java.major < OLDEST:
        return f"Spark did not start: {java.home} is Java {java.major}; {HOW}"
    if java.lacks_module:
        return f"Spark did not start: {java.home} has no module {MODULE}; {HOW}"
    told = [line for line in said if line.strip() and not line.startswith(_USELESS)]
    return f"Spark did not start: {_plain(told[0]) if told else str(error)}"


def _plain(line: str) -> str:
    """Strip the time and the class names before the message of a line from Java."""
    shorter = _LOGGED.sub("", line.strip())
    while _EXCEPTION.match(shorter):
        shorter = _EXCEPTION.sub("", shorter)
    return shorter.removeprefix("Error: ")


def _pass_on(line: str) -> None:
    sys.stderr.write(clean(line))
    sys.stderr.flush()
