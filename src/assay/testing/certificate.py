"""A certificate for hosts of our own, made when it is needed, so that none lies about."""

import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    public: str  # PEM
    private: str

    def context(self) -> ssl.SSLContext:
        """Of a server that shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:  # OpenSSL reads a chain from a file alone
            path = Path(folder, "chain.pem")
            path.write_text(self.private + self.public, encoding="ascii")
            context.load_cert_chain(path)
        return context


def authority(certificate: Certificate) -> ssl.SSLContext:
    """Of a client that believes this certificate and no other."""
    return ssl.create_default_context(cadata=certificate.public)


def certificate(hosts: Sequence[str], *, days: int = 1) -> Certificate:
    """A negative number of days: it has run out."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Fake web")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        made.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )
