"""Seals over values, and the cipher of encryption at rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.errors import ConfigurationError, IntegrityError
from openassay.storage.sealed_rows import Seals, derive_key

KEY = "a key that only these tests have"
ENCRYPTING = Seals(KEY, encrypt=True)
VALUES = st.text(st.characters()) | st.binary()


@pytest.mark.requirement("F-10")
@given(VALUES)
def test_what_is_hidden_is_shown_again_in_its_place_alone(value: str | bytes) -> None:
    hidden = ENCRYPTING.encrypt("runs r question", value)
    assert type(hidden) is type(value)
    assert ENCRYPTING.decrypt("runs r question", hidden) == value
    with pytest.raises(IntegrityError, match="runs s question"):
        ENCRYPTING.decrypt("runs s question", hidden)


@given(VALUES, st.data())
def test_a_changed_ciphertext_is_refused(value: str | bytes, data: st.DataObject) -> None:
    hidden = ENCRYPTING.encrypt("p", value)
    at = data.draw(st.integers(5, len(hidden) - 4))  # the last letters of base64 can say the same in two ways
    other = hidden[at : at + 1]
    put = data.draw(st.sampled_from([b"\0", b"\xff"] if isinstance(hidden, bytes) else ["A", "/", "é"]))
    if other == put:
        return
    with pytest.raises(IntegrityError, match="p cannot be decrypted"):
        ENCRYPTING.decrypt("p", hidden[:at] + put + hidden[at + 1 :])


@pytest.mark.parametrize("short", ["enc1:", b"enc1:", "enc1:AAAA", b"enc1:x"])
def test_a_ciphertext_that_was_cut_off_is_refused(short: str | bytes) -> None:
    with pytest.raises(IntegrityError, match="cannot be decrypted"):
        ENCRYPTING.decrypt("p", short)


@pytest.mark.parametrize("plain", ["a question", b"a payload", "", b""])
def test_plain_text_is_refused_where_everything_is_encrypted(plain: str | bytes) -> None:
    with pytest.raises(IntegrityError, match="not encrypted"):
        ENCRYPTING.decrypt("runs r question", plain)


def test_the_same_value_is_never_hidden_the_same_way() -> None:
    assert len({ENCRYPTING.encrypt("p", "yes") for _ in range(100)}) == 100


def test_nothing_is_hidden_without_encryption_and_none_never() -> None:
    assert Seals(KEY).encrypt("p", "yes") == "yes"
    assert ENCRYPTING.encrypt("p", None) is None
    assert ENCRYPTING.decrypt("p", None) is None


def test_another_key_shows_nothing() -> None:
    with pytest.raises(IntegrityError):
        Seals("another key, as long as the first", encrypt=True).decrypt("p", ENCRYPTING.encrypt("p", "yes"))


PARTS = st.lists(st.none() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False), max_size=4)


@given(PARTS, PARTS)
def test_different_values_have_different_seals(one: list[object], two: list[object]) -> None:
    same = one == two and [type(value) for value in one] == [type(value) for value in two] and repr(one) == repr(two)
    for seals in (Seals(), Seals(KEY)):
        assert (seals.seal(*one) == seals.seal(*two)) is same


def test_each_key_seals_in_its_own_way_and_no_seal_tells_it() -> None:
    seals = [Seals(), Seals(KEY), Seals(KEY + "!")]
    assert len({each.seal("row") for each in seals}) == 3
    assert len({each.key_id for each in seals}) == 3
    assert Seals(KEY).seal("row") == Seals(KEY, encrypt=True).seal("row")
    assert KEY not in repr(vars(Seals(KEY)))


def test_keys_are_derived_for_a_purpose() -> None:
    assert len({derive_key(KEY, purpose) for purpose in ("seal", "cipher", "name")}) == 3


def test_a_short_key_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigurationError, match="needs at least 24") as caught:
        Seals("hunter2")
    assert "hunter2" not in str(caught.value) + caught.value.help
    assert "token_urlsafe" in caught.value.help


def test_encryption_needs_a_key() -> None:
    with pytest.raises(ConfigurationError, match="no key") as caught:
        Seals(encrypt=True)
    assert "OPENASSAY_STORAGE_KEY" in caught.value.help
