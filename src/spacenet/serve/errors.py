"""The error that a request is answered with."""


class RequestError(Exception):
    """A request that gets this HTTP status and reason as its response."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
