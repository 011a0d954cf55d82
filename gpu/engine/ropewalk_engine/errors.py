"""The errors that an answer can carry. PROTOCOL.md lists the kinds."""

from __future__ import annotations


class EngineError(Exception):
    """A call that failed. The engine continues to serve."""

    def __init__(self, kind: str, message: str, name: str = "") -> None:
        super().__init__(message)
        self.kind, self.message, self.name = kind, message, name


def bad_request(name: str, message: str) -> EngineError:
    return EngineError("bad_request", message, name)


def unsupported(name: str, message: str) -> EngineError:
    return EngineError("unsupported", message, name)


def corrupt(name: str, message: str) -> EngineError:
    return EngineError("corrupt", message, name)


def non_finite(name: str) -> EngineError:
    return EngineError("non_finite", f"non-finite value in {name}", name)


def is_full_memory(e: BaseException) -> bool:
    """Whether an allocation failed because the device's memory, or on the CPU the process's, was full."""
    return type(e).__name__ in ("OutOfMemoryError", "MemoryError") or (
        isinstance(e, RuntimeError) and "can't allocate memory" in str(e)
    )


def out_of_memory(e: BaseException) -> EngineError:
    return EngineError("out_of_memory", str(e).split("\n")[0])


def internal(e: BaseException) -> EngineError:
    """The error for an unexpected exception. A full memory keeps its own kind."""
    if is_full_memory(e):
        return out_of_memory(e)
    return EngineError("internal", f"{type(e).__name__}: {str(e)[:1000]}")


class Cancelled(EngineError):
    def __init__(self) -> None:
        super().__init__("cancelled", "the host cancelled the call")


class ProtocolError(Exception):
    """The peer broke the rules of frames, so the connection ends. id is 0 if the header could not be read."""

    def __init__(self, message: str, id: int = 0) -> None:
        super().__init__(message)
        self.id = id
