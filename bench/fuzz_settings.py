"""Fuzz the configuration: any YAML and any `--set` is accepted, or refused with one line that says what is wrong.

Accepted settings mean the same after a run has written them down and they are read again, and every choice that
follows from them can be made.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import BaseModel

from bench.fuzz_values import seconds
from nddup.errors import ConfigError
from nddup.settings.load import build_config, load_config
from nddup.settings.plan import bands_of, finder_of, kind_of, recipe_of, threshold_of
from nddup.settings.schema import Config
from nddup.stages.stage import settings_of

LONGEST = 5.0
"""Most CPU seconds of a case; choosing the bands of a signature of 100,000 slots takes one."""

LONGEST_LINE = 20_000
"""Most characters of an error: every wrong key, with what was expected and what was given."""

DEFAULTS = Config()
SECTIONS = tuple(Config.model_fields)
KEYS = tuple(
    f"{section}.{key}"
    for section in SECTIONS
    if isinstance(getattr(DEFAULTS, section), BaseModel)
    for key in type(getattr(DEFAULTS, section)).model_fields
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ODD_KEYS = ("", *_words(". sketch sketch. .size sketch.sise spark spark.x spark.sql.x.y a.b.c \u00e9.x 1.2"))
BOMB = "[" + "&a0 [x, x]" + "".join(f", &a{n + 1} [*a{n}, *a{n}]" for n in range(60)) + "]"
"""Each list holds the one before twice: 2^60 texts if it were expanded."""

NUMBERS = (
    *_words("0 1 -1 2 5 8 20 100 200 1000 100000 1e5 0.5 1.0 0.999999999 1e-9 0.1234567891 .nan .inf -.inf 1e400"),
    *_words("0x10 0b1 0b_ 0o7 1_000 64MB 9gb 1:30 9223372036854775807 9223372036854775808"),
    *("1 gb", "9" * 30, "9" * 5_000, "0x" + "f" * 5_000),
)
WORDS = (
    *_words("null ~ true no '' \" ' auto all resemblance overlap containment minhash mod-m min-s super min-perm"),
    *_words("i-match lexicon keywords linear rabin datasketch partition english [english] [] [[ {} @id a|b *a html(a"),
    *_words("!!python/none % 2001-01-01 2001-13-45 \u00e9 \ud800 \0"),
    *("{a: b}", "{[a]: b}", "? a", "&a [*a]", "!x y", "a: b", "a\nb", "a\u2028b", "[" * 500, "x" * 3_000, BOMB),
)


def made_value(choose: random.Random) -> str:
    """Return a value as a user may type it, valid or not."""
    if choose.randrange(12) == 0:
        return "".join(chr(choose.choice((choose.randrange(128), choose.randrange(0x3000)))) for _ in range(6))
    return choose.choice(NUMBERS if choose.randrange(2) else WORDS)


def made_assignment(choose: random.Random) -> str:
    """Return an assignment for `--set`, mostly of an existing key."""
    key = choose.choice(KEYS) if choose.randrange(8) else choose.choice(ODD_KEYS)
    return f"{key}{'=' if choose.randrange(50) else ''}{made_value(choose)}"


def made_yaml(choose: random.Random) -> bytes:
    """Return a configuration file of sections and keys, sometimes with a value for a section, sometimes damaged."""
    lines = []
    for _ in range(choose.choice((1, 1, 2, 4))):
        key = choose.choice(KEYS)
        section, _, name = key.partition(".")
        lines.append(
            f"{section}: {made_value(choose)}"
            if choose.randrange(8) == 0
            else f"{section}: {{{name}: {made_value(choose)}}}"
        )
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    if choose.randrange(6) == 0:
        at = choose.randrange(len(data))
        data = (
            data[:at]
            + choose.choice((b"", b"\xff", b"\t", b"\n", b": ", b"- ", b"---\n"))
            + data[at + choose.randrange(3) :]
        )
    return data


def check_accepted(config: Config) -> None:
    """Check that choices can be derived from accepted settings, and that the settings survive `_RUN.json`.

    Raises:
        AssertionError: if they change when they are read again.
        Exception: if a choice cannot be made, which is a fault.
    """
    recipe_of(config)
    threshold_of(config)
    kind_of(config.sketch)
    finder_of(config)
    if finder_of(config) is not None and config.sketch.kind == "minhash":
        bands_of(config)
    written = json.loads(json.dumps(settings_of(config), allow_nan=False))
    again = build_config(written, origin="again")
    unstored = {"engine": config.engine, "local": config.local, "against": config.against, "passages": config.passages}
    assert again.model_copy(update=unstored) == config  # noqa: S101 - what a fuzzer finds is an assertion


def read_settings(load: Callable[[], Config]) -> str:
    """Load a configuration; return `accepted` or `refused`.

    Raises:
        AssertionError: if the error is not one short printable line.
    """
    try:
        config = load()
    except ConfigError as error:
        said = str(error)
        assert said.isprintable(), said  # noqa: S101
        assert len(said) < LONGEST_LINE, len(said)  # noqa: S101
        said.encode()
        return "refused"
    check_accepted(config)
    return "accepted"


def made_case(number: int, seed: int) -> tuple[bytes | None, list[str]]:
    """Return a case by its number: a file or None, and assignments."""
    choose = random.Random(f"{seed}/{number}")  # noqa: S311 - the same case again, from its number
    file = made_yaml(choose) if choose.randrange(3) == 0 else None
    return file, [made_assignment(choose) for _ in range(choose.choice((0, 1, 1, 2, 3)))]


def fuzz_settings(cases: int, seed: int) -> Counter[str]:
    """Load so many configurations: a file, assignments, or both.

    Raises:
        RuntimeError: naming the case that fails.
    """
    outcomes: Counter[str] = Counter()
    with NamedTemporaryFile(suffix=".yaml") as file:
        for number in range(cases):
            data, assignments = made_case(number, seed)
            Path(file.name).write_bytes(data or b"")
            load = partial(load_config, file.name if data is not None else None, assignments)
            where = f"settings {number} of seed {seed}"
            try:
                taken = seconds(lambda load=load: outcomes.update([read_settings(load)]), LONGEST)  # type: ignore[misc]
            except Exception as error:
                raise RuntimeError(f"{where}: {error!r}") from error
            if taken > LONGEST:
                raise RuntimeError(f"{where}: took more than {LONGEST} s")
    return outcomes
