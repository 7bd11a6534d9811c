"""Words, terms, lexicons and sketches of words against plain Python that follows the same definitions."""

import json
from collections import Counter
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nddup.sketching.permutations import mix, mix_keys
from nddup.sketching.rolling_hash import hash_tokens, most_tokens
from nddup.sketching.tokens import WORD_TABLE, tokenise
from nddup.sketching.vocabulary import LANGUAGES, LexiconRule, TermCounts, Terms, Vocabulary, letter_number, term_ids
from nddup.sketching.word_sketches import WordRule, WordSketcher

ENGLISH = LexiconRule(("english", "russian"), stems=True, stops=True, low="0.1", high="0.5")
PLAIN = LexiconRule((), stems=False, stops=False, low="0", high="1")

texts = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.text("ab Bé,薔東 ώΣσς Й́ İß1", max_size=40),
        st.lists(st.sampled_from(["the", "a", "rose", "Roses", "документ", "документы", "и", "is", "2014"])).map(
            " ".join
        ),
    ),
    max_size=8,
)


def as_arrow(documents: list[str | bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return texts as a buffer and offsets."""
    raw = [text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in documents]
    data = np.frombuffer(b"".join(raw), np.uint8)
    return data, np.cumsum([0, *(len(text) for text in raw)], dtype=np.int64)


class Heard:
    """The words that a vocabulary introduced, by number."""

    def __init__(self, most: int = 1 << 20) -> None:
        self.words: list[str] = []
        self.starts = 0
        self.vocabulary = Vocabulary(self.words.extend, self.forget, most)

    def forget(self) -> None:
        """Forget all words, and count the new start."""
        self.words.clear()
        self.starts += 1

    def spell(self, documents: list[str]) -> list[list[str]]:
        """Number the texts and spell them again."""
        data, bounds = as_arrow(list(documents))
        tokens, offsets = self.vocabulary.number(data, bounds)
        return [[self.words[t] for t in tokens[low:high].tolist()] for low, high in pairwise(offsets.tolist())]


@given(first=texts, second=texts)
def test_numbered_words_spell_the_tokens(first: list[str], second: list[str]) -> None:
    """The numbers spell the tokens in order, also of later texts, and each word is introduced once."""
    heard = Heard()

    for documents in (first, second):
        assert heard.spell(documents) == [tokenise(text) for text in documents]
    assert len(set(heard.words)) == len(heard.words)


@given(raw=st.lists(st.binary(max_size=30), max_size=5))
def test_bytes_that_are_no_text_part_words_as_in_shingles(raw: list[bytes]) -> None:
    """Two tokens have the same number iff their hashes in shingles are equal, whatever the bytes."""
    data, bounds = as_arrow(list(raw))
    tokens, offsets = Heard().vocabulary.number(data, bounds)
    hashes = np.empty(most_tokens(data.size) + 2, np.uint64)
    hashed: list[int] = []
    for low, high in pairwise(bounds.tolist()):
        hashed += hashes[: hash_tokens(data, low, high, WORD_TABLE, hashes)].tolist()

    assert offsets[-1] == len(hashed)
    assert len(set(zip(tokens.tolist(), hashed, strict=True))) == len(set(hashed)) == len(set(tokens.tolist()))


def test_many_words_grow_the_table_and_start_it_anew() -> None:
    """20,000 words widen the table several times; above the bound it starts anew, and numbers still spell the text."""
    documents = [" ".join(f"w{i}" for i in range(20_000)), "w7 w19999 neu", "w7"]
    wide, narrow = Heard(), Heard(most=10_000)

    for heard in (wide, narrow):
        for text in documents:
            assert heard.spell([text]) == [tokenise(text)]
    assert (wide.starts, narrow.starts) == (0, 1)


def test_stop_words_stand_for_nothing_and_others_for_their_stem() -> None:
    """Stop words of every language are dropped first; other words are stemmed in the language of their letters."""
    terms = Terms(("english", "russian"))

    assert terms(["the", "documents", "документами", "не", "1999", "дом", "薔"]) == [
        "", "document", "документ", "", "1999", "дом", "薔",
    ]  # fmt: skip
    assert terms(["don", "t"]) == ["", ""]  # of `don't`
    assert Terms(("english",))(["документами"]) == ["документами"]
    assert Terms(("german", "english"))(["the"]) == [""]
    assert Terms(("english",), stops=False)(["the"]) == ["the"]
    assert Terms(("english",), stems=False)(["documents"]) == ["documents"]
    assert Terms(())(["the", "documents"]) == ["the", "documents"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_stemmer_and_stop_words(language: str) -> None:
    """Both libraries know each language, and words of its script go to its stemmer."""
    terms = Terms((language,), stops=False)
    words = sorted(Terms((language,)).stop_words)[:50]
    stemmed = terms(words)

    assert len(words) > 20
    assert set(stemmed) <= set(words) | set(Stemmer.Stemmer(language).stemWords(words))


def test_an_unknown_language_is_refused() -> None:
    """The error names the unknown language and the known ones."""
    with pytest.raises(ValueError, match=r"unknown language 'klingon'; there are .*russian"):
        Terms(("klingon",))


@pytest.mark.parametrize(
    ("keyword", "letters", "number"),
    [
        ("com", 3, 31513), ("element", 3, 5125), ("govern", 3, 71522), ("west", 3, 23519), ("top", 3, 201516),
        ("abc", 1, 1), ("zoo", 2, 2615), ("at", 3, 120), ("été", 3, 5205), ("ёлка", 3, 71312), ("2014", 3, 201),
        ("abcdefghij", 9, 123456789),
    ],
)  # fmt: skip
def test_keywords_are_the_positions_of_their_letters(keyword: str, letters: int, number: int) -> None:
    """The numbers are those of the printed samples (31513, 5125, 71522, 23519) and others computed by hand."""
    assert letter_number(keyword, letters=letters) == number


def test_letters_of_no_known_alphabet_are_hashed() -> None:
    """Words in other letters are hashed, by their first letters only."""
    assert letter_number("λόγος", letters=3) == letter_number("λόγια", letters=3)
    assert letter_number("λόγος", letters=3) != letter_number("λύκος", letters=3)
    assert letter_number("λόγος", letters=3) == int.from_bytes(
        blake2b("λόγ".encode(), digest_size=8).digest(), "little"
    )


def counted(documents: list[str], rule: LexiconRule, *, most: int = 1 << 20, parts: int = 1) -> dict[str, list[int]]:
    """Return the occurrences and documents of each term, summed over the parts that the counter returned."""
    counts = TermCounts(rule, most)
    for part in range(parts):
        counts.add(*as_arrow(list(documents[part::parts])))
    found: dict[str, list[int]] = {}
    for drained in counts.drain():
        assert drained.ids.tolist() == term_ids(drained.terms).tolist()
        for i, term in enumerate(drained.terms):
            held = found.setdefault(term, [0, 0])
            held[0] += int(drained.occurrences[i])
            held[1] += int(drained.documents[i])
    return found


@given(documents=texts, parts=st.integers(1, 3))
def test_terms_are_counted(documents: list[str], parts: int) -> None:
    """Occurrences and documents of each term are those of a plain count, whatever the batches and the memory."""
    terms = Terms(ENGLISH.languages)
    bags = [Counter(term for term in terms(tokenise(text)) if term) for text in documents]
    expected = {
        term: [sum(bag[term] for bag in bags), sum(term in bag for bag in bags)] for bag in bags for term in bag
    }

    assert counted(documents, ENGLISH, parts=parts) == expected
    assert counted(documents, ENGLISH, most=1, parts=parts) == expected


def test_the_interval_is_exact() -> None:
    """The bounds are exact products of the decimals as written: 0.1 x 30 is 3, and 0.3 x 30 is 9."""
    rule = LexiconRule((), stems=True, stops=True, low="0.1", high="0.3")

    assert rule.interval(30) == (3, 9)
    assert rule.interval(10) == (1, 3)
    assert LexiconRule((), stems=True, stops=True, low="0.00001", high="0.5").interval(100_001) == (2, 50_000)


def test_the_key_of_a_lexicon_tells_what_decides_it() -> None:
    """The key holds the settings and the versions of the libraries."""
    assert ENGLISH.key.startswith("languages=english+russian stems=True stops=True low=0.1 high=0.5 terms=2/unicode-")
    assert "snowball" in ENGLISH.key


def sketched(documents: list[str], rule: WordRule, lexicon: list[str], most: int = 1 << 20) -> list[set[int]]:
    """Return the sketch of each text as a set, made in two batches and checked to be ascending."""
    sketcher = WordSketcher(rule, np.sort(term_ids(lexicon)), most)
    found: list[set[int]] = []
    for half in (documents[:2], documents[2:]):
        made = sketcher.sketch(*as_arrow(list(half)))
        assert made.n_tokens.tolist() == [len(tokenise(text)) for text in half]
        for low, high in pairwise(made.offsets.tolist()):
            ids = made.ids[low:high].tolist()
            assert ids == sorted(set(ids))
            found.append(set(ids))
    return found


LEXICON = ["rose", "документ", "薔", "a", "2014"]


def held(documents: list[str]) -> list[set[str]]:
    """Return the terms of each text that the lexicon holds."""
    terms = Terms(ENGLISH.languages)
    return [set(terms(tokenise(text))) & set(LEXICON) for text in documents]


@given(documents=texts)
def test_a_lexical_sketch_is_the_terms_of_the_lexicon(documents: list[str]) -> None:
    """The sketch holds the ids of these terms, each once, whatever the memory for words."""
    expected = [set(term_ids(terms).tolist()) for terms in held(documents)]

    for most in (1, 1 << 20):
        assert sketched(documents, WordRule("lexicon", ENGLISH), LEXICON, most) == expected


def test_features_are_the_distinct_terms() -> None:
    """`n_features` counts distinct terms, in the lexicon or not, but no stop words; an empty lexicon keeps none."""
    sketcher = WordSketcher(WordRule("lexicon", ENGLISH), np.empty(0, np.uint64))
    made = sketcher.sketch(*as_arrow(["The roses, a rose; documents", "", "the"]))

    assert made.n_features.tolist() == [2, 0, 0]
    assert made.offsets.tolist() == [0, 0, 0, 0]


@given(documents=texts)
@settings(max_examples=50)
def test_two_texts_share_a_signature_iff_a_lexicon_holds_the_same_of_both(documents: list[str]) -> None:
    """Copy 0 holds all terms, other copies those with a large image; no term in a copy means no signature of it."""
    rule = WordRule("i-match", ENGLISH, copies=3, left_out=0.4, seed=11)
    images = {term: [mix(term_ids([term]), seed=11 + c)[0] for c in range(4)] for term in LEXICON}
    found = sketched(documents, rule, LEXICON)
    parts = [
        [frozenset(t for t in terms if c == 0 or int(images[t][c]) >= int(0.4 * 2**64)) for c in range(4)]
        for terms in held(documents)
    ]

    for i, first in enumerate(parts):
        assert len(found[i]) == sum(1 for part in first if part)
        for j, second in enumerate(parts):
            same = sum(1 for a, b in zip(first, second, strict=True) if a and a == b)
            assert len(found[i] & found[j]) == same


def test_a_copy_of_the_lexicon_leaves_out_its_share() -> None:
    """A copy leaves out 30 % of 20,000 terms, within five standard errors, independently of the other copy."""
    ids = term_ids(str(i) for i in range(20_000))
    dropped = [mix(ids, seed=1 + c) < np.uint64(int(0.3 * 2**64)) for c in (1, 2)]

    for part in dropped:
        assert abs(part.mean() - 0.3) < 5 * (0.21 / 20_000) ** 0.5
    assert abs((dropped[0] & dropped[1]).mean() - 0.09) < 5 * (0.09 * 0.91 / 20_000) ** 0.5
    assert mix_keys(1) != mix_keys(2)


@given(documents=texts, letters=st.integers(1, 4))
def test_keywords_are_the_numbers_of_the_stems(documents: list[str], letters: int) -> None:
    """Stop words are left out, no lexicon is used, and stems with the same first letters are one keyword."""
    terms = Terms(ENGLISH.languages)
    expected = [{letter_number(t, letters=letters) for t in terms(tokenise(text)) if t} for text in documents]

    assert sketched(documents, WordRule("keywords", ENGLISH, letters=letters), []) == expected


def test_ids_of_terms_stay_what_they_are() -> None:
    """Saved lexicons hold these ids: other values need another `TERM_FORMAT`."""
    assert json.loads(json.dumps(term_ids(["rose", "документ"]).tolist())) == [
        int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "little") for term in ("rose", "документ")
    ]
