"""`tracing(stop_after=...)`: end the traced code when a module has returned."""

from __future__ import annotations

from endoscope.analysis.selecting.patterns import nearest
from endoscope.capture.data.calls import Call, Calls
from endoscope.errors import BadArgument, NothingMatches


class Stopped(BaseException):
    """Ends the traced code; no `except Exception` of its own may catch it."""


class Stop:
    """When to end: the address of a module, `encoder.2`, or the n-th of its calls, `encoder.2:3`."""

    def __init__(self, calls: Calls, asked: str) -> None:
        known = [address for address, _ in calls.addresses.values() if address]
        if not isinstance(asked, str) or not known:
            raise BadArgument(
                f"stop_after={asked!r} is to be the address of a module in the target, such as 'encoder.2'"
                f"{'' if known else ', and the target has none: endoscope.tracing(model, stop_after=...)'}."
            )
        stem, colon, number = asked.rpartition(":")
        self.asked = asked
        self.address, self._pass = (stem, int(number)) if colon and number.isdigit() else (asked, 1)
        self.address = calls.first_name(self.address) or self.address
        self._calls = calls
        if self.address not in known:
            raise NothingMatches(
                f"stop_after={asked!r}: the target has no such module. "
                f"Nearest: {', '.join(nearest(self.address, known))}."
            )

    def returned(self, call: Call) -> None:
        if call.pass_ == self._pass and not call.is_function and self._calls.address(call) == self.address:
            raise Stopped

    def never_came(self) -> NothingMatches:
        return NothingMatches(
            f"stop_after={self.asked!r}: the block ended by itself, for {self.address} {self._times()} in it. "
            "Leave stop_after out, or type a module that runs."
        )

    def _times(self) -> str:
        passes = [call.pass_ for address, _, call in self._calls.module_calls() if address == self.address]
        return f"was called {len(passes)} time{'s' * (len(passes) != 1)}" if passes else "was never called"
