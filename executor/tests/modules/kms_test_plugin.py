#!/usr/bin/env python3
"""A test plug-in of Kubernetes' KMS API v2, for tests alone: gRPC by HTTP/2 on a Unix socket, with keys of its own in a file. It encrypts with
SHA-256 as a key stream and proves what it decrypts by an HMAC; a plug-in for a cluster has its keys in a KMS.

    kms_test_plugin.py SOCKET KEYS        serves until it is ended; KEYS is made if it is not there
    kms_test_plugin.py --rotate KEYS      the plug-in encrypts with another key from then on, and decrypts with all
"""

import hashlib
import hmac
import json
import os
import socketserver
import struct
import sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
OK, INVALID = "0", "3"


class Keys:
    """By their ids; the last one encrypts."""

    def __init__(self, path):
        self.path = path
        if not os.path.exists(path):
            self.write({})
            self.rotate()

    def read(self):
        with open(self.path, encoding="utf-8") as source:
            return {name: bytes.fromhex(key) for name, key in json.load(source).items()}

    def write(self, keys):
        with open(f"{self.path}.new", "w", encoding="utf-8") as target:
            json.dump({name: key.hex() for name, key in keys.items()}, target)
        os.chmod(f"{self.path}.new", 0o600)
        os.replace(f"{self.path}.new", self.path)

    def rotate(self):
        keys = self.read()
        self.write({**keys, f"test-key-{len(keys) + 1}": os.urandom(32)})

    def current(self):
        return list(self.read().items())[-1]


def stream(key, nonce, size):
    blocks = (hashlib.sha256(key + nonce + struct.pack(">Q", number)).digest() for number in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def encrypt(key, plain):
    nonce = os.urandom(16)
    sealed = nonce + bytes(one ^ other for one, other in zip(plain, stream(key, nonce, len(plain))))
    return sealed + hmac.digest(key, sealed, "sha256")


def decrypt(key, sealed):
    sealed, proof = sealed[:-32], sealed[-32:]
    if not hmac.compare_digest(proof, hmac.digest(key, sealed, "sha256")):
        raise ValueError("it was not encrypted with this key")
    nonce, content = sealed[:16], sealed[16:]
    return bytes(one ^ other for one, other in zip(content, stream(key, nonce, len(content))))


def varint(number):
    found = b""
    while number > 0x7F:
        found, number = found + bytes([number & 0x7F | 0x80]), number >> 7
    return found + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(content):
    """The fields with bytes, by their numbers: there are no others."""
    found, at = {}, 0
    while at < len(content):
        number, at, size, shift = content[at] >> 3, at + 1, 0, 0
        while True:
            size, shift, at = size | (content[at] & 0x7F) << shift, shift + 7, at + 1
            if not content[at - 1] & 0x80:
                break
        found[number], at = content[at:at + size], at + size
    return found


def answer(keys, question):
    """Of one question: a Status has no fields, an Encrypt plaintext (1), a Decrypt ciphertext (1) and key_id (3)."""
    asked = fields(question)
    name, key = keys.current()
    if not asked:
        return field(1, b"v2") + field(2, b"ok") + field(3, name.encode())
    if 3 not in asked:
        return field(1, encrypt(key, asked.get(1, b""))) + field(2, name.encode())
    return field(1, decrypt(keys.read()[asked[3].decode()], asked[1]))


def frame(kind, flags, stream_id, content=b""):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream_id) + content


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def answered(keys, stream_id, question):
    """The frames of an answer. Which method it is tells the question: what its headers have is not read."""
    # :status 200 is the eighth entry of HPACK's table.
    head = b"\x88" + literal("content-type", "application/grpc")
    try:
        said, status = answer(keys, question[5:]), OK
    except (KeyError, ValueError):
        said, status = None, INVALID
    frames = frame(HEADERS, END_HEADERS, stream_id, head)
    if said is not None:
        frames += frame(DATA, 0, stream_id, b"\0" + struct.pack(">I", len(said)) + said)
    return frames + frame(HEADERS, END_HEADERS | END_STREAM, stream_id, literal("grpc-status", status))


class Connection(socketserver.StreamRequestHandler):
    """Whoever asks."""

    def handle(self):
        try:
            self.answer()
        except OSError:
            # Whoever asked is gone.
            pass

    def answer(self):
        if self.rfile.read(len(PREFACE)) != PREFACE:
            return
        self.wfile.write(frame(SETTINGS, 0, 0))
        questions = {}
        while len(head := self.rfile.read(9)) == 9:
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream_id = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            content = self.rfile.read(size)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.wfile.write(frame(kind, ACK, 0, content if kind == PING else b""))
            elif kind == DATA:
                content = content[1:len(content) - content[0]] if flags & PADDED else content
                questions[stream_id] = questions.get(stream_id, b"") + content
                if size:
                    self.wfile.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", size)))
                if flags & END_STREAM:
                    self.wfile.write(answered(self.server.keys, stream_id, questions.pop(stream_id)))
            self.wfile.flush()


class Plugin(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves on a socket."""

    daemon_threads = True

    def __init__(self, path, keys):
        self.keys = keys
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.remove(path)
        super().__init__(path, Connection)


if __name__ == "__main__":
    if sys.argv[1] == "--rotate":
        Keys(sys.argv[2]).rotate()
    else:
        Plugin(sys.argv[1], Keys(sys.argv[2])).serve_forever()
