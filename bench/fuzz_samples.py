"""Input of the fuzzers: sound samples, fragments that patterns look for, and damage."""

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard


def _pieces(text: str) -> tuple[bytes, ...]:
    r"""Return fragments separated by blanks; `~` is a blank within one, and `\\` begins a Python escape."""
    return tuple(piece.replace("~", " ").encode().decode("unicode_escape").encode("latin-1") for piece in text.split())


MOST_BYTES = 8_192
"""Bytes of a sample: its head and as many whole records as fit."""

TOKENS = _pieces(
    r"""
    <!-- --> <![CDATA[ ]]> <? ?> <!DOCTYPE~r~[ ]> < > </ /> " ' & &amp; &x; &lt;br&gt; &#xD800; &#0; &# &nbsp; <p> <b>
    <script> \0 \xed\xa0\x80 \xff \xfe\xff \xef\xbb\xbf \x1b$B \n \r\n \x85 ~ = { } [ \\ud800 \\ </doc> </DOC> <DOC>
    <DOCNO> </DOCHDR> <TEXT> </document> <document> <content~encoding='base64'> encoding='base64' ~xmlns='u'
    ~xmlns:p='u' <p:a> x:y
    """
)

HEADS = (
    b'<?xml version="1.0" encoding="koi8-r"?><!-- a --><r><doc><id>1</id><text>a</text></doc><doc a="b"/></r>',
    b'<!DOCTYPE r [<!ENTITY a "b"> <!-- c --> <?d?>]>\n<r xmlns:x="u"><row Id="1" Body="a"/></r>',
    b"<DOC><DOCNO>1</DOCNO><HEADLINE>a</HEADLINE><TEXT>b</TEXT></DOC>",
    b"<DOC>\n<DOCNO>1</DOCNO><DOCHDR>http://a\nContent-Type: text/html; charset=koi8-r\n</DOCHDR><p>b</DOC>",
    b'\n{"id": 1, "text": "a", "url": "b"}\n{"id": 2}',
    "<r><doc><id>1</id><text>a</text></doc></r>".encode("utf-16"),
    b"<!-- a --><!-- b --><?xml version='1.0'?><!doctype html><html><meta charset=utf-8>a",
    b"id,url,title,text\n1,u,t,a\n",
    b'id\ttext\r"1"\t"a\nb"\r',
)
TAGS = _pieces(
    r"""
    <!-- --> <!----> <!--~a~-->\n <![CDATA[ ]]> <? ?> <?xml~ <!DOCTYPE~ [ ] < > </ /> " ' & &#1 &a ; ~ \n \r \t = a 1
    \xe9 \0 <a~ <a> </a <doc> <doc/> </doc> <doc~ <text> <id> ~a='1' ~xmlns:a='u' encoding= encoding~ charset= charset~
    <meta~ <meta~charset= <html> <DOC> <DOCNO> </DOC> <TEXT></TEXT> <TITLE></TITLE> <DOCHDR> { } "a": , \\
    """
)
PAGE = (
    b"<!doctype html><html><head><meta http-equiv=a content='text/html; charset = windows-1251'><title>\xe9</title>"
    b"</head><body><p class=a>b &amp; &#65; &nbsp;<script>c</script><table><tr><td>d</table><select><option>e</body>"
)
TAGS_OF_PAGES = TAGS + _pieces(
    """
    <p> <b> <div> </p> <script> </script <style <head> <table> <td> <select> <option> <li> <font~a=1> <template> <svg>
    <p !doctype &#00 &#99999999 x~
    """
)
LISTS = (
    b"id_a,id_b,score\n1,2,0.5\n2,3,1\n",
    b"1\t2\n3\t4\n",
    b"a b c\nd e\n",
    b'"a,b",c\nd,"e ""f"""\n',
    b'["a","b"]\n["c"]\n',
    b'{"id_a":"a","id_b":1,"score":0.5}\n',
    b'{"members":["a","\\ud800"]}\n',
    b"# c\n\n1;2\n",
)
SEPARATORS = (*_pieces(r""", \t ; ~ " \r \n a 1 [ { "a": ] # id_"""), b"9" * 400)
WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:1>\r\nWARC-Target-URI: http://a\r\n"
    b"Content-Type: application/http; msgtype=response\r\nContent-Length: 76\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=koi8-r\r\n\r\n<p>a \xf0\xf2</p>    \r\n\r\n"
    b"WARC/1.0\nWARC-Type: conversion\nContent-Type: text/plain\nContent-Length: 4\n\nabcd\n\n"
)
LINES_OF_WARC = (
    b"9" * 5000,
    *_pieces(
        r"""
        WARC/1.0\r\n \nWARC/ WARC-Type:~response\r\n Content-Length:~ Content-Length:~0\r\n \r\n\r\n \n\n \r\n 9 ~ \t
        Content-Type:~application/http\r\n HTTP/1.1~200\r\n Transfer-Encoding:~chunked\r\n a charset= \0
        Content-Encoding:~gzip\r\n
        """
    ),
)
TABLES = (b'id,url,text\n1,u,a\n2,,"b\nc"\n', b'"id","text"\r1,2\r')
PATHS = (b"a/b[@c=d]", b"@Id", b"html(a|b)", b"text(a[@c=d])")
STEPS = _pieces("/ | a [ ] @ = ( ) html( () * . : ~ [1] last()")


def _parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": ["1", "2"], "text": ["a", None]}), file)
    return file.getvalue()


PARQUET = (_parquet(),)
PACKERS = (gzip.compress, bz2.compress, lzma.compress, zstandard.compress)
PACKED = tuple(pack(b"<doc>a</doc>\n" * 200) for pack in PACKERS)


def mutate(data: bytes, others: Sequence[bytes], choose: random.Random) -> bytes:
    """Damage a file in one to eight places: flipped bits, cuts, repetitions, swaps, insertions, pieces of others."""
    damaged = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 3, 5, 8))):
        size = len(damaged)
        low, high = sorted((choose.randrange(size + 1), choose.randrange(size + 1)))
        high = min(high, low + choose.choice((1, 4, 60, 500, size)))
        kind = choose.randrange(8)
        if kind == 0 and size:
            damaged[low % size] ^= 1 << choose.randrange(8)
        elif kind == 1:
            del damaged[low:high]
        elif kind == 2:  # noqa: PLR2004 - the kinds of damage are numbered
            damaged[low:low] = damaged[low:high] * choose.choice((1, 1, 2, 20))
        elif kind == 3:  # noqa: PLR2004
            middle = choose.randint(low, high)
            damaged[low:high] = damaged[middle:high] + damaged[low:middle]
        elif kind == 4:  # noqa: PLR2004
            other = choose.choice(others)
            start = choose.randrange(len(other))
            damaged[low:low] = other[start : start + choose.choice((20, 200, 2000))]
        elif kind == 5 and choose.randrange(4) == 0:  # noqa: PLR2004
            del damaged[low:]
        else:
            damaged[low:low] = choose.choice(TOKENS) * choose.choice((1, 1, 1, 2, 50))
    return bytes(damaged[: 16 * MOST_BYTES])
