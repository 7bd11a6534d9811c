"""A frozen repository: a kept document stays kept while it lives, as in an oracle with its own list."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nddup.repository
from nddup.checking.check_run import check_run
from nddup.engines.duck import DuckRun
from nddup.errors import ConfigError
from nddup.repository import prove_version
from nddup.repository.live_tables import live_tables
from nddup.repository.opened_repository import Repository
from nddup.repository.snapshot import Snapshot
from tests.counted_rows import once, once_each
from tests.repository.histories import Batch, draw_chain, draw_history, draw_text, play, rows_of, run_fresh
from tests.results.damages import change, rewrite
from tests.samples_by_night import examples, first

SETTINGS: dict[str, Any] = {"sketch.size": 24, "pairs.threshold": 0.6, "local.processes": 1}


CONFIRM = ({"pairs.confirm": "none"}, {"pairs.confirm": "resemblance"})


class Oracle:
    """The keep-list of a frozen repository, by its definition."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.versions: dict[str, int] = {}
        self.duplicate_of: dict[str, tuple[str, int]] = {}

    def follow(self, repo: Repository, live: dict[str, str], added: set[str]) -> None:
        """Follow a step: the documents live after it, and those that it added."""
        version = repo.version
        self.kept = {doc_id for doc_id in self.kept if doc_id in live and doc_id not in added}
        self.versions = {doc_id: version if doc_id in added else self.versions[doc_id] for doc_id in live}
        fresh = run_fresh(live, repo.snapshot.identity.config)
        tokens = dict(zip(*(fresh["documents"][name].to_pylist() for name in ("doc_id", "n_tokens")), strict=True))
        pairs = zip(*(fresh["pairs"][name].to_pylist() for name in ("doc_a", "doc_b")), strict=True)
        near: dict[str, set[str]] = {doc_id: set() for doc_id in live}
        for a, b in pairs:
            near[a].add(b)
            near[b].add(a)
        waiting = sorted(live.keys() - self.kept, key=lambda one: (self.versions[one], -tokens[one], one))
        for doc_id in waiting:
            if not near[doc_id] & self.kept:
                self.kept.add(doc_id)
        self.require(repo, near, added)

    def require(self, repo: Repository, near: dict[str, set[str]], added: set[str]) -> None:
        """Assert that the keep-list equals this one, and that a replacement lasts while the kept document lives."""
        rows = once_each((row["doc_id"], row) for row in live_tables(repo.snapshot)["keep"].to_pylist())
        assert {doc_id for doc_id, row in rows.items() if row["kept"]} == self.kept
        targets = {}
        for doc_id, row in rows.items():
            target = row["duplicate_of"]
            if target is None:
                continue
            assert target in self.kept & near[doc_id]
            before = self.duplicate_of.get(doc_id)
            if doc_id not in added and before is not None and self.versions.get(before[0]) == before[1]:
                assert target == before[0]
            targets[doc_id] = (target, self.versions[target])
        self.duplicate_of = targets


@pytest.mark.parametrize("seed", first(1, range(6)))
def test_the_keep_list_follows_its_definition(tmp_path: Path, seed: int) -> None:
    """The keep-list follows its definition after each step of a random history; other tables equal a fresh run's.

    In half of the histories the sketches decide, in the others all shingles.
    """
    repo = nddup.repository.create(str(tmp_path / "repo"), mode="frozen", **SETTINGS | CONFIRM[seed % 2])
    oracle, live = Oracle(), dict[str, str]()
    for batch in draw_history(seed, steps=5):
        before = dict(live)
        for doc_id in batch.removed:
            live.pop(doc_id, None)
        live |= batch.texts
        play(repo, [batch])
        added = {doc_id for doc_id, text in batch.texts.items() if before.get(doc_id) != text}
        oracle.follow(repo, live, added)
    stored, fresh = (rows_of(one) for one in (repo.tables(), run_fresh(live, repo.snapshot.identity.config)))
    others = ("documents", "pairs", "clusters", "false_components")
    assert {name: stored[name] for name in others} == {name: fresh[name] for name in others}
    assert all(proof.holds for proof in repo.check())


