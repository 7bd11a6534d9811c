"""A growing repository: documents come and go in batches, and its tables stay those of a fresh run over what lives.

    batch      --read_batch-->   documents, what they replace
    documents  --pair_batch-->   edges             with stored sketches by postings, with each other as in a run
    edges      --close-->        state, results    the touched components, made again by `nddup.local`
    tables     --write-->        segment, commit

Start with `opened_repository` and `make_change`. `lookup` is pure; `places` knows where a repository may lie.
May import `run` and everything below it.

Example:
    repo = nddup.repository.open("pages")
    repo.add({"w1": "a text"})
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nddup.repository.opened_repository import Repository


def open(path: str, version: int | None = None) -> "Repository":  # noqa: A001 - the verb of the API
    """Open a repository at its newest version, or at another.

    Args:
        path: its folder, or a URL such as `s3://bucket/pages`, which needs the extra `s3`.
        version: None: the newest.

    Raises:
        OutputError: if there is none, or it was made so that nothing here can be compared with it.
        ConfigError: if the client that leads to a URL is not installed.
    """
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415 - loads the kernels

    return Repository(path, version)


def create(
    path: str,
    *,
    mode: str = "rebuild",
    store: str = "all",
    lowest: float | None = None,
    texts: int | None = None,
    **settings: Any,  # noqa: ANN401
) -> "Repository":
    """Make an empty repository.

    Args:
        path: a folder that is empty or not there, or a URL such as `s3://bucket/pages`.
        mode: `rebuild`: the tables equal those of a fresh run; `frozen`: what was kept stays kept.
        store: `all`, or `kept`: what has a stored near-duplicate is reported and not stored.
        lowest: the lowest threshold a query may ask for; `pairs.threshold` if not given.
        texts: characters of each document's text that are kept for reports, 1,000 if not given; 0 keeps none.
        **settings: as of `nddup.find_duplicates`.

    Raises:
        ConfigError: for settings under which adding would not equal a fresh run.
    """
    from nddup.repository.identity import new_identity  # noqa: PLC0415
    from nddup.repository.opened_repository import Repository  # noqa: PLC0415
    from nddup.settings.given import nest_settings  # noqa: PLC0415
    from nddup.settings.load import build_config  # noqa: PLC0415

    config = build_config(nest_settings(settings, origin="nddup.repository.create"), origin="nddup.repository.create")
    return Repository.create(path, new_identity(config, mode=mode, store=store, lowest=lowest, texts=texts))
