"""All errors a user can meet, as one tree.

EndoscopeError                   everything below; catch this to catch us and nobody else
├── MissingDependencyError       an optional library or program is missing   (also ImportError)
├── BadArgument                  an argument cannot mean anything            (also ValueError)
│   ├── NothingMatches           a pattern that selects no operation
│   └── BadEdit                  an edit that cannot be applied to the tensor it is meant for
├── LookupFailed                 a key that names nothing that was captured  (also KeyError)
├── ValueNotKept                 the value was not asked to be kept
├── ValueChanged                 the kept tensor was overwritten unseen, so its old value is gone
├── CannotReplay                 the trace lacks what a replay needs
├── StoreError                   a recording or trace could not be written: disk full, folder gone, ...
├── NotATrace                    nothing at this path that can be read as a saved trace
└── NotARecording                nothing at this path that can be read as a recording
    └── NewerFormat              it was written by a newer version of Endoscope

DamageWarning (a UserWarning)    part of a recording cannot be read; the rest can
RecordingWarning (a UserWarning) something could not be recorded; training goes on
PluginWarning (a UserWarning)    an installed plug-in could not be imported; everything else works

Every message says what was seen, why it cannot work and what to type instead. ``http_status`` is what the
server answers when the error reaches it.
"""

from __future__ import annotations


class EndoscopeError(Exception):
    """Base of every error that Endoscope raises on purpose."""

    http_status = 500


class MissingDependencyError(EndoscopeError, ImportError):
    """An optional library, or a program such as `dot`, is needed for what was asked."""

    http_status = 501


class BadArgument(EndoscopeError, ValueError):
    """An argument has no meaning here."""

    http_status = 400


class NothingMatches(BadArgument):
    """A pattern selected nothing; the message lists the nearest names."""

    http_status = 404


class BadEdit(BadArgument):
    """An edit changes what it must not change, or its target cannot be edited."""


class LookupFailed(EndoscopeError, KeyError):
    """A key names no operation, node, statistic or step; the message lists the nearest ones."""

    http_status = 404

    def __str__(self) -> str:
        # KeyError would show the repr of the message, with its newlines escaped.
        return str(self.args[0]) if self.args else ""


class ValueNotKept(EndoscopeError):
    """The operation or tensor is known, its value was not kept."""

    http_status = 404


class ValueChanged(EndoscopeError):
    """A kept tensor was overwritten after it was captured, by code that could not be seen."""

    http_status = 409


class CannotReplay(EndoscopeError):
    """The trace does not hold what a replay would need."""

    http_status = 409


class StoreError(EndoscopeError):
    """A recording or a trace could not be written; what was written before stays readable."""

    http_status = 507


class NotATrace(EndoscopeError):
    """Nothing at this path can be read as a trace: it is another file, a damaged one, or of another format."""

    http_status = 404


class NotARecording(EndoscopeError):
    """There is nothing at this path that can be read as a recording."""

    http_status = 404


class NewerFormat(NotARecording):
    """The recording was written by a newer version of Endoscope, in a format that this one does not know."""

    http_status = 409


class DamageWarning(UserWarning):
    """Part of a recording cannot be read; the message names the file. Everything else can be read."""


class RecordingWarning(UserWarning):
    """Something could not be recorded. Training goes on; the recording says what is missing."""


class PluginWarning(UserWarning):
    """An installed package that names itself a plug-in of Endoscope could not be imported; it is left out."""