def test_a_removal_promotes_and_an_addition_does_not_demote(tmp_path: Path) -> None:
    """When a longer copy arrives, `rebuild` prefers it; `frozen` does not until the kept document is removed."""
    words = [f"w{i}" for i in range(60)]
    first, longer = " ".join(words[:50]), " ".join(words[:52])
    changes = {}
    for mode in ("rebuild", "frozen"):
        repo = nddup.repository.create(str(tmp_path / mode), mode=mode, **SETTINGS)
        repo.add({"a": first})
        added = repo.add({"b": longer}).changes.to_pylist()
        removed = repo.remove(["a"])[0].changes.to_pylist()
        changes[mode] = [[tuple(row.values()) for row in rows] for rows in (added, removed)]
        assert repo.changes().to_pylist() == removed

    assert changes["frozen"] == [
        [("b", "absent", "removed", "a", "added")],
        [("a", "kept", "absent", None, "removed"), ("b", "removed", "kept", None, "promoted")],
    ]
    assert changes["rebuild"] == [
        [("a", "kept", "removed", "b", "demoted"), ("b", "absent", "kept", None, "added")],
        [("a", "removed", "absent", None, "removed")],
    ]


@settings(max_examples=examples(2, 3), deadline=None)
@example(seed=1461, store="all", is_chain=False, confirm=CONFIRM[0])  # two empty texts, one kept for the other
@given(
    seed=st.integers(0, 2**32), store=st.sampled_from(["all", "kept"]), is_chain=st.booleans(),
    confirm=st.sampled_from(CONFIRM),
)  # fmt: skip
def test_a_check_holds_after_any_history(
    tmp_path_factory: pytest.TempPathFactory, seed: int, store: str, confirm: dict[str, str], *, is_chain: bool
) -> None:
    """`index check` holds after a history, also where a later document is nearer than the keeper."""
    path, given = str(tmp_path_factory.mktemp("any") / "r"), SETTINGS | confirm
    repo = nddup.repository.create(path, mode="frozen", store=store, **given)
    for batch in draw_chain(seed) if is_chain else draw_history(seed, steps=5):
        play(repo, [batch])

    assert [proof.text() for proof in repo.check() if not proof.holds] == []


@pytest.mark.parametrize("case", first(1, ["0 frozen", "1 rebuild", "0 rebuild", "1 frozen", "2 frozen", "2 rebuild"]))
def test_the_tables_of_any_history_pass_as_a_run(tmp_path: Path, case: str) -> None:
    """`nddup check` holds for `index tables` of several batches, replaced and removed documents, in either mode."""
    seed, mode = int(case[0]), case[2:]
    repo = nddup.repository.create(str(tmp_path / "repo"), mode=mode, **SETTINGS | CONFIRM[seed % 2])
    for batch in (*draw_history(seed, steps=5), *draw_chain(seed)):
        play(repo, [batch])
    repo.write_tables(str(tmp_path / "run"))
    report = check_run(DuckRun(str(tmp_path / "run")))

    assert report.is_sound, report.text()


def test_a_check_of_the_tables_finds_another_keeper(tmp_path: Path) -> None:
    """The tables of a frozen repository pass as a run, though a nearer kept document came; one no kept one names."""
    words = [f"w{i}" for i in range(90)]
    repo = nddup.repository.create(str(tmp_path / "repo"), mode="frozen", **SETTINGS | {"sketch.size": 100})
    for name, start in {"a": 0, "c": 8, "b": 12, "far": 50}.items():
        repo.add({name: " ".join(words[start : start + 40])})
    repo.write_tables(str(tmp_path / "run"))
    run = DuckRun(str(tmp_path / "run"))

    assert check_run(run).is_sound, check_run(run).text()
    assert run.metrics.repository == "frozen"

    rewrite(tmp_path / "run", "keep", change("duplicate_of", "far", doc_id="c"))
    report = check_run(DuckRun(str(tmp_path / "run")), steps=["keep"])
    broken = [finding for finding in report.findings if finding.broken]
    assert [finding.examples for finding in broken] == [
        ("c: resemblance 0.6363636363636364 to far, of their pair null",),
        ("c: lost 0.2222222222222222 for far, recounted null",),
        ("c: duplicate_of far, which is no kept near-duplicate of it",),
    ]


