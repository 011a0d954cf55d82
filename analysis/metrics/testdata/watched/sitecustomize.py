"""Notes in the file DIALLED every name that the interpreter looks up and every address that it connects to, except
those of this machine."""
import os
import sys

LOCAL = ("127.", "::1", "localhost")


def note(event, args):
    if event == "socket.connect":
        address = args[1]
        target = address[0] if isinstance(address, tuple) else None  # a path is a Unix socket
    elif event == "socket.getaddrinfo":
        target = args[0]
    else:
        return
    if target and not str(target).startswith(LOCAL):
        with open(os.environ["DIALLED"], "a") as out:
            out.write(f"{event} {target}\n")


sys.addaudithook(note)
