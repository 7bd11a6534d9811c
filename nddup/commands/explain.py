"""`nddup explain`: what settings will find and cost, before a long run."""

import argparse
import os
from dataclasses import replace
from typing import Any

from nddup.commands.options import add_parser, add_settings, positive, share
from nddup.errors import ConfigError
from nddup.ground.progress import Steps
from nddup.ground.shown import parse_size, print_json, print_out

EPILOG = """three questions:
  nddup explain [--config FILE] [--set a.b=c]...
        the settings of a run: the error of an estimated resemblance, which pairs the threshold finds, how many ids
        two sketches must share, and the memory and disk space for a million documents
  nddup explain --bands B --rows R
        locality-sensitive hashing: a signature of B x R slots is cut into B bands of R rows. Two documents become a
        candidate if at least one whole band is equal. At resemblance s the probability is 1 - (1 - s^R)^B, an S-curve
  nddup explain --support K --size N
        sketches of N ids that are near-duplicates if they share K of them: the papers' k

how to read the curves: choose a threshold where the curve is steep. To its left lie false candidates, to its right
missed pairs. A larger sketch makes the curve steeper: four times the ids halve the error.

examples:
  nddup explain                                               the default settings
  nddup explain --set sketch.size=400 --set pairs.threshold=0.9 --at 0.87
  nddup explain --bands 20 --rows 5 --png curve.png           the curve as a figure
  nddup explain --support 85 --size 100                       the settings of ROMIP 2005
  nddup explain --config romip2005
  nddup explain --documents 1000000000 --memory 2GB           tasks, bytes and hours of the pairs stage on Spark
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "explain", summary="show what settings will find and cost", epilog=EPILOG,
        description="Explain what a sketch and a threshold find, miss and cost. Reads no documents.",
    )  # fmt: skip
    parser.add_argument("--bands", type=positive, metavar="B", help="bands of a signature; requires --rows")
    parser.add_argument("--rows", type=positive, metavar="R", help="slots of a band; requires --bands")
    parser.add_argument("--support", type=positive, metavar="K", help="least number of common ids; requires --size")
    parser.add_argument("--size", type=positive, metavar="N", help="ids of a sketch; requires --support")
    parser.add_argument("--at", type=share, action="append", default=[], metavar="S",
                        help="add this resemblance to the table; may be repeated")  # fmt: skip
    parser.add_argument("--documents", type=positive, metavar="N",
                        help="tasks, bytes and hours that the pairs of N documents take on Spark")  # fmt: skip
    parser.add_argument("--memory", metavar="M",
                        help="with --documents: memory of the Python worker of a task; else 2GB, or what large"
                             " blocks take")  # fmt: skip
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of the settings instead, for editors of YAML files"
    )
    parser.add_argument("--png", metavar="FILE", help="draw the curve to FILE, which must not exist")
    add_settings(parser)


def execute(options: argparse.Namespace) -> int:
    """Print the explanation, and draw the curve on request.

    Raises:
        ConfigError: for options that do not go together, or if there is no curve to draw.
    """
    if options.schema:
        from nddup.settings.schema import Config  # noqa: PLC0415

        print_json(Config.model_json_schema())
        return 0
    asked = {name for name in ("bands", "rows", "support", "size") if getattr(options, name) is not None}
    if asked and asked not in ({"bands", "rows"}, {"support", "size"}):
        given = ", ".join(f"--{name}" for name in ("bands", "rows", "support", "size") if name in asked)
        raise ConfigError(f"explain: expected --bands with --rows, or --support with --size, got {given}")
    if asked and (options.config or options.assignments):
        raise ConfigError("explain: either --config and --set, or --bands with --rows, or --support with --size")
    if asked and options.documents is not None:
        raise ConfigError("explain: --documents goes with the settings of a run, not with --bands or --support")
    if "size" in asked and options.support > options.size:
        raise ConfigError(f"explain: --support {options.support} is more than --size {options.size}")
    with Steps("explain", 1) as steps:
        steps.begin("compute")
        found = _explain(options, asked)
    if options.png:
        if not found.curves:
            raise ConfigError("--png: these settings have no curve to draw")
        from nddup.explaining.curves import draw_curves  # noqa: PLC0415

        draw_curves(found.curves, found.mark, options.png)
    print_out(found.text())
    return 0


def _explain(options: argparse.Namespace, asked: set[str]) -> Any:  # noqa: ANN401 - an Explanation, loaded here
    from nddup.explaining.curves import (  # noqa: PLC0415
        explain_bands,
        explain_capacity,
        explain_support,
    )
    from nddup.explaining.effects import explain_settings  # noqa: PLC0415
    from nddup.settings.load import load_config  # noqa: PLC0415

    if "bands" in asked:
        return explain_bands(options.bands, options.rows, asked=options.at)
    if "size" in asked:
        return explain_support(options.support, options.size, asked=options.at)
    config = load_config(options.config, options.assignments, os.environ)
    found = explain_settings(config, asked=options.at)
    if options.documents is None:
        return found
    memory = _worker_memory(options.memory) if options.memory else None
    lines = explain_capacity(config, documents=options.documents, memory=memory, ids_of_sketch=found.ids)
    return replace(found, more=(*found.more, "", *lines))


def _worker_memory(given: str) -> int:
    """Return the bytes of --memory.

    Raises:
        ConfigError: if it is not a size.
    """
    try:
        return parse_size(given)
    except ValueError as error:
        raise ConfigError(f"--memory {given}: {error}") from error
