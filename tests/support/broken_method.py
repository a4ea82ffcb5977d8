"""A method with a bug, for tests of what the service does then."""


class BrokenMethod:
    """A method that can neither answer nor learn."""

    name = "max-usage"
    parameters: dict[str, float] = {}  # noqa: RUF012 - nothing changes them

    def predict(self, _submission):
        raise ZeroDivisionError

    def observe(self, _completion):
        raise ZeroDivisionError
