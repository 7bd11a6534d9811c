"""Each sentence of SECURITY.md is a promise that a test holds, or advice."""

import re

from nddup.remote.buckets import PIECE
from nddup.remote.fetch import GRACE, HEADER_SECONDS, LEAST_RATE, MOST_REDIRECTS
from nddup.repository.segment_files import EXPANSION, LEAST_EXPANSION
from nddup.scanning.file_heads import SHARED_EXPANSION
from nddup.serving.connections import MAX_HEADER, PATIENCE
from nddup.serving.look_ups import MAX_BYTES
from nddup.settings.load import LONGEST_FILE, LONGEST_NUMBER, MOST_VALUES, VALUE
from tests.places import ROOT

HERE = "tests/security/"

HELD: dict[str, str] = {
    "These are executed": "test_foreign_kernels.py: test_planted_kernels_are_not_executed",
    "every folder and link on the way": "test_foreign_kernels.py: test_a_cache_that_another_could_fill_is_not_used",
    "nobody who may not write": "test_foreign_kernels.py: test_kernels_beside_the_sources_are_trusted_as_these",
    "NDDUP_CACHE_DIR too": "test_other_users.py: test_a_cache_that_others_can_write_is_not_used",
    "standard error says so": "test_foreign_kernels.py: test_planted_kernels_are_not_executed",
    "`input.max_record`": "test_small_files.py: test_small_files_take_little",
    "lines, rows and elements count": "test_small_files.py: test_small_tables_expand_to_a_bound",
    "limits on tags and depth": "tests/reading/test_one_record.py: test_a_record_of_too_many_tags",
    "input.max_expansion": "test_small_files.py: test_a_file_of_an_archive_that_expands_at_once_is_not_opened",
    "small files share 64 MB": "test_small_files.py: test_small_files_share_what_they_may_expand_to",
    "is a reject, counted": "tests/run/test_hostile_folder.py: test_a_hostile_folder_is_read_alike_by_both_engines",
    "Records that pass none": "tests/reading/test_linear.py: test_the_worst_of_each_family_is_linear",
    "short texts just below": "test_small_files.py: test_texts_just_below_the_threshold_are_compared_with_none",
    "Near-duplicates are rows of": "test_small_files.py: test_rows_of_copies_are_refused_before_they_are_made",
    "n²/2 of n copies": "test_small_files.py: test_rows_of_copies_are_refused_before_they_are_made",
    "20 groups in 1.3 MB": "test_small_files.py: test_rows_of_copies_are_refused_before_they_are_made",
    "`pairs.expand_limit=1000`": "test_small_files.py: test_rows_of_copies_are_refused_before_they_are_made",
    "Families of nearly equal": "tests/embedded/test_large_components.py: test_the_definition",
    "`local.memory` is what bounds": "tests/run/test_local_limits.py: test_each_step_stops_before_it_takes_too_much",
    "what needs more is refused": "tests/run/test_local_limits.py: test_each_step_stops_before_it_takes_too_much",
    "opens nothing": "tests/reading/test_hostile.py: test_a_feed_of_a_crawl_holds_nothing_of_its_entities",
    "the parser resolves none": "tests/reading/test_hostile.py: test_entities_and_inclusions_stay_unread",
    "control characters, line ends": "test_shown.py: test_what_a_command_prints_is_plain",
    "written to `duplicates.txt`": "test_shown.py: test_lists_for_programs_are_plain_and_exact",
    "such cells, also full-width": "test_shown.py: test_no_character_hides_a_formula",
    "readers of lists take it off": "test_shown.py: test_cells_are_read_back",
    "all are text nodes": "tests/report/test_report_pages.py: test_hostile_documents_are_text",
    "content security policy": "tests/report/test_report_pages.py: test_the_policy_stops_what_gets_in",
    "only regular files are read": "tests/scanning/test_walk.py: test_files_that_are_not_regular_are_skipped_unopened",
    "links only to what lies": "tests/scanning/test_walk.py: test_links_are_followed_where_they_stay_inside"
    "_and_reach_something_new",
    "becomes a pipe meanwhile": "tests/scanning/test_walk.py: test_a_file_that_became_a_pipe_is_refused",
    "a name leads elsewhere": "test_small_files.py: test_names_in_an_archive_lead_nowhere",
    "appears after the listing": "test_links_meanwhile.py: test_no_input_is_read_through_a_link_that_appears",
    "named as skipped": "tests/scanning/test_walk.py: test_files_that_are_not_regular_are_skipped_unopened",
    "16 KB of header": "tests/serving/test_serve.py: test_other_requests_are_refused",
    "4 MB, expanded too": "tests/serving/test_serve.py: test_bodies_are_read_or_refused",
    "a request is received whole": "tests/serving/test_serve.py: test_slow_clients_keep_nobody_out",
    "names of this machine": "tests/serving/test_serve.py: test_other_requests_are_refused",
    "elsewhere a token": "tests/serving/test_serve.py: test_a_token_is_needed_at_other_addresses",
    "compared in constant time": "tests/serving/test_serve.py: test_a_token_is_needed_at_other_addresses",
    "all their processes import": "test_current_folder.py"
    ": test_workers_of_spark_import_nothing_from_the_folder_where_it_was_started",
    "import nothing from there": "test_current_folder.py: test_worker_processes_import_nothing_from_the_current_folder",
    "nddup's registry": "test_foreign_runs.py: test_names_in_the_metrics_are_no_sql",
    "DuckDB may open": "test_foreign_runs.py: test_sql_opens_the_tables_and_nothing_else",
    "nulls, types, lengths": "test_foreign_onto.py: test_tables_that_no_run_writes_are_refused",
    "on both engines": "test_foreign_onto.py: test_spark_refuses_the_same",
    "a folder with a link": "test_foreign_runs.py: test_links_and_pipes_in_a_run_are_not_followed",
    "stores what decides": "test_stored_settings.py: test_a_repository_stores_only_what_decides_its_answers",
    "a hidden secret is never read back": "test_stored_settings.py: test_a_foreign_run_says_nothing_of_the_engine",
    "come from the caller": "test_stored_settings.py: test_a_foreign_repository_says_nothing_of_the_engine",
    "names in a version": "test_foreign_repositories.py: test_a_version_with_wrong_values_is_refused",
    "no link below the folder": "test_foreign_repositories.py: test_nothing_outside_is_read_written_or_removed",
    "follows none that appears meanwhile": "test_links_meanwhile.py: test_no_removal_follows_a_link_that_appears",
    "compared with its range": "test_foreign_repositories.py: test_shingles_that_lead_outside_are_refused",
    "mapped files that lie": "test_foreign_repositories.py: test_mapped_files_that_lie_are_made_again",
    "`index check` compares both": "test_foreign_repositories.py: test_tables_that_lie_are_refused_or_found",
    "200 times its size": "test_foreign_repositories.py: test_tables_that_expand_are_refused",
    "100,000 values": "test_foreign_settings.py: test_a_settings_file_is_read_within_bounds",
    "places that links lead to": "test_outputs_apart.py: test_a_link_does_not_hide_that_an_input_lies_in_the_output",
    "claims, conditional commits": "tests/repository/test_kills.py: test_of_two_writers_one_is_told",
    "removes nothing a living claim": "tests/repository/test_compactions.py: test_what_a_living_command_may_read_stays",
    "SHA-256 of the Parquet": "test_wrong_bits.py: test_flips_in_a_repository",
    "they are compiled again": "test_other_users.py: test_a_folder_for_kernels_can_be_named",
    "in its process group": "test_killed_parents.py: test_an_interrupt_from_the_keyboard_ends_with_one_message",
    "workers end with the process": "test_killed_parents.py: test_workers_end_with_a_killed_parent",
    "is read again by `check`": "tests/results/test_check_confirmed.py: test_changed_inputs_are_told",
    "only if they have the fingerprints": "tests/report/test_report_data.py: test_texts_that_are_gone_are_named",
    "`python -P -m nddup`": "test_current_folder.py: test_the_module_can_be_run_beside_modules_of_others",
    "the same without the current": "test_current_folder.py: test_a_child_imports_from_where_its_parent_does",
    "What is secret by Spark's": "tests/run/test_redaction.py: test_no_secret_is_in_a_run",
    "URIs are written without": "tests/run/test_redaction.py: test_a_uri_loses_its_login",
    "followed to the same scheme": "tests/remote/test_remote_inputs.py: test_redirects_keep_scheme_and_logins",
    "no more bytes than were listed": "tests/remote/test_remote_inputs.py: test_time_and_bytes_are_bounded",
    "a copy counts once it is whole": "tests/remote/test_remote_inputs.py: test_faults_give_equal_tables_or_one_line",
    "fetch what a run names": "tests/remote/test_remote_inputs.py: test_a_file_that_changes_is_found",
    "data files outside its folder": "tests/scanning/test_table_snapshots.py"
    ": test_manifests_elsewhere_are_not_opened",
    "a class is not loaded": "tests/scanning/test_table_snapshots.py"
    ": test_what_opens_the_files_of_a_table_is_not_chosen_by_its_metadata",
    "the marker is sent last": "tests/remote/test_bucket_runs.py: test_an_unfinished_run_is_no_result",
    "what was replaced meanwhile": "tests/remote/test_bucket_runs.py"
    ": test_a_run_that_is_replaced_meanwhile_is_no_result",
    "a name with `..` is refused": "tests/remote/test_bucket_runs.py: test_another_writer_is_noticed",
    "all shingles of both texts decide": "tests/embedded/test_confirmed_pairs.py"
    ": test_tables_are_those_of_the_definitions",
    "taken for equal only if": "tests/repository/test_exact.py: test_equal_sketches_of_two_texts_are_two_nodes",
    "So does `pairs.confirm=edit`": "tests/embedded/test_confirmed_pairs.py: test_tables_are_those_of_the_definitions",
    "Sketches of different seeds": "test_stored_settings.py: test_a_repository_keeps_its_seed",
    "resemblance is an estimate": "tests/sketching/test_estimates.py: test_estimates_are_those_of_the_papers",
}  # fmt: skip
"""A part of a promise, and a test that holds it. A sentence of several promises has several."""

