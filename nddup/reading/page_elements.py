"""Which elements divide words. In pages every element is inline unless it is in BLOCK, as in a browser's `innerText`.

In other XML an element divides words unless it is in INLINE: the names of a title or a paragraph are not known.

Sources: https://html.spec.whatwg.org/multipage/rendering.html, and the inline elements of JATS, TEI and DocBook.
"""

from typing import Final

_BLOCK = """
address article aside audio blockquote br button caption center col colgroup dd desc details dialog dir div dl dt
fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr iframe input legend li listing
main math menu nav noembed noframes object ol optgroup option p plaintext pre rp rt search section select summary svg
table tbody td text textarea tfoot th thead title tr ul video xmp
"""
BLOCK: Final = tuple(_BLOCK.split())
"""Elements before and after which a word ends: blocks, parts of tables and lists, line breaks, fields, media."""

_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike strong sub
sup tt u var wbr
bold italic monospace overline roman sans-serif sc underline styled-content named-content ext-link xref
hi emph emphasis subscript superscript foreign choice sic corr orig reg expan persname placename
"""
INLINE: Final = frozenset(_INLINE.split())
"""Local names of XML elements, in lower case, inside which a word goes on."""
