"""Base64 in records, against Python's own strict decoder."""

import base64
import binascii

from hypothesis import example, given
from hypothesis import strategies as st

from nddup.reading.outcomes import decode_base64

PIECES = ["YWJj", "Y", "W", "=", "==", "\n", " ", "\r\n", "\t", "+/", "-", "é", "\0", "AAAA"]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text(alphabet="Aa0+/= \n", max_size=24))
@example("YWJj=")
@example("YW=\n=")
@example("YW=Jj")
@example("YWJ==")
def test_any_text_is_decoded_as_by_python(text: str) -> None:
    """Any text is decoded as Python decodes it, or refused where Python refuses it."""
    plain = "".join(one for one in text if one not in " \t\r\n")
    try:
        expected = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=bool(plain))
    except ValueError:
        expected = None

    assert decode_base64(text) == expected


@given(st.binary(max_size=400), st.integers(1, 90), st.sampled_from(["\n", "\r\n", "\n  "]), st.booleans())
def test_wrapped_text(data: bytes, width: int, joint: str, is_padded: bool) -> None:  # noqa: FBT001
    """Base64 in lines of any width, with or without padding, gives the bytes back."""
    written = base64.b64encode(data).decode()
    written = written if is_padded else written.rstrip("=")

    assert decode_base64(joint.join(written[at : at + width] for at in range(0, len(written), width))) == data
