"""Real PostgreSQL servers, 15 to 19, for tests of an extension or of a client. See README.md."""

from .commands import SKIPPED, Failed, Missing, Offline
from .installation import CACHE, MAJORS, Installation, install, installed
from .pgxs import build
from .server import Server

__all__ = ["CACHE", "MAJORS", "SKIPPED", "Failed", "Installation", "Missing", "Offline", "Server", "build", "install", "installed"]
