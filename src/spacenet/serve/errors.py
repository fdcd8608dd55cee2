"""The one way to refuse a request."""


class RequestError(Exception):
    """A request that is answered with this status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
