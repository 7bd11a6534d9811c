"""The scripts of `nddup --completion`: what bash completes is what the parser knows."""

import subprocess

import pytest

from nddup.cli import build_parser, main, spell_completion
from nddup.commands import COMMANDS
from nddup.settings.schema import Config
from tests.places import ROOT


def completed(*words: str) -> set[str]:
    """Return what bash offers for the last of these words."""
    script = spell_completion(build_parser(), "bash")
    call = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nddup 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
    told = subprocess.run(
        ["/bin/bash", "-c", f"{script}\n{call}", "bash", *words], check=True, capture_output=True, text=True, cwd=ROOT
    )  # fmt: skip
    return set(told.stdout.split())


def test_bash_completes_commands_options_and_settings() -> None:
    """The first word is a command, then come its options; after `--set` the settings; other words are files."""
    assert completed("nddup", "") == set(COMMANDS)
    assert completed("nddup", "--ver") == {"--version"}
    assert completed("nddup", "show", "--do") == {"--doc"}
    assert completed("nddup", "index", "") == {
        "create", "add", "remove", "query", "tables", "list", "check", "compact",
    }  # fmt: skip
    assert completed("nddup", "index", "add", "--rep") == {"--replace"}
    assert completed("nddup", "run", "a.jsonl", "--set", "") == {
        f"{section}.{key}="
        for section, field in Config.model_fields.items()
        for key in getattr(field.annotation, "model_fields", {})
    }
    assert completed("nddup", "run", "pyproj") == {"pyproject.toml"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_too(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It names every command and every setting, and is printed with exit status 0."""
    with pytest.raises(SystemExit) as ended:
        main(["--completion", shell])

    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(
        name in told for name in (*COMMANDS, "keep.policy", "output-kept" if shell == "fish" else "--output-kept")
    )
