import torch

from spacenet.utils.seeding import generator


def draw(*key: object) -> list[float]:
    return torch.rand(4, generator=generator(*key)).tolist()  # type: ignore[arg-type]


def test_the_same_purpose_draws_the_same_whatever_was_drawn_before() -> None:
    first = draw(3, "shuffle", 1, 2)
    draw(3, "allocate", 0)
    assert draw(3, "shuffle", 1, 2) == first


def test_seeds_purposes_and_places_differ() -> None:
    drawn = [draw(3, "shuffle", 1, 2), draw(4, "shuffle", 1, 2), draw(3, "init", 1, 2), draw(3, "shuffle", 2, 1)]
    assert len({tuple(d) for d in drawn}) == 4
