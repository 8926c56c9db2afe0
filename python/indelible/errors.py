"""The errors of calls: the compiled extension raises them, and so does this package."""

from indelible._core import CheckError, HostError, InputError, InternalError

__all__ = ["CheckError", "HostError", "InputError", "InternalError"]