FIGURES: dict[str, tuple[float, ...]] = {
    "small files share 64 MB": (SHARED_EXPANSION / 2**20,),
    "to the same scheme alone, 5 times": (MOST_REDIRECTS,),
    "at 16 KB a second or more beside 10 minutes (of the Hub, checked every 8 MB)": (
        LEAST_RATE / 2**10, GRACE / 60, PIECE / 2**20,
    ),
    "within 10 seconds, 16 KB of header and 4 MB, expanded too": (PATIENCE, MAX_HEADER / 2**10, MAX_BYTES / 2**20),
    "expand to 200 times its size, or 1 GB": (EXPANSION, LEAST_EXPANSION / 2**30),
    "at most 1 MB, 100,000 values, of which a text is one for each 100 characters, and 10,000 characters": (
        LONGEST_FILE / 2**20, MOST_VALUES, VALUE, LONGEST_NUMBER,
    ),
}  # fmt: skip
"""Parts of promises with figures, and these as the code has them: their tests set others, or only go far beyond."""

ADVICE = """The command line|whoever writes|Settings `spark.*`|The installation|Python, its|and what is made of it|
The machines of a Spark|Open them with|1.75 MB|1 MB of short|`nddup check` of these|
What a repository or a run says|the address, the source|is Python's own|
it looks in the current|A program that imports|Credentials belong|The permutation|they are in this|Someone who knows|
a page of 23,000|Where such a page|Where texts come|Let the texts decide|A pair can still|
two texts made alike|Set a secret|of a run that is not|its pages are expanded|
Java opens plain|somebody who may write|
Otherwise look|`nddup show RUN|`tests/""".replace("\n", "").split("|")
"""The beginnings of all other sentences: what is trusted, measured, or left to the reader."""


