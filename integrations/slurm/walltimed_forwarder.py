#!/usr/bin/python3
"""Passes on what Slurm's jobcomp/elasticsearch plugin posts, with the token that it cannot keep.

    walltimed_forwarder.py --token-file /etc/walltimed/jobcomp-token
    JobCompLoc=http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster=NAME     # in slurm.conf

Every user can read JobCompLoc, and slurmctld writes it into its log. So the token stays in a file,
and this listens on loopback, to processes of Slurm's user only. The service's answer
goes back as it is: Slurm sends again what was not answered 200.
Python 3.6 or newer, standard library only; Linux.
"""

import argparse
import http.client
import http.server
import pwd
import signal
import socket
import struct
import sys
import urllib.parse

PATH = "/v1/adapters/slurm/jobcomp"
LARGEST = 8 * 2**20  # bytes, as the service takes; documents hold the script up to Slurm 24.11
PATIENCE = 10.0  # seconds for each step; the plugin itself would wait for ever
OK, REFUSED = 200, (401, 403)
ESTABLISHED = "01"  # in /proc/net/tcp


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("walltimed", timeout=PATIENCE)
        self.path = path

    def connect(self):
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connection_to(url):
    """Return an unopened connection to the service at ``http://HOST:PORT`` or ``unix:FILE``."""
    if url.startswith("unix:"):
        return UnixConnection(url[len("unix:") :])
    parts = urllib.parse.urlsplit(url)
    kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    return kind[parts.scheme](parts.hostname, parts.port, timeout=PATIENCE)


def status_of(answer):
    """Return the status of an answer; 200 without JSON is an error: Slurm forgets the document."""
    if answer.status == OK and answer.headers.get_content_type() != "application/json":
        raise ValueError("something else than the service answers")
    return answer.status


class Service:
    """The service that documents go to; each new failure is printed once.

    Args:
        url: where it listens.
        token_file: read again for every document, so that a new token is taken up.
    """

    def __init__(self, url, token_file):
        self.url, self.token_file, self.told = url, token_file, None

    def post(self, path, body):
        """Send a document and return the status of the answer; 503 if there is none."""
        connection = connection_to(self.url)
        try:
            bearer = "Bearer " + token_in(self.token_file)
            headers = {"Content-Type": "application/json", "Authorization": bearer}
            connection.request("POST", path, body, headers)
            status = status_of(connection.getresponse())
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.tell(f"documents wait in slurmctld: {type(error).__name__}: {error}")
            return 503
        finally:
            connection.close()
        refused = f"documents wait in slurmctld: the service refuses the token in {self.token_file}"
        self.tell(f"{refused} (HTTP {status}, scope ingest)" if status in REFUSED else None)
        return status

    def tell(self, trouble):
        """Print a failure, unless it is the same as before."""
        if trouble and trouble != self.told:
            print(trouble, file=sys.stderr, flush=True)
        self.told = trouble


def token_in(path):
    """Return the token in a file; an error does not repeat other content, as it may be a token."""
    with open(path, "rb") as file:
        words = file.read().split()
    if len(words) != 1:
        raise ValueError(f"{path} does not hold one token and nothing else")
    return words[0].decode("ascii")


class Forwarder(http.server.BaseHTTPRequestHandler):
    """Handler of one document."""

    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_POST(self):
        """Send the document to the service, and its status back."""
        length = self.headers.get("Content-Length", "")
        if urllib.parse.urlsplit(self.path).path != PATH:
            self.answer(404)
        elif not length.isdigit():
            self.answer(411)
        elif int(length) > LARGEST:
            self.drop(int(length))
            self.answer(200)  # or Slurm would send it again for ever
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                self.answer(self.server.service.post(self.path, body))

    def drop(self, length):
        """Read a document to its end and discard it."""
        print(f"a document of {length} bytes was dropped", file=sys.stderr, flush=True)
        while length:
            piece = self.rfile.read(min(length, 65536))
            if not piece:  # the sender has left
                return
            length -= len(piece)

    def answer(self, status):
        """Send a status without a body, and close the connection."""
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_):
        """Log nothing for each document."""


class Server(http.server.HTTPServer):
    """A server that takes documents one by one, as the plugin sends them.

    Args:
        address: host and port.
        service: where documents go.
        users: who may send them, by number.
    """

    def __init__(self, address, service, users):
        super().__init__(address, Forwarder)
        self.service, self.users = service, users

    def verify_request(self, request, client_address):
        """Return whether the connection belongs to one of the users, before anything is read."""
        return user_of(client_address, request.getsockname()) in self.users


def user_of(client, server):
    """Return the number of the user whose open socket talks to ours; None if it was closed.

    The kernel lists a socket that its owner has closed as root's.
    """
    row_of_client = [table_address(client), table_address(server), ESTABLISHED]
    with open("/proc/net/tcp") as table:
        rows = (line.split() for line in table)
        return next((int(row[7]) for row in rows if row[1:4] == row_of_client), None)


def table_address(address):
    """Return an IPv4 address and port in the form of /proc/net/tcp."""
    (number,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"


def parsed(arguments):
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--token-file", required=True, help="file with a token of scope ingest")
    parser.add_argument("--url", default="http://127.0.0.1:8580", help="or unix:FILE")
    parser.add_argument("--port", type=int, default=8581, help="of 127.0.0.1")
    parser.add_argument("--user", default="slurm", help="SlurmUser of slurm.conf")
    return parser.parse_args(arguments)


def server_of(options):
    """Return a server that accepts connections of Slurm's user."""
    users = {pwd.getpwnam(options.user).pw_uid}
    service = Service(options.url, options.token_file)
    return Server(("127.0.0.1", options.port), service, users)


def trouble_of(error, options):
    """Return a sentence that says why the server cannot listen."""
    if isinstance(error, KeyError):
        return f"there is no user {options.user!r}: name SlurmUser of slurm.conf by --user"
    return f"port {options.port} of 127.0.0.1 cannot be listened on: {error}"


def main(arguments=None):
    """Forward documents until SIGTERM."""
    options = parsed(arguments)
    try:
        server = server_of(options)
    except (KeyError, OSError, OverflowError) as error:
        print(trouble_of(error, options), file=sys.stderr)
        return 1
    with server:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