def test_a_keeper_lasts_beside_a_nearer_one_and_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed document keeps its keeper when a nearer one is kept; `index check` holds, and finds another keeper."""
    words = [f"w{i}" for i in range(60)]
    repo = nddup.repository.create(str(tmp_path / "repo"), mode="frozen", **SETTINGS | {"sketch.size": 100})
    for name, start in {"a": 0, "c": 8, "b": 12}.items():
        repo.add({name: " ".join(words[start : start + 40])})

    assert once_each((row["doc_id"], row["duplicate_of"]) for row in repo.tables()["keep"].to_pylist()) == {
        "a": None, "b": None, "c": "a",
    }  # fmt: skip
    assert all(proof.holds for proof in repo.check())

    def tables_with_another_keeper(snapshot: Snapshot) -> dict[str, pa.Table]:
        tables = live_tables(snapshot)
        keep = tables["keep"]
        at = keep.schema.get_field_index("duplicate_of")
        nearer = pc.if_else(pc.is_valid(keep["duplicate_of"]), "b", keep["duplicate_of"])
        return tables | {"keep": keep.set_column(at, "duplicate_of", nearer)}

    monkeypatch.setattr(prove_version, "live_tables", tables_with_another_keeper)
    assert [proof.promise for proof in repo.check() if not proof.holds] == [
        "what is stored is what was committed",
        "the rows of each component are its documents'",
    ]


@pytest.mark.parametrize("seed", first(1, [1, 0, 2]))
def test_only_kept_documents_are_stored(tmp_path: Path, seed: int) -> None:
    """With `store="kept"` a batch stores only documents without an earlier near-duplicate, and reports all."""
    all_of_it = nddup.repository.create(str(tmp_path / "all"), mode="frozen", **SETTINGS)
    repo = nddup.repository.create(str(tmp_path / "kept"), mode="frozen", store="kept", **SETTINGS)
    history = [batch for batch in draw_history(seed, steps=6) if batch.texts]
    history = [Batch({f"{i}-{name}": text for name, text in batch.texts.items()}) for i, batch in enumerate(history)]
    reported: list[str] = []
    for batch in history:
        play(all_of_it, [batch])
        reported += repo.add(batch.texts).changes["doc_id"].to_pylist()

    kept = once(row["doc_id"] for row in live_tables(all_of_it.snapshot)["keep"].to_pylist() if row["kept"])
    stored = live_tables(repo.snapshot)
    assert once(stored["documents"]["doc_id"].to_pylist()) == kept
    assert all(stored["keep"]["kept"].to_pylist())
    assert sorted(reported) == sorted(name for batch in history for name in batch.texts)
    assert all(proof.holds for proof in repo.check())
    again = repo.add(history[-1].texts)
    assert again.commit is None


@pytest.mark.parametrize(
    ("options", "settings", "named"),
    [
        ({"mode": "frozen"}, {"sketch.kind": "mod-m", "pairs.measure": "containment", "clusters.mode": "components"},
         "--mode frozen: pairs.measure containment"),
        ({"mode": "frozen"}, {"clusters.mode": "partition"}, "--mode frozen: clusters.mode partition"),
        ({"store": "kept"}, {}, "--store kept: needs --mode frozen"),
        ({}, {"sketch.kind": "lexicon"}, "sketch.kind lexicon"),
        ({}, {"sketch.kind": "i-match", "pairs.measure": "overlap", "pairs.threshold": 1}, "sketch.kind i-match"),
        ({}, {"pairs.max_document_frequency": 7}, "pairs.max_document_frequency"),
        ({}, {"sketch.kind": "minhash", "sketch.verify": False, "clusters.mode": "partition"}, "sketch.verify"),
        ({"lowest": 0.9}, {}, "--lowest 0.9: expected more than 0 and at most pairs.threshold 0.7"),
        ({"lowest": 0.0}, {}, "--lowest 0.0"),
        ({"lowest": 3}, {}, "--lowest 3: expected a share"),
        ({"lowest": 0.5}, {"sketch.kind": "super"}, "--lowest 0.5: kind super finds pairs by keys"),
    ],
)  # fmt: skip
def test_what_could_not_be_exact_is_refused(
    tmp_path: Path, options: dict[str, Any], settings: dict[str, Any], named: str
) -> None:
    """Settings under which the tables could not be exact are refused in one line that names them; nothing is made."""
    with pytest.raises(ConfigError) as refused:
        nddup.repository.create(str(tmp_path / "repo"), **options, **settings)

    assert str(refused.value).startswith(named)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "repo").exists()


def test_texts_differ_in_a_history() -> None:
    """The histories contain copies, empty texts and many distinct texts, so that the tests above are meaningful."""
    texts = [text for seed in range(6) for batch in draw_history(seed, 5) for text in batch.texts.values()]

    assert "" in texts
    assert len(texts) > len(set(texts)) > 20
    assert draw_text.__doc__
