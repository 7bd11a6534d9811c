"""A growing repository: documents are added and removed in batches; its tables equal a fresh run over the live ones.

    batch      --read_batch-->   documents, and the stored documents they replace
    documents  --name_batch-->   nodes             distinct sketches, and stored ones near to them, by postings
    nodes      --close-->        state, results    of the touched components, made anew by `nddup.embedded`
    tables     --write-->        segment, commit

    repo = nddup.repository.open("pages"); repo.add({"w1": "a text"})

Start with `opened_repository` and `make_change`. `lookups` is pure; `places` is where it is stored. May import both
engines and everything below them.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from nddup.repository.opened_repository import Repository
    from nddup.settings.schema import LocalConfig


def open(  # noqa: A001 - the verb of the API
    path: "str | os.PathLike[str]",
    version: int | None = None,
    *,
    engine: Literal["auto", "local", "spark"] = "auto",
    local: "LocalConfig | Mapping[str, Any] | None" = None,
    spark: Mapping[str, str] | None = None,
) -> "Repository":
    """Open a repository at its newest version, or at a given one.

    Args:
        path: its folder, or a URL such as `s3://bucket/pages`, which needs the extra `s3`.
        version: the version to read; None: the newest.
        engine: what reads inputs. A repository does not store how and where to compute.
        local: memory and processes of the embedded engine.
        spark: Spark's own settings, under their full names.

    Raises:
        OutputError: if there is no such repository or version, or sketches made here cannot be compared with its own.
        ConfigError: for a wrong setting, or if the client for a URL is not installed.
    """
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415 - loads the kernels
    from nddup.settings.load import build_config  # noqa: PLC0415

    given = {"engine": engine, "local": local or {}, "spark": spark or {}}
    caller = build_config(given, origin="nddup.repository.open")
    return Repository(os.fspath(path), version, caller=caller)


def create(
    path: "str | os.PathLike[str]",
    *,
    mode: str = "rebuild",
    store: str = "all",
    lowest: float | None = None,
    texts: int | None = None,
    **settings: Any,  # noqa: ANN401
) -> "Repository":
    """Make an empty repository.

    Args:
        path: an empty or new folder, or a URL such as `s3://bucket/pages`.
        mode: `rebuild`: the tables equal those of a fresh run; `frozen`: kept documents stay kept.
        store: `all`, or `kept`: a document with a stored near-duplicate is reported but not stored.
        lowest: the lowest threshold a query may ask for; `pairs.threshold` if not given.
        texts: characters of each document's text to keep for reports, 1,000 if not given; 0 keeps none.
        **settings: as for `nddup.find_duplicates`; `local` and `spark` are not stored, and hold for the repository as
            it is returned.

    Raises:
        ConfigError: for settings under which adding would not equal a fresh run.
    """
    from nddup.repository.identity import new_identity  # noqa: PLC0415
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415
    from nddup.settings.load import build_config, nest_settings  # noqa: PLC0415

    config = build_config(nest_settings(settings, origin="nddup.repository.create"), origin="nddup.repository.create")
    return Repository.create(os.fspath(path), new_identity(config, mode=mode, store=store, lowest=lowest, texts=texts))
