"""A small connection pooler: one session on the server, which it gives to one client after the other, without a reset."""

import socket
import threading

CANCEL_REQUEST = 80877102


def receive(stream, length):
    """Returns this number of bytes. Raises EOFError at the end of the connection."""
    data = b""
    while len(data) < length:
        try:
            part = stream.recv(length - len(data))
        except OSError:
            part = b""
        if not part:
            raise EOFError
        data += part
    return data


def message(stream):
    """Returns one message: its type, length and body."""
    head = receive(stream, 5)
    return head + receive(stream, int.from_bytes(head[1:], "big") - 4)


class Pooler:
    """Use it in a `with` block. `socket_dir` and `port` are for a client on the host."""

    def __init__(self, server):
        self.address = f"{server.socket_dir}/.s.PGSQL.{server.port}"
        self.socket_dir, self.port = server.socket_dir / "pool", server.port
        self.inside = server.inside(self.socket_dir)
        self.socket_dir.mkdir()
        self.socket_dir.chmod(0o755)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{self.socket_dir}/.s.PGSQL.{self.port}")
        (self.socket_dir / f".s.PGSQL.{self.port}").chmod(0o777)
        self.listener.listen()
        self.session, self.welcome, self.client = None, b"", None
        self.in_use = threading.Lock()

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        if self.session:
            self.session.close()

    def connect(self, startup):
        session = socket.socket(socket.AF_UNIX)
        session.connect(self.address)
        session.sendall(startup)
        return session

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = receive(client, 8)
        startup = head + receive(client, int.from_bytes(head[:4], "big") - 8)
        if int.from_bytes(head[4:], "big") == CANCEL_REQUEST:
            with self.connect(startup) as request, client:
                request.recv(1)
            return
        with self.in_use, client:
            if not self.session:
                self.session = self.connect(startup)
                while self.welcome[-6:-1] != b"Z\0\0\0\5":
                    self.welcome += message(self.session)
                threading.Thread(target=self.answer, daemon=True).start()
            self.client = client
            client.sendall(self.welcome)
            try:
                # The session outlives its clients.
                while (request := message(client))[:1] != b"X":
                    self.session.sendall(request)
            except EOFError:
                pass

    def answer(self):
        """Sends the server's answers to the current client."""
        try:
            while answer := self.session.recv(1 << 16):
                try:
                    self.client.sendall(answer)
                except OSError:
                    pass
        except OSError:
            pass
