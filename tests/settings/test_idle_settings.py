"""Settings without effect: an empty value is refused; what does nothing beside another setting is said in a note."""

from typing import Any

import pytest

import nddup
from nddup.api.run_object import Run
from nddup.errors import ConfigError
from nddup.report.summary import notes
from nddup.settings import profiles
from nddup.settings.idle import say_idle, say_unused
from nddup.settings.load import build_config, load_config, nest_settings
from nddup.stages.stage import settings_of

MINHASH = {"sketch.kind": "minhash", "sketch.verify": False, "sketch.bands": 40, "sketch.rows": 5}

IDLE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"clusters.mode": "none"}, {"clusters.max_sets": 1}),
    ({"clusters.mode": "components"}, {"clusters.max_nodes": 1}),
    ({"clusters.mode": "partition"}, {"clusters.max_members": 1}),
    ({"clusters.mode": "none"}, {"clusters.max_listed": 1}),
    ({"clusters.miner": "pivot"}, {"clusters.fpgrowth_limit": 2}),
    ({"pairs.measure": "containment", "sketch.kind": "mod-pow2", "clusters.mode": "none"}, {"pairs.max_edges": 1}),
    ({"sketch.kind": "mod-pow2", "clusters.mode": "none"}, {"pairs.max_edges": 1}),
    ({"sketch.kind": "whole"}, {"pairs.threshold": 0.2}),
    (MINHASH | {"clusters.mode": "none"}, {"pairs.threshold": 0.99}),
    ({"sketch.kind": "mod-m", "sketch.modulus": 2}, {"sketch.size": 3}),
    ({"input.markup": "text"}, {"input.text": "main"}),
    ({}, {"keep.all_known": True}),
]
"""Settings of a run, and one that changes nothing beside them."""

ROWS = [
    {"id": f"{name}{n}", "text": " ".join(f"{name}{k}" for k in range(40) if k != 9 * n) + f" {n}"}
    for name in "abc"
    for n in range(4)
]


def tables_of(run: Run) -> dict[str, Any]:
    """Return the tables of a run as lists of rows."""
    names = ("documents", "pairs", "clusters", "members", "keep")
    return {name: getattr(run, name).to_pylist() for name in names}


@pytest.mark.parametrize(
    ("settings", "idle"),
    [pytest.param(*one, marks=[pytest.mark.nightly] * (at % 2)) for at, one in enumerate(IDLE)],
    ids=[f"{next(iter(idle))} {n}" for n, (_, idle) in enumerate(IDLE)],
)
def test_what_has_no_effect_is_said(settings: dict[str, Any], idle: dict[str, Any]) -> None:
    """A run with the idle setting has the same tables as one without it, and only the former says so."""
    without, with_it = (
        nddup.find_duplicates(ROWS, **given, local={"processes": 1}) for given in (settings, settings | idle)
    )

    assert tables_of(without) == tables_of(with_it)
    assert not [note for note in notes(without.metrics) if note.startswith("without effect")]
    said = [note for note in notes(with_it.metrics) if note.startswith("without effect")]
    assert len(said) == 1
    assert said[0].startswith(f"without effect: {next(iter(idle))}: ")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"output.report": False, "output.texts": 9}, "output.texts: there is no report (output.report)"),
        ({"output.report": False, "output.texts": 0}, None),
        ({"output.texts": 0, "output.texts_read": "1MB"}, "output.texts_read: output.texts 0 reads none"),
        ({"input.format": "jsonl", "input.statuses": "all"}, "input.statuses: input.format is jsonl, not warc"),
        ({"input.format": "warc", "input.statuses": "all"}, None),
        ({"input.format": "parquet", "input.quote": "none"}, "input.quote: input.format is parquet, not csv"),
        ({"pairs.max_edges": 1, "clusters.max_sets": 1, "pairs.threshold": 0.9, "sketch.size": 9}, None),
        ({"pairs.measure": "overlap", "pairs.threshold": 0.7}, None),
        (
            {"clusters.mode": "none", "clusters.max_sets": 1, "clusters.max_nodes": 1},
            "clusters.max_sets, clusters.max_nodes: clusters.mode none mines no sets",
        ),
    ],
)
def test_settings_of_output_and_input(settings: dict[str, Any], said: str | None) -> None:
    """What decides nothing is named with the reason, keys of one reason together; what decides something is not."""
    sections = {key: value for key, value in settings.items() if not key.startswith("output")}
    nested = nest_settings(sections, origin="test")
    nested["output"] = {key.removeprefix("output."): value for key, value in settings.items() if key not in sections}

    expected = [] if said is None else [f"without effect: {said}"]
    assert say_idle(settings_of(build_config(nested, origin="test"))) == expected


@pytest.mark.parametrize(
    ("settings", "on_spark", "here"),
    [
        ({}, [], []),
        (
            {"passages.min_tokens": 9, "against.max_document_frequency": 5},
            ["against.max_document_frequency: nddup against", "passages.min_tokens: nddup passages"],
            ["against.max_document_frequency: nddup against", "passages.min_tokens: nddup passages"],
        ),
        ({"local.memory": "1GB"}, [], []),
        ({"local.memory": "1GB", "local.processes": 1}, ["local.processes: this run is on Spark"], []),
        (
            {"engine": "spark", "local.memory": "1GB", "local.processes": 1},
            ["local.memory, local.processes: this run is on Spark"],
            [],
        ),
    ],
)
def test_settings_of_other_commands_and_engines(settings: dict[str, Any], on_spark: list[str], here: list[str]) -> None:
    """A run does not store them: what they say is said by its engine, in `metrics.json`."""
    engine = {name: settings[name] for name in settings if name == "engine"}
    nested = nest_settings({name: settings[name] for name in settings if name not in engine}, origin="test")
    config = build_config(nested | engine, origin="test")
    for expected, is_on_spark in ((on_spark, True), (here, False)):
        said = say_unused(config, is_on_spark=is_on_spark)
        assert [one.split(" heeds")[0] for one in said] == [f"without effect: {one}" for one in expected]


def test_a_run_says_which_settings_are_of_other_commands() -> None:
    """In the notes of its summary."""
    settings: dict[str, Any] = {"passages.min_tokens": 9, "local.processes": 1}
    run = nddup.find_duplicates(ROWS, **settings)
    assert [note for note in notes(run.metrics) if "without effect" in note] == [
        "without effect: passages.min_tokens: nddup passages heeds it, a run does not"
    ]


@pytest.mark.parametrize("name", sorted(profiles()))
def test_no_profile_has_a_setting_without_effect(name: str) -> None:
    """Each setting of a profile does something; so it is with the defaults, and what an older run left unsaid."""
    assert say_idle(settings_of(load_config(name))) == say_idle({}) == []


@pytest.mark.parametrize("key", ["keep.force", "keep.max_lost", "keep.prefer", "input.limit", "lexicon.saved"])
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_value_is_refused(key: str, text: str) -> None:
    """As of a variable of the shell that is not set: the rule would have no effect. `null` says that none is meant."""
    said = "expected a value, got an empty text; is a variable of the shell not set"
    with pytest.raises(ConfigError, match=rf"^--set {key}= ?: {said}"):
        load_config(assignments=[f"{key}={text}"])
    name = f"NDDUP_{key.replace('.', '_').upper()}"
    with pytest.raises(ConfigError, match=f"^{name}: {said}"):
        load_config(variables={name: text})

    assert load_config(assignments=[f"{key}=null", "spark.jars=", "passages.replace=''"]) is not None
