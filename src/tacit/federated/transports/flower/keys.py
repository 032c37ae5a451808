"""Files that the network needs: the coordinator's certificate, a key pair per party, and the parties' secret.

No file is ever overwritten, and private ones can be read by their owner only.
"""

import base64
import hashlib
import ipaddress
import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.federated.transports.flower.network import LOOPBACK

VALID_FOR = timedelta(days=365)
_PAIR = b"tacit.federated pair:"


def make_certificate(host: str, authority: Path, certificate: Path, key: Path) -> None:
    """A certificate for the coordinator's host and the authority that signed it, whose key is thrown away."""
    _refuse_existing(authority, certificate, key)
    root, server = _new_key(), _new_key()
    signer, subject = _name("tacit study"), _name("tacit coordinator")
    hosts = [_general_name(name) for name in dict.fromkeys((host, LOOPBACK))]
    signed_root = (
        _unsigned(signer, signer, root, is_authority=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(root.public_key()), critical=False)
        .sign(root, hashes.SHA256())
    )
    signed_server = (
        _unsigned(subject, signer, server, is_authority=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(root, hashes.SHA256())
    )
    _write(authority, signed_root.public_bytes(Encoding.PEM))
    _write(certificate, signed_server.public_bytes(Encoding.PEM))
    _write(key, server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), private=True)


def make_party_key(private: Path, public: Path) -> None:
    """A key pair by which the coordinator knows a party; only the public file leaves the party."""
    _refuse_existing(private, public)
    key = _new_key()
    _write(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), private=True)
    _write(public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n")


def make_secret(path: Path) -> None:
    """The secret that ids are hashed with: shared by the parties, unknown to the coordinator."""
    _refuse_existing(path)
    _write(path, secrets.token_hex(32).encode() + b"\n", private=True)


def read_public_key(path: Path) -> bytes:
    """A party's public key, as the engine spells it."""
    return _pem(_loaded(path, load_ssh_public_key))


def read_private_key(path: Path) -> bytes:
    """The public half of a party's private key, as the engine spells it."""
    return _pem(_loaded(path, _private).public_key())


def pair_secret(private: Path, public: Path) -> bytes:
    """What two parties share that have each other's public key: the same for both, and for nobody else.

    It is Diffie-Hellman of the two key pairs. Whoever gets to choose one of the public keys knows it too.
    """
    own, other = _loaded(private, _private), _loaded(public, load_ssh_public_key)
    both = sorted((_pem(own.public_key()), _pem(other)))
    if both[0] == both[1]:
        raise ValueError(f"{public} is the public key of this party itself; the other one's is needed")
    if own.curve.name != other.curve.name:
        raise ValueError(f"{public} is a key of another kind than `tacit federate keys` makes")
    common = own.exchange(ec.ECDH(), other)
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=_PAIR + b"".join(both)).derive(common)


def fingerprint(public: Path) -> str:
    """What two people compare by telephone, as `ssh-keygen -l -f` shows it."""
    return _shown(_loaded(public, load_ssh_public_key))


def own_fingerprint(private: Path) -> str:
    """The same of the public half of a private key."""
    return _shown(_loaded(private, _private).public_key())


def certificate_hosts(path: Path) -> set[str]:
    """The names and addresses that a certificate speaks for."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        raise ValueError(f"{path} is not a certificate that names its hosts (subjectAltName)") from None
    return {str(name.value) for name in names}


def _private(data: bytes) -> Any:
    return load_ssh_private_key(data, None)


def _loaded(path: Path, load: Callable[[bytes], Any]) -> Any:
    """An elliptic curve key of a file."""
    try:
        key = load(path.read_bytes())
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey | ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} does not hold a key as `tacit federate keys` makes them")
    return key


def _pem(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _shown(key: ec.EllipticCurvePublicKey) -> str:
    blob = base64.b64decode(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP384R1())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _unsigned(
    subject: x509.Name, signer: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _refuse_existing(*paths: Path) -> None:
    there = [str(path) for path in paths if path.exists()]
    if there:
        raise FileExistsError(f"already there, and never overwritten: {', '.join(there)}")


def _write(path: Path, content: bytes, *, private: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
