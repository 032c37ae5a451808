"""The ChaCha20 key stream (RFC 8439), from OpenSSL through the `cryptography` package."""

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

KEY_BYTES = 32


def write_key_stream(key: bytes, target: memoryview, nonce: bytes = bytes(12), counter: int = 0) -> bytes:
    """Fill `target` with key stream, and return the 32 bytes that come before it.

    Those 32 bytes are the next key: a caller that replaces its key by them after every call can never be made to
    repeat or to reconstruct what it drew before ("fast key erasure"). `target` may hold at most 2^31 bytes.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a ChaCha20 key has {KEY_BYTES} bytes, got {len(key)}")
    cipher = Cipher(ChaCha20(key, counter.to_bytes(4, "little") + nonce), mode=None).encryptor()
    head = cipher.update(bytes(KEY_BYTES))
    cipher.update_into(bytes(len(target)), target)
    return head
