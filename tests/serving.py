"""Real servers on this machine, for what fetches."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def serving_by(
    handler: type[BaseHTTPRequestHandler], certificate: Path | None = None
) -> Iterator[str]:
    """Serve in a thread; yield the address, ``https://localhost:PORT`` with a certificate."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
