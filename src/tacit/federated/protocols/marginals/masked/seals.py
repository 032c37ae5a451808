"""How parties agree on masks through a coordinator that learns nothing of them: keys, boxes and streams of words.

All labels below begin with what they are for, and every one of them holds the study's digest or the transcript.

hello       an ephemeral X25519 key, with an HMAC under the parties' secret: the coordinator cannot put in its own.
            Where parties have ids the secret is bound to them: no masks meet between parties of different people
box         a seed of 32 bytes for one other party, under ChaCha20-Poly1305. Its key comes of the two hellos by HKDF,
            with the parties' secret as salt
transcript  a digest of the study, all hellos, all boxes and the step that is asked for
stream      ChaCha20 under an HMAC of seeds and a label that holds the transcript: other transcripts, other words
"""

import hashlib
import hmac
import math
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.federated.protocols.base import RefusedError
from tacit.federated.protocols.marginals.masked.words import Words

SEED_BYTES = KEY_BYTES = CODE_BYTES = 32
_NONCE_BYTES, _TAG_BYTES = 12, 16
AROUND = _NONCE_BYTES + _TAG_BYTES  # bytes of a box beside what is in it
BOX_BYTES = SEED_BYTES + AROUND

_HELLO, _BOX = b"tacit.federated masked hello:", b"tacit.federated masked box:"
_TRANSCRIPT, _STREAM = b"tacit.federated masked transcript:", b"tacit.federated masked stream:"


class Hello(NamedTuple):
    """A party's public key, and the code that shows that it knows the parties' secret."""

    key: bytes
    code: bytes


class Sealer(NamedTuple):
    """One party of a study: its name, its ephemeral private key, and the secret that it shares with the others."""

    study: str
    name: str
    private: bytes
    secret: bytes

    @classmethod
    def new(cls, study: str, name: str, secret: bytes) -> "Sealer":
        """With a key from the operating system."""
        return cls(study, name, secrets.token_bytes(KEY_BYTES), secret)

    def hello(self) -> Hello:
        """What it tells the others."""
        key = self._key.public_key().public_bytes_raw()
        return Hello(key, self._code(self.name, key))

    def check(self, name: str, hello: Hello) -> None:
        """Refuse a hello that is not of a party of this name, in this study, with this secret."""
        if not hmac.compare_digest(hello.code, self._code(name, hello.key)):
            raise RefusedError(
                f"the key of {name!r} was not made with the parties' secret, for this study and the same people"
            )

    def closed(self, seed: bytes, name: str, hello: Hello) -> bytes:
        """A seed, for one other party to read."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        key = self._box_key(hello, self.name, name)
        return nonce + ChaCha20Poly1305(key).encrypt(nonce, seed, None)

    def opened(self, box: bytes, name: str, hello: Hello) -> bytes:
        """The seed that another party closed for this one."""
        key = self._box_key(hello, name, self.name)
        try:
            return ChaCha20Poly1305(key).decrypt(box[:_NONCE_BYTES], box[_NONCE_BYTES:], None)
        except InvalidTag:
            raise RefusedError(f"the box of {name!r} is not for {self.name!r}, or was changed") from None

    @property
    def _key(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.private)

    def _code(self, name: str, key: bytes) -> bytes:
        return hmac.digest(self.secret, _HELLO + _spelled(self.study.encode(), name.encode(), key), "sha256")

    def _box_key(self, hello: Hello, sender: str, receiver: str) -> bytes:
        try:
            common = self._key.exchange(X25519PublicKey.from_public_bytes(hello.key))
        except ValueError:  # a point of small order
            raise RefusedError("a key of another party is not one") from None
        info = _BOX + _spelled(self.study.encode(), sender.encode(), receiver.encode())
        return HKDF(algorithm=SHA256(), length=32, salt=self.secret, info=info).derive(common)


def transcript(study: str, step: str, hellos: Sequence[Hello], boxes: bytes) -> bytes:
    """What all parties must have been told alike, or their masks do not meet."""
    told = (study.encode(), step.encode(), *(part for hello in hellos for part in hello), boxes)
    return hashlib.sha256(_TRANSCRIPT + _spelled(*told)).digest()


def stream(seeds: Sequence[bytes], label: Sequence[str], transcript: bytes, shape: tuple[int, int]) -> Words:
    """Words that look uniform to whoever lacks one of the seeds; the same for the same label and transcript only."""
    key = hashlib.sha256(_STREAM + _spelled(*seeds)).digest()
    key = hmac.digest(key, _STREAM + _spelled(*(part.encode() for part in label), transcript), "sha256")
    words = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * math.prod(shape)))
    return np.frombuffer(words, dtype="<u8").astype(np.uint64, copy=False).reshape(shape)


def _spelled(*parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists are spelled alike."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)
