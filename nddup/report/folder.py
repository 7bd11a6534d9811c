"""Write the report of a finished run into its folder."""

from nddup.opened.finished_run import FinishedRun
from nddup.redaction import drop_login
from nddup.report.borderline import draw_page
from nddup.report.data import chunks
from nddup.report.gather import Asked, gather
from nddup.report.write import write_report
from nddup.storage.run_folder import RunFolder

PAGE = "report/index.html"


def report_run(run: FinishedRun, folder: RunFolder, asked: Asked | None = None) -> str:
    """Write `report/` into the folder of a finished run, replacing an earlier report.

    `borderline.html` beside the report's page shows the pairs closest to the threshold.

    Args:
        run: the run, opened.
        folder: the folder of the same run.
        asked: clusters whose texts are read again from the inputs if they are not stored.

    Returns:
        The path of the report's page.

    Raises:
        OutputError: if the folder cannot be written.
        ConfigError: if there is no such cluster, or an input no longer exists.
        NddupError: if inputs must be read again and have changed since the run.
    """
    shown = gather(run, asked)
    page = draw_page(run)
    folder.remove("report")
    if page is not None:
        folder.write_text("report/borderline.html", page)
    write_report(lambda name, text: folder.write_text(f"report/{name}", text), chunks(shown))
    return f"{drop_login(folder.path)}/{PAGE}"


def is_reported(folder: RunFolder) -> bool:
    """Return whether the report of a run was written to its end: its page is written last."""
    return folder.holds(PAGE)
