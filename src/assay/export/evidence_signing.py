"""Who vouches for a bundle: an Ed25519 key that a data directory has of its own, and its fingerprint.

The key is made when it is first needed. Its fingerprint is what people tell each other on another way than the bundle
went: half of the SHA-256 of the public key, in groups of four.
"""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from assay.errors import ConfigurationError, UsageError

FILE = "evidence.key"
_PURPOSE = b"assay evidence 1\n"  # a signature under a bundle is good for nothing else
_HEX = 32  # digits of a fingerprint
_LONGEST = 4_096  # bytes of a file with a fingerprint that are looked at


class Signed(NamedTuple):
    """Both in hexadecimal digits."""

    key: str
    value: str


class Signer:
    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    def sign(self, digest: str) -> Signed:
        public = self._key.public_key().public_bytes_raw()
        return Signed(public.hex(), self._key.sign(_PURPOSE + digest.encode()).hex())


def signer(folder: Path) -> Signer:
    """The one of a data directory; made where it has none yet."""
    file = folder / FILE
    try:
        if not file.exists():
            _make(file)
        secret = bytes.fromhex(file.read_text("ascii").strip())
        return Signer(Ed25519PrivateKey.from_private_bytes(secret))
    except OSError as error:
        raise ConfigurationError(
            f"cannot use {file}: {error.strerror}",
            help="See to its permissions, or leave the signature out: --unsigned.",
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{file} does not hold a key", help="Put it back from a copy; if you delete it, a new one is made."
        ) from error


def _make(file: Path) -> None:
    """Complete or not there at all; of two processes at once, one is first."""
    part = file.with_name(f".{FILE}.{os.getpid()}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as opened:
        opened.write(Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileExistsError):
        os.link(part, file)
    part.unlink()


def is_good(signed: Signed, digest: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed.key))
        key.verify(bytes.fromhex(signed.value), _PURPOSE + digest.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(key: str) -> str:
    digits = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_HEX]
    return "-".join(digits[at : at + 4] for at in range(0, _HEX, 4))


def wanted(named: str) -> str:
    """The fingerprint that somebody names, or the one that stands in the file they name."""
    text = named
    if not _plain(named):
        try:
            with open(named, encoding="utf-8", errors="replace") as file:
                text = file.read(_LONGEST)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{named!r} is neither a fingerprint nor a file",
                help="A fingerprint is 8 groups of 4 digits or letters.",
            ) from error
    if found := _plain(text) or next(filter(None, map(_plain, text.split())), ""):
        return "-".join(found[at : at + 4] for at in range(0, _HEX, 4))
    raise UsageError(f"no fingerprint stands in {named}", help="It is 8 groups of 4 digits or letters.")


def _plain(text: str) -> str:
    digits = re.sub(r"[\s-]", "", text).lower()
    return digits if re.fullmatch(rf"[0-9a-f]{{{_HEX}}}", digits) else ""
