"""The rank of a document under a keep policy, in SQL: by the definition, with the engine's own sort."""

from collections.abc import Sequence

RANKS = {
    "longest": "-d.n_tokens",
    "first-id": "0",
    "first": "d.doc_key",
    "shortest-url": "coalesce(length(d.url), 4611686018427387904)",
}
"""SQL for the rank of a document under each named policy."""

DERIVED = {"length": "d.n_tokens", "url_length": "length(d.url)", "id": "d.doc_id", "first": "d.doc_key"}
"""SQL for the policy columns that are not read from the record."""

IS_NUMBER = "regexp_like({0}, '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{1,6}})?$')"


def rank_by(policy: str | Sequence[str], prefer: Sequence[str]) -> str:
    """Return SQL for the rank of a document by preferred sources, then by a policy; ties have equal ranks.

    Args:
        policy: a word, or columns, each an optional sign, a name and an optional type.
        prefer: globs of sources, without characters that are special in SQL.
    """
    cases = " ".join(f"WHEN {_matches(glob)} THEN {place}" for place, glob in enumerate(prefer))
    terms = [f"CASE {cases} ELSE {len(prefer)} END"] if prefer else []
    if isinstance(policy, str):
        terms.append(RANKS[policy])
    else:
        read = 0
        for column in policy:
            name, _, kind = column.strip().removeprefix("-").strip().rpartition(":")
            name, kind = (name, kind) if kind in ("number", "text") and name else (column.strip().removeprefix("-"), "")
            read += name not in DERIVED
            value = DERIVED.get(name) or f"element_at(d.policy, {read})"
            terms += _terms(f"nullif(trim(CAST({value} AS STRING)), '')", kind, is_falling=column.strip()[0] == "-")
    return f"rank() OVER (ORDER BY {', '.join(terms)})"


def _terms(value: str, kind: str, *, is_falling: bool) -> list[str]:
    """Return a column's sort terms: numbers, then texts, both in its direction, then missing or mistyped values."""
    is_number = "false" if kind == "text" else IS_NUMBER.format(value)
    place = f"CASE WHEN {value} IS NULL THEN 3 WHEN {is_number} THEN 1 ELSE {3 if kind == 'number' else 2} END"
    number, text = f"CASE WHEN {is_number} THEN {value} END", f"CASE WHEN NOT {is_number} THEN {value} END"
    way = "DESC" if is_falling else "ASC"
    ordered = [f"try_cast({number} AS DOUBLE)", f"try_cast({number} AS DECIMAL(38, 9))"]
    return [place, *(f"{one} {way}" for one in (ordered if kind == "number" else [*ordered, text]))]


def _matches(glob: str) -> str:
    """Return the SQL condition that a source matches a glob: `*` any characters, `?` one, `[ab]` one of these."""
    signs = {"*": ".*", "?": "."}
    spelled: list[str] = []
    is_inside = False
    for sign in glob:
        is_inside = sign == "[" or (is_inside and sign != "]")
        if is_inside or sign == "]":
            spelled.append("^" if sign == "!" and spelled[-1] == "[" else sign)
        else:
            spelled.append(signs.get(sign) or (f"[{sign}]" if sign in ".+(){}|$" else sign))
    return f"regexp_like(d.source, '^(?s:{''.join(spelled)})$')"
