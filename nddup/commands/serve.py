"""`nddup serve`: answer look-ups in a repository over HTTP, on this machine."""

import argparse
from typing import Any

from nddup.commands.options import add_parser
from nddup.errors import OutputError
from nddup.progress import Steps
from nddup.shown import one_line, print_out

EPILOG = """addresses:
  GET  /                       a page: paste a text, see what is like it
  GET  /status                 the repository, its version and its number of documents
  POST /query?top=5&bands=60   the body is a text or a page in UTF-8, at most 4 MB; the rows of the table `matches`

example:
  nddup serve pages --port 8765 &
  curl --data-binary @new.html http://127.0.0.1:8765/query
"""


def add(commands: "argparse._SubParsersAction[Any]") -> None:
    """Declare the arguments."""
    parser = add_parser(
        commands, "serve", summary="answer look-ups in a repository over HTTP, on this machine", epilog=EPILOG,
        description="Answer look-ups in the newest version of a repository until Ctrl-C. Read-only; only programs of"
        " this machine\nare answered, at 127.0.0.1.",
    )  # fmt: skip
    parser.add_argument("repo", metavar="REPO", help="folder of the repository, or s3://bucket/…")
    parser.add_argument("--port", type=int, default=8765, metavar="N", help="0: any that is free (default 8765)")


def execute(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C.

    Raises:
        OutputError: if the port cannot be used.
    """
    with Steps("serve", 2) as steps:
        steps.begin("open the repository")
        from nddup.start_up import prevent_blas_import, prevent_pandas_import  # noqa: PLC0415

        prevent_pandas_import()
        prevent_blas_import()
        from nddup.repository.opened_repository import Repository  # noqa: PLC0415
        from nddup.repository.serve import HOST, LookUps  # noqa: PLC0415
        from nddup.run.compiling import compile_once  # noqa: PLC0415

        repository = Repository(options.repo)
        compile_once(steps)
        try:
            server = LookUps(repository, options.repo, options.port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"--port {options.port}: cannot be used ({reason}); give another, or 0") from error
    print_out(f"{one_line(options.repo)}: http://{HOST}:{server.server_port}/ answers look-ups; Ctrl-C ends it\n")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
