"""A stand-in for a component of Karmada: it says on its port how it is, by what is in the file that it was given, and nothing else.

`karmada_standin.py --port=N --file=PATH [--ends=WHY] [--certificate=PATH --key=PATH]`"""

import http.server
import pathlib
import ssl
import sys

OPTIONS = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
CONTENT = pathlib.Path(OPTIONS["file"]).read_text(encoding="utf-8")
if OPTIONS.get("ends"):
    sys.exit(f"stand-in: it ends, since {OPTIONS['ends']}")
print(f"stand-in: it began with {len(CONTENT)} characters", flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers everybody."""

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        well = CONTENT.startswith("well")
        body = b"ok" if well else b"the stand-in was given no good file"
        self.send_response(200 if well else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


httpd = http.server.ThreadingHTTPServer(("127.0.0.1", int(OPTIONS["port"])), Handler)
if "certificate" in OPTIONS:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(OPTIONS["certificate"], OPTIONS["key"])
    httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
httpd.serve_forever()