def sentences(page: str) -> list[str]:
    """Return the sentences about trust, the guards of the table, and the parts that colons and semicolons separate."""
    found = list[str]()
    for block in re.split(r"\n(?=[|\n#]|- )", page.partition("## What is trusted")[2].partition("## Tested")[0]):
        text = " ".join(block.split())
        if text.startswith("|"):
            text = "" if text.startswith(("|---", "| from others")) else text.split(" | ")[2]
        if not text.startswith("#"):
            found += re.split(r"(?<=[.;:]) (?=\S)", text.removeprefix("- "))
    return [one for one in found if one]


def test_every_promise_is_held() -> None:
    """No sentence without a test that is there, and no test for a sentence that went."""
    page = sentences((ROOT / "SECURITY.md").read_text())
    open_ = [
        one for one in page if not any(part in one for part in HELD) and not any(part in one[:60] for part in ADVICE)
    ]
    assert not open_
    assert not [part for part in (*HELD, *ADVICE) if not any(part in one for one in page)]
    for place in HELD.values():
        file, _, name = place.partition(": ")
        assert f"def {name}(" in (ROOT / (file if "/" in file else HERE + file)).read_text(), place


def test_figures_are_those_of_the_code() -> None:
    page = " ".join((ROOT / "SECURITY.md").read_text().split())
    for promise, figures in FIGURES.items():
        assert promise in page
        assert [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", promise)] == [*figures], promise
    assert "a header comes within a minute" in page
    assert HEADER_SECONDS == 60
