"""Plain contexts of transactions and items, and FIMI files, as frequent-itemset programs read them.

    read_fimi          pieces of a file        -> FimiContext: a Context, and the names of its items
    format_sets        Itemsets, names         -> lines: the names of the items of a set, then its support
    transpose_context  Context                 -> ItemRows: items as rows of transactions, without what cannot matter
    number_rows        rows                    -> which rows are equal: one of them is searched

In nddup's orientation shingles are transactions and documents are items, so an item's transactions are its sketch
(Ignatov, Kuznetsov 2009, Frequent itemset mining for clustering near duplicate web documents).
"""

import codecs
import secrets
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nddup.ground.arrays import HASH_MULTIPLIER
from nddup.ground.kernels import Written, compiled
from nddup.mining.itemsets import Itemsets


class Context(NamedTuple):
    """Transactions: number t holds `items[offsets[t]:offsets[t + 1]]`."""

    offsets: NDArray[np.int64]  # shape (t+1,)
    items: NDArray[np.int32]  # numbers 0 ... n_items-1, distinct within a transaction
    n_items: int


class ItemRows(NamedTuple):
    """The transactions of each item: row i is that of item `items[i]`."""

    items: NDArray[np.int32]
    offsets: NDArray[np.int64]
    transactions: NDArray[np.int32]  # numbers 0 ... n_transactions-1, ascending in a row
    n_transactions: int


LONGEST = 1 << 20
"""Maximum size of an item, in bytes."""

BLANKS = b" \t\n\v\f\r"

NOT_BLANK = bytes(set(range(256)) - set(BLANKS))

PRIME = np.uint64(0x100000001B3)
"""Multiplier of FNV-1a."""

TAB, LINE_FEED, RETURN, SPACE = 9, 10, 13, 32

ITEMS, LINES, IN_LINE = 0, 1, 2
"""Positions in `ItemNames.counts`: distinct items; line ends; items of the unfinished line."""


def transpose_context(context: Context, is_frequent: NDArray[np.bool_], *, shortest: int) -> ItemRows:
    """
    Turn transactions into rows by item, without infrequent items and the transactions that are too short without them.

    Args:
        context: t transactions.
        is_frequent: shape (n_items,), bool.
        shortest: transactions of fewer frequent items are left out. One of a single frequent item matters only to the
            set of that item alone.

    Returns:
        The rows of the frequent items, ascending; the remaining transactions are renumbered in their order.
    """
    items = np.flatnonzero(is_frequent).astype(np.int32)
    number = np.full(context.n_items, -1, np.int32)
    number[items] = np.arange(items.size)

    offsets, transactions, n_transactions = scatter_transactions(
        context.offsets, context.items, number, items.size, shortest
    )
    return ItemRows(items, offsets, transactions, n_transactions)


