"""A studio with real connections, in a thread of the test, and a browser to use it with."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spacenet.cli.serve import open_listener
from spacenet.serve.app import create_app
from spacenet.serve.hosts import own_hosts
from spacenet.serve.server import Server
from spacenet.studio.app import add_studio_routes
from spacenet.studio.session import Session
from tests.studio.strokes import strokes

LEARNING = 60_000
"""Milliseconds that learning may take on a busy machine."""


@contextmanager
def live_studio(folder: Path) -> Iterator[str]:
    """Yields the address of a new studio."""
    with (
        closing(Session(folder)) as session,
        ThreadPoolExecutor(2) as pool,
        open_listener("127.0.0.1", 0) as listener,
    ):
        host, port = listener.getsockname()[:2]
        app = create_app(session.models, pool, 2**22, own_hosts(host, port))
        add_studio_routes(app, session, app.state.context)
        server = Server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()


class Person:
    """Uses the page; notes what the browser says and asks for."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.address = address
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.page = page = self.context.new_page()
        self.said: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        self.answers = 0
        page.on("response", self._note)
        page.on("request", lambda request: self.asked.add(request.url))
        page.goto(address)
        page.locator("#start-drawings").wait_for()

    def _note(self, response: Any) -> None:
        self.answers += "/studio/answer" in response.url

    def begin(self) -> None:
        self.page.click("#start-drawings")
        self.page.locator("#work").wait_for()

    def draw(self, place: str, name: str, seed: int) -> None:
        pad = self.page.locator(f"#{place}-source .pad")
        pad.scroll_into_view_if_needed()
        box, mouse = pad.bounding_box(), self.page.mouse
        for stroke in strokes(name, seed):
            for number, (x, y) in enumerate(stroke):
                mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3 if number else 1)
                if number == 0:
                    mouse.down()
            mouse.up()

    def teach(self, label: str, name: str, seeds: range) -> None:
        """Add a class and draw examples of it."""
        self.page.fill("#class-name", label)
        self.page.click("#add-class button")
        for count, seed in enumerate(seeds, 1):
            self.draw("teach", name, seed)
            self.page.click("#teach-source [data-do=use]")
            self.page.locator(".card.chosen .count", has_text=f"{count} example").wait_for()

    def learn(self) -> None:
        self.page.click("#learn")
        self.wait_until_learned()

    def wait_until_learned(self) -> None:
        self.page.locator("#status", has_text="The examples are deleted").wait_for(timeout=LEARNING)

    def answer(self, name: str, seed: int) -> str:
        """What the page answers to a new drawing."""
        self.page.click("#try-source [data-do=clear]")
        awaited = self.answers + len(strokes(name, seed))
        self.draw("try", name, seed)
        while self.answers < awaited:
            self.page.wait_for_timeout(20)
        self.page.locator("#answer:not([aria-busy=true])").wait_for()
        return str(self.page.locator(".verdict .label").inner_text())

    def classes(self) -> list[str]:
        """The names of the classes that are known."""
        return [text.split("\n")[0] for text in self.page.locator("#classes tbody th").all_inner_texts()]

    def close(self) -> None:
        """Raises AssertionError if the browser complained, or something came from elsewhere."""
        self.context.close()
        assert self.said == []
        own = (self.address, "data:", f"blob:{self.address}")
        assert [url for url in self.asked if not url.startswith(own)] == []
