"""`nddup serve`: look-ups in a repository over HTTP."""

import argparse
import os
import signal
import sys
from types import FrameType
from typing import Any

from nddup.commands.options import add_parser
from nddup.errors import OutputError
from nddup.ground.progress import Steps
from nddup.ground.shown import one_line, print_out
from nddup.ground.start_up import prevent_pandas_import

EPILOG = """addresses:
  GET  /                       a page: paste a text, see what is like it
  GET  /status                 the repository, its version and its number of documents
  GET  /health, GET /metrics   for what watches it; metrics as Prometheus reads them
  POST /query?top=5&bands=60   the body is a text, a page, {"text": …} or a form with `text`, at most 4 MB, perhaps
                               gzip or deflate; the rows of the table `matches`

environment:
  NDDUP_SERVE_TOKEN            programs must show it (Authorization: Bearer …); needed where --host is not this machine

example:
  nddup serve pages --port 8765 &
  curl -H 'Content-Type: text/html' --data-binary @new.html http://127.0.0.1:8765/query
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "serve", summary="answer look-ups in a repository over HTTP", epilog=EPILOG,
        description="Answer look-ups in the newest version of a repository until Ctrl-C or SIGTERM; what was begun is"
        " still\nanswered. Read-only; only programs of this machine are answered, unless --host says otherwise.",
    )  # fmt: skip
    parser.add_argument("repo", metavar="REPO", help="folder of the repository, or s3://bucket/…")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="0: any that is free (default 8765)")
    parser.add_argument("--host", default="127.0.0.1", metavar="NAME", help="address to listen at (default 127.0.0.1)")


def execute(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM; a second one ends it at once.

    Raises:
        ConfigError: if other machines could ask without a token.
        OutputError: if the address cannot be used.
    """
    with Steps("serve", 2) as steps:
        steps.begin("open the repository")
        prevent_pandas_import()
        from nddup.compiling.install import compile_once  # noqa: PLC0415
        from nddup.repository.opened_repository import Repository  # noqa: PLC0415
        from nddup.serving.look_ups import TOKEN, LookUps, is_loopback, listen_at  # noqa: PLC0415

        repository = Repository(options.repo)
        try:
            listening = listen_at(options.host, options.port)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            where = f"--host {options.host} --port {options.port}"
            raise OutputError(f"{where}: cannot be used ({reason}); give another, or --port 0") from error
        look_ups = LookUps(repository, options.repo, listening, os.environ.get(TOKEN))
        compile_once(steps)

    if not is_loopback(listening):
        sys.stderr.write("nddup serve: other machines can ask, and the token is sent unencrypted: put a proxy with TLS"
                         " before it\n")  # fmt: skip
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{look_ups.port}/"

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        look_ups.server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    print_out(f"{one_line(options.repo)}: {one_line(address)} answers look-ups; Ctrl-C ends it\n")
    sys.stdout.flush()
    look_ups.server.serve()
    return 0
