# SPDX-License-Identifier: LGPL-2.1-or-later
# Usage: stub-server.py CERTIFICATE LOG: an HTTPS server on a free port, which it prints. Answers 429 to the first request,
# lets the second one hang, and logs each later one as a line of JSON with the decoded body. /redirect sends to /rows, and
# /broken always fails.
import email.parser, gzip, http.server, json, ssl, sys, threading, urllib.parse

certificate, log_name = sys.argv[1:]
log, lock, state = open(log_name, "w"), threading.Lock(), {"requests": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        url = urllib.parse.urlsplit(self.path)
        if url.path in ("/redirect", "/broken"):
            return self.answer(302 if url.path == "/redirect" else 400, Location="/rows")
        with lock:
            state["requests"] += 1
            number = state["requests"]
        if number == 1:
            return self.answer(429, Retry_After="1")
        if number == 2:
            threading.Event().wait()
        entry = {"path": url.path, "query": dict(urllib.parse.parse_qsl(url.query)),
                 "token": self.headers["Authorization"], "tries": number}
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if self.headers["Content-Type"].startswith("multipart/"):
            head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n"
            part = email.parser.BytesParser().parsebytes(head + body).get_payload()[0]
            entry["form"] = part.get_param("name", header="content-disposition")
            body = part.get_payload(decode=True)
        if url.path == "/rows":
            entry["rows"] = [json.loads(line) for line in body.decode().splitlines()]
        else:
            entry["profile_bytes"] = len(gzip.decompress(body))
        with lock:
            print(json.dumps(entry), file=log, flush=True)
        self.answer(200)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
