"""`nddup run`: a collection to clusters."""

import argparse
import sys
from typing import Any

from nddup.commands.options import add_inputs, add_master, add_parser

EPILOG = """what it leaves in DIR:
  documents/ rejects/ pairs/ clusters/ members/ keep/ false_components/
                                                              tables, Parquet
  duplicates.txt                                              a cluster a line: ids, tab, common features; or its parts
  metrics.json                                                what was counted
  texts/ report/index.html                                    the run as a page, which opens from disk

examples:
  nddup run samples/debdocs --output out/demo
  nddup run pages.xml --output out --set input.record=page --set input.id=@id --set input.content=title+body
  nddup run news.jsonl --output out --set pairs.measure=overlap --set pairs.threshold=85
        85 is a count of common features, 0.85 a share of the larger sketch
  nddup run pages/ --output out --set keep.policy=first --set output.kept=jsonl
  nddup run pages/ --output out --resume                      what a run that was killed had finished is not repeated
  nddup run pages/ --output out --set spark.driver.memory=8g --master 'local[4]'
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Its arguments."""
    parser = add_parser(
        commands, "run", summary="a collection to clusters", epilog=EPILOG,
        description="Read a collection and find its near-duplicates.",
    )  # fmt: skip
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the run; must not exist")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="replace the run that is in DIR")
    existing.add_argument(
        "--resume", action="store_true",
        help="finish the run that is in DIR: what it would make again the same is taken; begin where there is none",
    )  # fmt: skip
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="of the line of each stage")
    add_inputs(parser)
    add_master(parser)


def execute(options: argparse.Namespace) -> int:
    """Run the job and print its summary."""
    from nddup.settings.load import load_config  # noqa: PLC0415

    config = load_config(options.config, options.assignments)
    from nddup.metrics import RunMetrics  # noqa: PLC0415
    from nddup.results.show import summarise  # noqa: PLC0415
    from nddup.run.job import run_job  # noqa: PLC0415
    from nddup.run.progress import start_logging  # noqa: PLC0415
    from nddup.run.session import start_session  # noqa: PLC0415
    from nddup.run.spark_progress import SparkProgress  # noqa: PLC0415

    start_logging(options.log_format)
    spark = start_session(master=options.master, settings=config.spark)
    metrics = run_job(
        spark,
        options.inputs,
        options.output,
        config,
        overwrite=options.overwrite,
        resume=options.resume,
        log_format=options.log_format,
    )
    report = None
    if config.output.report:
        from nddup.results.report.folder import report_run  # noqa: PLC0415

        with SparkProgress(spark, form=options.log_format).stage("report") as shown:
            report = report_run(spark, options.output)
            shown.notes.append(report)
    sys.stdout.write(summarise(RunMetrics.read(metrics), options.output, report=report))
    return 0
