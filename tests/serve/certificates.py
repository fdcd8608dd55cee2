"""Certificates for tests, signed by themselves."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def make_certificate(folder: Path, name: str = "own", password: bytes = b"") -> tuple[Path, Path]:
    """A certificate of localhost and 127.0.0.1, and its key."""
    key, called = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=localhost")
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder(called, called, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    signed = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    certificate, private = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(*form, lock))
    private.chmod(0o600)
    return certificate, private
