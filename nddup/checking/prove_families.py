"""Proof of `families`: its numbers and values are those of `keep` and `documents`, counted again.

keep, documents       --IN_FAMILIES-->    in_families      each document of a family, with what its row counts
in_families           --list_values-->    counted_values   how many documents of a family have a value
in_families, families --WRONG_NUMBERS-->  violations       families of other numbers, missing and strange ones
counted_values, families --wrong_values-->   violations    values that are not the most frequent, or miscounted
counted_values, families --wrong_extremes--> violations    another least or greatest value
"""

import hashlib
from collections.abc import Sequence

from nddup.checking.prove_documents import IS_NUMBER
from nddup.checking.prove_pairs import Violations

MOST = 100
"""Values of a column that a family lists."""

IS_DATE = "regexp_like({0}, '^[0-9]{{4}}-[0-9]{{2}}(-[0-9]{{2}})?([T ].*)?$')"

KEY = "CASE WHEN {0} IS NULL THEN '' ELSE concat('=', {0}) END"

IN_FAMILIES = """
    SELECT o.doc_id AS stands, k.lost, k.resemblance, d.group = o.group AS is_equal, d.source, d.policy
    FROM keep AS k JOIN documents AS d ON k.doc_id = d.doc_id
    JOIN documents AS o ON o.doc_id = CASE WHEN k.kept THEN k.doc_id ELSE k.duplicate_of END
"""

WRONG_NUMBERS = Violations(
    """
    SELECT * FROM (
        SELECT coalesce(f.doc_id, r.stands) AS doc_id, f.documents, r.documents AS due,
               CASE WHEN r.stands IS NULL THEN 'strange' WHEN f.doc_id IS NULL THEN 'missing'
                    WHEN f.documents IS DISTINCT FROM r.documents THEN 'documents'
                    WHEN f.equal IS DISTINCT FROM r.equal OR f.lost_most IS DISTINCT FROM r.lost_most
                         OR f.resemblance_least IS DISTINCT FROM r.resemblance_least THEN 'numbers' END AS what
        FROM families AS f FULL JOIN (
            SELECT stands, count(*) AS documents, count_if(is_equal) AS equal, max(lost) AS lost_most,
                   min(resemblance) AS resemblance_least FROM in_families GROUP BY stands
        ) AS r ON f.doc_id = r.stands
    ) AS compared WHERE what IS NOT NULL
    """,
    {
        "strange": "{doc_id}: a family, but no document stands for itself there",
        "missing": "{doc_id}: kept, without a family",
        "documents": "{doc_id}: {documents} documents, counted {due}",
        "numbers": "{doc_id}: equal, lost_most or resemblance_least is another",
    },
)


def list_values(places: Sequence[int | None]) -> str:
    """Return the SELECT of `counted_values`; the columns of `keep.ledger`: places in `policy`, None for the source."""
    values = ["source" if place is None else f"element_at(policy, {place + 1})" for place in places]
    counted = (
        f"SELECT stands, {at} AS place, {value} AS value, count(*) AS n FROM in_families GROUP BY stands, {value}"  # noqa: S608
        for at, value in enumerate(values)
    )
    return " UNION ALL ".join(counted)


def wrong_values(columns: Sequence[str]) -> Violations:
    """Return the values that `families.ledger` should not list, or should list otherwise."""
    return Violations(
        f"""
        SELECT * FROM (
            SELECT coalesce(a.doc_id, r.stands) AS doc_id, coalesce(a.value, r.value) AS value, a.n, r.n AS due,
                   CASE WHEN r.stands IS NULL OR (r.turn > {MOST} AND a.doc_id IS NOT NULL) THEN 'strange'
                        WHEN a.doc_id IS NULL AND r.turn <= {MOST} THEN 'missing'
                        WHEN a.n <> r.n THEN 'count'
                        WHEN NOT a.is_named OR a.many <> r.many THEN 'column' END AS what
            FROM (
                SELECT doc_id, place, is_named, many, v.value AS value, v.documents AS n
                FROM (SELECT doc_id, place, is_named, l.distinct AS many, explode(l.values) AS v
                      FROM ({_entries(columns)}) AS entries) AS exploded
            ) AS a FULL JOIN (
                SELECT stands, place, value, n, count(*) OVER (PARTITION BY stands, place) AS many,
                       row_number() OVER (PARTITION BY stands, place ORDER BY n DESC, value) AS turn
                FROM counted_values
            ) AS r ON a.doc_id = r.stands AND a.place = r.place
                   AND {KEY.format("a.value")} = {KEY.format("r.value")}
        ) AS compared WHERE what IS NOT NULL
        """,  # noqa: S608 - our names
        {
            "strange": "{doc_id}: lists {value}, which is no value of it, or none of the most frequent",
            "missing": "{doc_id}: does not list {value}, which {due} of its documents have",
            "count": "{doc_id}: {value} in {n} documents, counted {due}",
            "column": "{doc_id}: another name of a column, or number of its different values",
        },
    )


def wrong_extremes(columns: Sequence[str]) -> Violations:
    """Return the families whose least or greatest value in a column is another."""
    number = f"CASE WHEN {IS_NUMBER.format('trim(value)')} THEN try_cast(trim(value) AS DOUBLE) END"
    bounds = (("least", "min"), ("greatest", "max"))
    is_other = " OR ".join(f"try_cast(trim(l.{name}) AS DOUBLE) IS DISTINCT FROM r.{of}_number" for name, of in bounds)
    is_late = " OR ".join(f"l.{name} IS DISTINCT FROM r.{of}_text" for name, of in bounds)
    return Violations(
        f"""
        SELECT doc_id, l.least AS least, l.greatest AS greatest FROM ({_entries(columns)}) AS e JOIN (
            SELECT stands, place, count(value) AS valid, count({number}) AS numbers,
                   count_if({IS_DATE.format("value")}) AS dates, min({number}) AS min_number,
                   max({number}) AS max_number, min(value) AS min_text, max(value) AS max_text
            FROM counted_values GROUP BY stands, place
        ) AS r ON e.doc_id = r.stands AND e.place = r.place
        WHERE CASE WHEN valid > 0 AND numbers = valid THEN {is_other} WHEN valid > 0 AND dates = valid THEN {is_late}
                   ELSE l.least IS NOT NULL OR l.greatest IS NOT NULL END
        """,  # noqa: S608 - our names
        "{doc_id}: least {least}, greatest {greatest} of a column, which its documents do not have",
    )


def _entries(columns: Sequence[str]) -> str:
    """Return the SELECT of each column's entry in `ledger`; its name is compared by its digest, as it may be any."""
    return " UNION ALL ".join(
        f"SELECT doc_id, {at} AS place, element_at(ledger, {at + 1}) AS l,"  # noqa: S608 - numbers
        f" sha2(element_at(ledger, {at + 1}).name, 256) = '{hashlib.sha256(name.encode()).hexdigest()}' AS is_named"
        f" FROM families WHERE array_size(ledger) = {len(columns)}"
        for at, name in enumerate(columns)
    )
