"""The key stream is ChaCha20 as RFC 8439 prints it."""

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.privacy.noise.stream import write_key_stream

COUNTING_KEY = bytes(range(32)).hex()

# key, nonce, counter, key stream: sections 2.3.2 and 2.4.2, and appendix A.1, test vectors 1 to 5
RFC_8439 = {
    "2.3.2": (
        COUNTING_KEY,
        "000000090000004a00000000",
        1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    "2.4.2": (
        COUNTING_KEY,
        "000000000000004a00000000",
        1,
        "224f51f3401bd9e12fde276fb8631ded8c131f823d2c06e27e4fcaec9ef3cf78"
        "8a3b0aa372600a92b57974cded2b9334794cba40c63e34cdea212c4cf07d41b7"
        "69a6749f3f630f4122cafe28ec4dc47e26d4346d70b98c73f3e9c53ac40c5945"
        "398b6eda1a832c89c167eacd901d7e2bf363",
    ),
    "A.1 #1": (
        "00" * 32,
        "00" * 12,
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    "A.1 #2": (
        "00" * 32,
        "00" * 12,
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    "A.1 #3": (
        "00" * 31 + "01",
        "00" * 12,
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    "A.1 #4": (
        "00ff" + "00" * 30,
        "00" * 12,
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    "A.1 #5": (
        "00" * 32,
        "00" * 11 + "02",
        0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
}


def written(key, size, nonce=bytes(12), counter=0):
    """Head and target, one after the other: the key stream from its first byte."""
    target = bytearray(size - 32)
    head = write_key_stream(key, memoryview(target), nonce, counter)
    assert len(head) == 32
    return head + bytes(target)


@pytest.mark.parametrize(("key", "nonce", "counter", "stream"), RFC_8439.values(), ids=RFC_8439)
def test_known_answers(key, nonce, counter, stream):
    key, nonce, stream = (bytes.fromhex(text) for text in (key, nonce, stream))
    assert written(key, len(stream), nonce, counter) == stream
    cipher = Cipher(ChaCha20(key, counter.to_bytes(4, "little") + nonce), mode=None).encryptor()
    assert cipher.update(bytes(len(stream))) == stream


QUARTER_ROUNDS = [(j, 4 + j, 8 + j, 12 + j) for j in range(4)] + [
    (j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4) for j in range(4)
]


def block(key, counter, nonce):
    """One block of ChaCha20 in plain Python, from section 2.3 of the RFC."""

    def little(data):
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]

    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *little(key), counter, *little(nonce)]
    state = list(start)

    def mix(a, b, into, by):
        state[a] = (state[a] + state[b]) % 2**32
        turned = state[into] ^ state[a]
        state[into] = (turned << by | turned >> (32 - by)) % 2**32

    for _ in range(10):
        for a, b, c, d in QUARTER_ROUNDS:
            mix(a, b, d, 16)
            mix(c, d, b, 12)
            mix(a, b, d, 8)
            mix(c, d, b, 7)
    return b"".join(((x + y) % 2**32).to_bytes(4, "little") for x, y in zip(state, start, strict=True))


def test_long_streams_count_blocks_as_plain_python_does():
    key = bytes(range(100, 132))
    stream = written(key, 64 * 300)
    assert stream == b"".join(block(key, i, bytes(12)) for i in range(300))


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_keys_of_another_length_are_refused(length):
    with pytest.raises(ValueError, match="32 bytes"):
        write_key_stream(bytes(length), memoryview(bytearray(8)))


def test_an_empty_target_still_gives_the_next_key():
    assert write_key_stream(bytes(32), memoryview(bytearray(0))).hex() == RFC_8439["A.1 #1"][3][:64]
