"""Seals over rows and files, and the cipher of encryption at rest.

Without a key a seal is a SHA-256, which finds every accident; with one it is an HMAC, which nobody can make without the
key. What is encrypted is bound to its place, so it cannot be moved to another.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.errors import ConfigurationError, IntegrityError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SHORTEST_KEY = 24  # characters
_MARK = "enc1:"
_NONCE = 12


class Seals:
    """Made from the key of the settings, if there is one."""

    def __init__(self, key: str | None = None, *, encrypt: bool = False) -> None:
        if key is not None and len(key) < SHORTEST_KEY:
            raise ConfigurationError(
                f"the storage key has {len(key)} characters; it needs at least {SHORTEST_KEY}",
                help="Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if encrypt and key is None:
            raise ConfigurationError(
                "persistence.encrypt is set and there is no key", help="Set ASSAY_STORAGE_KEY, or unset it."
            )
        self._sealing = derived(key, "seal") if key else None
        self._cipher = _cipher(derived(key, "cipher")) if key and encrypt else None
        self.keyed = key is not None
        self.encrypts = encrypt
        self.key_id = derived(key, "name").hex()[:16] if key else ""

    def seal(self, *parts: Any) -> str:
        """Over plain values and bytes, in order."""
        return self.seal_bytes(_PLAIN.encode(parts).encode())

    def seal_bytes(self, content: bytes) -> str:
        if self._sealing is None:
            return hashlib.sha256(content).hexdigest()
        return hmac.digest(self._sealing, content, "sha256").hex()

    def hidden(self, place: str, value: Any) -> Any:
        """What is stored in place of a text or of bytes."""
        if self._cipher is None or value is None:
            return value
        nonce = secrets.token_bytes(_NONCE)
        if isinstance(value, bytes):
            return _MARK.encode() + nonce + self._cipher.encrypt(nonce, value, place.encode())
        sealed = nonce + self._cipher.encrypt(nonce, str(value).encode("utf-8", "surrogatepass"), place.encode())
        return _MARK + base64.b64encode(sealed).decode()

    def shown(self, place: str, value: Any) -> Any:
        """The value that was hidden there. One that was not hidden, or somewhere else, is refused."""
        if self._cipher is None or value is None:
            return value
        mark = _MARK.encode() if isinstance(value, bytes) else _MARK
        if not value.startswith(mark):
            raise IntegrityError(f"{place} is not encrypted, and everything here is", help=ALTERED, place=place)
        from cryptography.exceptions import InvalidTag

        held = value[len(mark) :]
        try:
            sealed = held if isinstance(held, bytes) else base64.b64decode(held, validate=True)
            plain = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise IntegrityError(f"{place} cannot be decrypted", help=ALTERED, place=place) from error
        return plain if isinstance(value, bytes) else plain.decode("utf-8", "surrogatepass")


ALTERED = "It was altered, or damaged. Restore a copy, or delete the thread and ask again."


def derived(key: str, purpose: str) -> bytes:
    """HKDF (RFC 5869) with SHA-256, one block: a key of its own for each purpose."""
    extracted = hmac.new(b"assay storage", key.encode(), "sha256").digest()
    return hmac.new(extracted, purpose.encode() + b"\x01", "sha256").digest()


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _digest(value: object) -> Mapping[str, str]:
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"cannot be sealed: {type(value).__name__}")
    return {"sha256": hashlib.sha256(value).hexdigest()}


_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_digest)