@compiled
def count_left(offsets: NDArray[np.int64], items: NDArray[np.int32], number: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count the items of each transaction that have a row."""
    left = np.zeros(offsets.size - 1, np.int32)
    for i in range(left.size):
        for j in range(offsets[i], offsets[i + 1]):
            left[i] += number[items[j]] >= 0
    return left


@compiled
def scatter_transactions(
    offsets: NDArray[np.int64], items: NDArray[np.int32], number: NDArray[np.int32], n_rows: int, shortest: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Write the transactions of each row; return the offsets of the rows, the rows, and the number of transactions.

    `number` is the row of each item, or -1. Transactions of fewer than `shortest` items with a row are left out.
    """
    t = offsets.size - 1
    left = count_left(offsets, items, number)

    ends = np.zeros(n_rows + 1, np.int64)
    for i in range(t):
        for j in range(offsets[i], offsets[i + 1] if left[i] >= shortest else offsets[i]):
            ends[number[items[j]] + 1] += number[items[j]] >= 0
    for row in range(n_rows):
        ends[row + 1] += ends[row]

    starts = ends.copy()
    transactions = np.empty(ends[-1], np.int32)
    count = 0
    for i in range(t):
        if left[i] < shortest:
            continue

        for j in range(offsets[i], offsets[i + 1]):
            row = number[items[j]]
            if row >= 0:
                transactions[starts[row]] = count
                starts[row] += 1
        count += 1
    return ends, transactions, count


def take_rows(rows: ItemRows, chosen: NDArray[np.int64]) -> ItemRows:
    """Take some rows, in the order given."""
    lengths = np.diff(rows.offsets)[chosen]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    at = np.repeat(rows.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return ItemRows(rows.items[chosen], offsets, rows.transactions[at], rows.n_transactions)


@compiled
def number_rows(offsets: NDArray[np.int64], values: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """
    Number the distinct rows from 0 in order of first appearance: equal rows get the same number.

    Equal rows are items that are in the same sets.

    Args:
        offsets: shape (n+1,).
        values: the rows, compared value by value.

    Returns:
        The number of each row, shape (n,), and the number of distinct rows. Cost: linear in the values, as long as few
        hashes collide; hashes are unseeded, so rows made for the purpose can make it quadratic in n.
    """
    n = offsets.size - 1
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    table = np.full(1 << bits, -1, np.int64)  # open addressing: the first row of each number, or -1
    hashes, groups, count = np.empty(n, np.uint64), np.full(n, -1, np.int64), 0

    for row in range(n):
        hashes[row] = hash_row(values[offsets[row] : offsets[row + 1]])
        slot = np.int64(hashes[row] >> np.uint64(64 - bits))
        while table[slot] >= 0 and groups[row] < 0:
            other = table[slot]
            if hashes[other] == hashes[row] and is_same_row(offsets, values, other, row):
                groups[row] = groups[other]
            slot = (slot + 1) & (table.size - 1)

        if groups[row] < 0:
            table[slot] = row
            groups[row] = count
            count += 1
    return groups, count


@compiled
def hash_row(values: NDArray[np.int32]) -> np.uint64:
    """Hash the values of a row and its length."""
    mixed = np.uint64(values.size)
    for i in range(values.size):
        mixed = (mixed ^ np.uint64(values[i]) ^ (mixed >> np.uint64(29))) * HASH_MULTIPLIER
    return mixed


@compiled
def is_same_row(offsets: NDArray[np.int64], values: NDArray[np.int32], a: int, b: int) -> bool:
    """Tell whether two rows are equal, value by value."""
    size = offsets[a + 1] - offsets[a]
    if offsets[b + 1] - offsets[b] != size:
        return False

    same = 0
    while same < size and values[offsets[a] + same] == values[offsets[b] + same]:
        same += 1
    return bool(same == size)


class FimiContext(NamedTuple):
    """A context whose items have names."""

    context: Context
    names: list[bytes]  # by item number, ascending by length and bytes


class ItemNames(NamedTuple):
    """The items seen so far, in arrays with room for one more block.

    Items are numbered with a hash table of their spellings. The hash, FNV-1a (Fowler, Noll, Vo 1991), starts from a
    random number, so that no file can be made whose items all fall into one slot; the results do not depend on it.
    """

    table: Written[np.int32]  # open addressing: item numbers or -1, at most half of the slots taken
    hashes: Written[np.uint64]  # by item
    ends: Written[np.int64]  # by item, where its name ends in `pool`
    last_line: Written[np.int64]  # by item, the last line that held it
    pool: Written[np.uint8]  # the names, one after the other
    counts: Written[np.int64]  # shape (3,), see ITEMS
    seed: np.uint64  # of the hash of this file's items


def read_fimi(pieces: Iterable[bytes]) -> FimiContext:
    """
    Read the bytes of a file, expanded.

    Each line is a transaction, its items separated by blanks (Frequent Itemset Mining Implementations repository,
    Goethals and Zaki 2003); it ends as on Unix, Windows or an old Macintosh. An item is any run of bytes without white
    space; two items are equal iff their bytes are. Blank lines are not transactions, and an item repeated on a line
    counts once. Items are ordered by length, then by bytes, so that numbers are in numeric order.

    Returns:
        The context, its items numbered in the order of their names. No transactions for a file without items.

    Raises:
        ValueError: if an item is longer than `LONGEST`, or for a text in UTF-16.

    Cost:
        One pass. Memory: 4 bytes for every item of every line and 8 a line, twice that while they are joined;
        some 100 bytes for the name of each distinct item; and 50 times the largest piece.
    """
    lexicon = ItemNames(
        np.full(16, -1, np.int32),
        np.empty(0, np.uint64),
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.uint8),
        np.zeros(3, np.int64),
        np.uint64(secrets.randbits(64)),
    )

    items, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
    for block in cut_blocks(pieces):
        lexicon = make_room(lexicon, len(block))
        block_items, finished = split_block(np.frombuffer(block, np.uint8), lexicon)
        items.append(block_items)
        lengths.append(finished)
    if lexicon.counts[IN_LINE] > 0:  # the last line may lack its line end
        lengths.append(lexicon.counts[IN_LINE:])

    names, number = order_names(lexicon)
    offsets = np.cumsum(np.concatenate(lengths))
    return FimiContext(Context(offsets, number[np.concatenate(items)], len(names)), names)


def cut_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the bytes of a file into blocks that end with white space, except the last, so that no item is cut.

    A byte order mark at the start is no part of an item.

    Raises:
        ValueError: for an item longer than `LONGEST`, or a text in UTF-16.
    """
    rest, is_start = bytearray(), True  # the bytes after the last white space may be part of an item: they wait
    for piece in pieces:
        seen = len(rest)
        rest += piece
        if is_start:
            if len(rest) < len(codecs.BOM_UTF8):
                continue
            if rest.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ValueError("a text in UTF-16; expected ASCII or UTF-8")
            rest, seen, is_start = rest.removeprefix(codecs.BOM_UTF8), 0, False

        ending = len(rest[seen:].rstrip(NOT_BLANK))
        cut = seen + ending if ending else 0  # what waits has no white space: it is not looked at again
        if len(rest) - cut > LONGEST:
            raise ValueError(f"an item of more than {LONGEST:,} bytes: not a file of transactions")
        if cut:
            yield bytes(rest[:cut])
            del rest[:cut]
    yield bytes(rest)


def make_room(lexicon: ItemNames, size: int) -> ItemNames:
    """Return the same items with room for the items of one more block of `size` bytes."""
    table, hashes, ends, last_line, pool, counts, seed = lexicon
    count = int(counts[ITEMS])
    used = int(ends[count - 1]) if count else 0

    # An item takes at least two bytes, one of them white space.
    most = count + size // 2 + 1
    if most > hashes.size:
        room = max(most, 2 * count)
        hashes = np.concatenate((hashes[:count], np.empty(room - count, np.uint64)))
        ends = np.concatenate((ends[:count], np.empty(room - count, np.int64)))
        last_line = np.concatenate((last_line[:count], np.empty(room - count, np.int64)))
        table = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
        fill_table(table, hashes[:count])

    if used + size > pool.size:
        pool = np.concatenate((pool[:used], np.empty(max(size, used), np.uint8)))
    return ItemNames(table, hashes, ends, last_line, pool, counts, seed)


@compiled
def fill_table(table: Written[np.int32], hashes: NDArray[np.uint64]) -> None:
    """Enter all items, which are distinct, into an empty table, by their hashes."""
    for item in range(hashes.size):
        slot = np.int64(hashes[item] & np.uint64(table.size - 1))
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = item


@compiled
def number_item(data: NDArray[np.uint8], start: int, end: int, mixed: np.uint64, lexicon: ItemNames) -> int:
    """Return the number of the item spelled `data[start:end]`, of hash `mixed`; a new item gets the next number."""
    table, hashes, ends, last_line, pool, counts, _ = lexicon
    slot = np.int64(mixed & np.uint64(table.size - 1))
    while table[slot] >= 0:
        item = table[slot]
        low = ends[item - 1] if item > 0 else 0
        is_same = hashes[item] == mixed and ends[item] - low == end - start
        for i in range(end - start if is_same else 0):
            is_same = is_same and pool[low + i] == data[start + i]
        if is_same:
            return int(item)
        slot = (slot + 1) & (table.size - 1)

    item = counts[ITEMS]
    table[slot] = item
    hashes[item] = mixed
    low = ends[item - 1] if item > 0 else 0
    for i in range(end - start):
        pool[low + i] = data[start + i]
    ends[item] = low + end - start
    last_line[item] = -1
    counts[ITEMS] = item + 1
    return int(item)


@compiled
def split_block(data: NDArray[np.uint8], lexicon: ItemNames) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """
    Split a block of whole items.

    Returns:
        The items, and the number of items of each line finished in this block; lines without items are left out.
    """
    counts, last_line = lexicon.counts, lexicon.last_line
    items, n_items = np.empty(data.size // 2 + 1, np.int32), 0
    lengths, n_lines = np.empty(data.size + 1, np.int64), 0
    at = 0
    while at < data.size:
        byte = data[at]
        if byte in (LINE_FEED, RETURN):  # nothing stands between the two of Windows
            if counts[IN_LINE] > 0:
                lengths[n_lines] = counts[IN_LINE]
                n_lines += 1
            counts[LINES] += 1
            counts[IN_LINE] = 0
        if byte == SPACE or TAB <= byte <= RETURN:
            at += 1
            continue

        start, mixed = at, lexicon.seed
        while at < data.size and data[at] != SPACE and not TAB <= data[at] <= RETURN:
            mixed = (mixed ^ np.uint64(data[at])) * PRIME
            at += 1
        item = number_item(data, start, at, mixed ^ (mixed >> np.uint64(32)), lexicon)

        if last_line[item] != counts[LINES]:
            last_line[item] = counts[LINES]
            items[n_items] = item
            n_items += 1
            counts[IN_LINE] += 1
    return items[:n_items].copy(), lengths[:n_lines].copy()


def order_names(lexicon: ItemNames) -> tuple[list[bytes], NDArray[np.int32]]:
    """Order the items by the length of their names, then by bytes; return the names and each item's new number."""
    count = int(lexicon.counts[ITEMS])
    ends = lexicon.ends[:count].tolist()
    text = lexicon.pool[: ends[-1] if ends else 0].tobytes()
    names = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    order = sorted(range(count), key=lambda item: (len(names[item]), names[item]))
    number = np.empty(count, np.int32)
    number[order] = np.arange(count)
    return [names[item] for item in order], number


def format_sets(itemsets: Itemsets, names: list[bytes]) -> Iterator[bytes]:
    """Yield each set as a line: the names of its items, then its support, separated by blanks."""
    members, offsets = itemsets.members.tolist(), itemsets.offsets.tolist()
    for start, end, support in zip(offsets, offsets[1:], itemsets.supports.tolist(), strict=False):
        yield b" ".join([*(names[item] for item in members[start:end]), b"%d\n" % support])
