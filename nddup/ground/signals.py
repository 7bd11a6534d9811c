"""The signals that end a command: it ends as by Ctrl-C, so that nothing temporary stays.

A library may make another error of the exception, as numba does inside a kernel and DuckDB inside its callbacks; and
Python drops it where an object is freed. So a signal is also noted: whatever ends the command after it is taken for an
interruption, and the next step of its work does not begin.
"""

import signal
import threading
from types import FrameType

signals_that_came: list[int] = []
"""What asked this process to end."""


class SignalledError(KeyboardInterrupt):
    """A signal asks this process to end: `number`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def end_by_signals() -> None:
    """Have SIGTERM, SIGHUP and SIGINT raise `SignalledError`, unless they are ignored, as by `nohup`."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)


def require_no_signal() -> None:
    """Raise what a signal raised before, if this thread still goes on.

    Raises:
        SignalledError: if a signal came.
    """
    if signals_that_came and threading.current_thread() is threading.main_thread():
        raise SignalledError(signals_that_came[0])


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End the command; a second signal of the kind ends the process at once."""
    del frame
    signal.signal(number, signal.SIG_DFL)
    signals_that_came.append(number)
    raise SignalledError(number)
