"""How much a run may lose before it fails: rejects, and files that cannot be read."""

from collections.abc import Mapping, Sequence

from nddup.errors import NddupError

UNREADABLE = "unreadable"
"""The reject reason of a file that could not be opened; a cut or damaged file gives what can be read of it."""


def require_readable(unread: Sequence[tuple[str, str, str]], limit: int) -> None:
    """Stop if more files than the run allows could not be opened: a few rejects may stand for most of the text.

    Args:
        unread: source, reason and detail of rejects; those with other reasons are ignored.
        limit: `input.max_unreadable`.

    Raises:
        NddupError: naming all these files.
    """
    named = [f"{source} ({detail})" for source, reason, detail in unread if reason == UNREADABLE]
    if len(named) > limit:
        raise NddupError(f"files that cannot be read: {len(named)}, input.max_unreadable {limit}: {'; '.join(named)}")


def require_few_rejects(records: int, rejects: int, reasons: Mapping[str, int], limit: float | None) -> None:
    """Stop if the share of rejected records exceeds `input.max_rejects`; None allows any.

    Raises:
        NddupError: naming the reasons.
    """
    if limit is not None and rejects > limit * records:
        told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
        allowed = f"input.max_rejects={limit} allows {int(limit * records):,}"
        raise NddupError(f"{rejects:,} of {records:,} records are rejects ({told}); {allowed}")
