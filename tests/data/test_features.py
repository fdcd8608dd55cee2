import hashlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from spacenet.data import features as module
from spacenet.data.features import FeatureCache, encode_files, encode_samples
from spacenet.data.images import Damage
from spacenet.encoders.encoder import Encoder
from spacenet.errors import DataError, SettingsError
from tests.encoders.support import FEATURES, calls_of, one_color, pictures, save_pictures, tiny

pytest.importorskip("PIL", reason="images need the extra 'images'")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


def test_features_are_computed_once(cache: Path) -> None:
    encoder, x = tiny(), pictures(70)
    first = encode_samples(encoder, x)
    assert np.array_equal(first, encoder.encode(encoder.prepare(x)))
    before = calls_of(encoder)
    assert np.array_equal(encode_samples(encoder, x[::-1]), first[::-1])
    assert calls_of(encoder) == before
    assert len(list(cache.glob("*.sqlite"))) == 1


def test_other_weights_and_other_samples_have_other_features() -> None:
    x = pictures(3)
    one, two = encode_samples(tiny(), x), encode_samples(tiny(seed=1), x)
    assert not np.array_equal(one, two)
    encoder = tiny()
    encode_samples(encoder, x)
    assert calls_of(encoder) == 0
    encode_samples(encoder, x.reshape(3, 3, 24, 20))  # the same bytes in another shape
    assert calls_of(encoder) == 3


def test_what_was_interrupted_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, x = tiny(), pictures(200)
    chunks = 0

    def stop_in_the_third(self: Encoder, prepared: object, *rest: object) -> object:
        nonlocal chunks
        chunks += 1
        if chunks == 3:
            raise KeyboardInterrupt
        return plain(self, prepared, *rest)  # type: ignore[arg-type]

    plain = Encoder.encode
    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "encode", stop_in_the_third)
        with pytest.raises(KeyboardInterrupt):
            encode_samples(encoder, x)
    before = calls_of(encoder)
    encode_samples(encoder, x)
    assert calls_of(encoder) == 200
    assert before == 2 * module.CHUNK


def test_features_of_images_of_one_color_that_were_kept_before_are_not_used(cache: Path) -> None:
    """Earlier versions kept what the network gave for them, in a file with another name."""
    encoder, x = tiny(), one_color(3)
    encode_samples(encoder, x)
    with sqlite3.connect(next(cache.glob("*.sqlite"))) as base:
        base.execute("UPDATE features SET content = ?", (np.ones(FEATURES, "<f4").tobytes(),))
    base.close()
    assert encode_samples(encoder, x).all()
    name = hashlib.sha256(f"{encoder.name} {encoder.checksum} {encoder.takes}".encode()).hexdigest()[:24]
    next(cache.glob("*.sqlite")).rename(cache / f"{name}.sqlite")
    assert not encode_samples(encoder, x).any()
    assert not encode_samples(encoder, x).any(), "the cache says otherwise"


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_files_of_one_color_have_features_of_zeros(kind: str, tmp_path: Path) -> None:
    from PIL import Image

    files = [tmp_path / f"{row}.{kind}" for row in range(4)]
    for path, image in zip(files, [*one_color(6, (75, 61))[3:], pictures(1)[0]], strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(path)
    ((_, features),) = encode_files(tiny(), files)
    assert features.any(1).tolist() == [False, False, False, True]


def test_a_function_without_weights_is_not_kept(cache: Path) -> None:
    encoder = Encoder("mean", "", "", 3, lambda x: x.mean((2, 3)), tiny().takes)
    encode_samples(encoder, pictures(2))
    assert not cache.exists()


def test_the_cache_is_bounded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_limit", lambda: 40_000)
    encode_samples(tiny(seed=1), pictures(70))
    other = next(cache.glob("*.sqlite"))
    for label in range(8):
        encode_samples(tiny(), pictures(64, label))
    assert not other.exists()
    assert sum(path.stat().st_size for path in cache.glob("*.sqlite")) <= 60_000
    encoder = tiny()
    encode_samples(encoder, pictures(64, 7))  # the newest are there
    assert calls_of(encoder) == 0
    encode_samples(encoder, pictures(64, 0))
    assert calls_of(encoder) > 0


def test_a_limit_of_zero_keeps_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.LIMIT_VARIABLE, "0")
    encode_samples(tiny(), pictures(2))
    assert not cache.exists()
    monkeypatch.setenv(module.LIMIT_VARIABLE, "much")
    with pytest.raises(SettingsError, match="give a number of MiB"):
        encode_samples(tiny(), pictures(2))


def test_a_damaged_cache_is_begun_anew(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    x = pictures(2)
    expected = encode_samples(tiny(), x)
    path = next(cache.glob("*.sqlite"))
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert np.array_equal(encode_samples(tiny(), x), expected)
    assert "features are not kept" in caplog.text
    assert np.array_equal(encode_samples(tiny(), x), expected)
    encoder = tiny()
    encode_samples(encoder, x)
    assert calls_of(encoder) == 0


@pytest.mark.parametrize("content", [b"short", np.full(FEATURES, np.nan, "<f4").tobytes(), "text"])
def test_entries_that_are_no_features_are_computed_again(cache: Path, content: object) -> None:
    x = pictures(1)
    expected = encode_samples(tiny(), x)
    base = sqlite3.connect(next(cache.glob("*.sqlite")))
    base.execute("UPDATE features SET content = ?", (content,))
    base.commit()
    base.close()
    assert np.array_equal(encode_samples(tiny(), x), expected)


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("a file")
    assert encode_samples(tiny(), pictures(2)).shape == (2, FEATURES)
    assert "features are not kept" in caplog.text


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    folder = save_pictures(tmp_path / "photos", {"red": 0, "green": 1})
    files = sorted(folder.rglob("*.png"))
    encoder = tiny()
    ((kept, features),) = encode_files(encoder, files)
    assert kept == files
    files[0].rename(tmp_path / "moved.png")
    before = calls_of(encoder)
    ((_, again),) = encode_files(encoder, [tmp_path / "moved.png", *files[1:]])
    assert np.array_equal(again, features)
    assert calls_of(encoder) == before


def test_damaged_files_are_refused_or_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = save_pictures(tmp_path / "photos", {"red": 0})
    files = sorted(folder.rglob("*.png"))
    files[1].write_bytes(files[1].read_bytes()[:50])
    with pytest.raises(DataError, match=r"1\.png: not an image that can be read"):
        list(encode_files(tiny(), files))
    damage = Damage(skip=True)
    ((kept, features),) = encode_files(tiny(), files, damage)
    assert kept == [files[0], *files[2:]]
    assert len(features) == len(files) - 1
    damage.report(len(files))
    assert "1 of 6 images cannot be read and are left out: " in caplog.text
    assert "1.png: not an image" in caplog.text


def test_an_unusable_cache_says_so_once(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = FeatureCache(tiny())
    cache.mkdir(parents=True)
    kept.path.mkdir()
    kept.keep([b"key"], np.zeros((1, FEATURES), np.float32))
    kept.keep([b"key"], np.zeros((1, FEATURES), np.float32))
    assert kept.find([b"key"]) == {}
    assert caplog.text.count("features are not kept") == 1
