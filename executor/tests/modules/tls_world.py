"""Authorities and servers' certificates of a script's own."""

import pathlib
import ssl
import subprocess
import sys

PLACE = pathlib.Path(sys.argv[1])


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=PLACE)


def certificate(name: str) -> None:
    """A CA, and a certificate of it for 127.0.0.1, which is localhost, too."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
            "-keyout", f"{name}.ca.key", "-out", f"{name}.ca.crt")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=bundle",
            "-keyout", f"{name}.key", "-out", f"{name}.csr")
    (PLACE / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n", encoding="utf-8")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{name}.ca.crt", "-CAkey", f"{name}.ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "ext", "-out", f"{name}.crt")


def authority(name: str) -> str:
    """The certificate of the CA, in PEM."""
    return (PLACE / f"{name}.ca.crt").read_text(encoding="utf-8")


def server_context(name: str) -> ssl.SSLContext:
    """What a server with that certificate speaks TLS with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PLACE / f"{name}.crt", PLACE / f"{name}.key")
    return context
