"""Folders of images with one sub-folder per class."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.features import encode_files
from spacenet.data.images import Damage, ImageFormat, list_images, read_headers, read_images
from spacenet.data.parts import Batch, Part, Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.errors import DataError, SettingsError

GRAYSCALE = ("1", "L", "LA")
"""Pillow's modes without color."""
ReadFiles = Callable[[Sequence[Path], Damage], Iterator[tuple[list[Path], Array]]]
"""Gives chunks of samples, and the files they come from."""
ImageSize = int | tuple[int, ...] | None
"""Height and width in pixels; one number is both."""


def folder_parts(
    path: Path,
    test: Path | None = None,
    image_size: ImageSize = None,
    target: Target | None = None,
    progress: bool = False,
    encoder: Encoder | None = None,
    skip_damaged: bool = False,
    images: ImageInput | None = None,
) -> tuple[Part, Part | None]:
    """The images of a folder, colored unless all of them are grayscale; and those of the test folder. With an encoder,
    their features; with `images`, prepared for an encoder that takes such images.

    Without a test folder, a folder of two folders `train` and `test` that have sub-folders is both.
    """
    if test is None and _class_folders(path / "train") and _class_folders(path / "test"):
        path, test = path / "train", path / "test"
    listed = [(folder, *_list_classes(folder)) for folder in (path, test) if folder is not None]
    read: ReadFiles
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    if encoder is not None:
        read, shape, dtype = partial(encode_files, encoder), (encoder.features,), np.dtype(np.float32)
    else:
        if target is not None:
            image_format = ImageFormat.for_model(target.shape, target.scale, target.resize)
        elif images is not None:
            image_format = ImageFormat.for_encoder(images)
        else:
            files = [file for _, files, _ in listed for file in files]
            image_format = _choose_format(files, image_size, progress, skip_damaged)
        read, shape, dtype = partial(_read_as, image_format), image_format.shape, np.dtype(np.uint8)
    parts = [_folder_part(*each, read, skip_damaged, shape, dtype) for each in listed]
    return parts[0], parts[1] if len(parts) > 1 else None


def _read_as(image_format: ImageFormat, files: Sequence[Path], damage: Damage) -> Iterator[tuple[list[Path], Array]]:
    return read_images(files, image_format, damage)


def _folder_part(
    folder: Path,
    files: Sequence[Path],
    labels: Sequence[str],
    read_files: ReadFiles,
    skip_damaged: bool,
    shape: tuple[int, ...],
    dtype: "np.dtype[Any]",
) -> Part:
    def read() -> Iterator[Batch]:
        damage, label_of = Damage(skip_damaged), dict(zip(files, labels, strict=True))
        for kept, x in read_files(files, damage):
            yield x, [label_of[path] for path in kept]
        damage.report(len(files))

    return Part(str(folder), len(files), shape, dtype, read, "images")


def _class_folders(path: Path) -> list[Path]:
    inside = path.iterdir() if path.is_dir() else ()
    return sorted(each for each in inside if each.is_dir() and not each.name.startswith("."))


def _list_classes(path: Path) -> tuple[list[Path], list[str]]:
    """The image files of all classes, and the class of each: the name of its folder."""
    folders = _class_folders(path)
    if not folders:
        problem = "has no sub-folders; put the images of each class into a folder of its own"
        raise DataError(f"{path}: {problem if path.is_dir() else 'no such folder'}")
    files = [(file, folder.name) for folder in folders for file in list_images(folder)]
    return [file for file, _ in files], [label for _, label in files]


def _choose_format(files: Sequence[Path], image_size: ImageSize, progress: bool, skip_damaged: bool) -> ImageFormat:
    """The height and width asked for, or those that all images have."""
    headers = read_headers(files, progress, Damage(skip_damaged))
    if not headers:
        raise DataError(f"{files[0]} and all other images cannot be read")
    (first, *_), sizes, modes = zip(*headers, strict=True)
    if image_size is not None:
        height, width = _height_and_width(image_size)
    else:
        width, height = sizes[0]
        for file, size, _ in headers:
            if size != sizes[0]:
                raise DataError(
                    f"{file} has {size[0]} × {size[1]} pixels, {first} {width} × {height}.",
                    cli="Use --image-size to bring all images to one size, e.g. --image-size 64.",
                    python="Pass image_size to bring all images to one size.",
                )
    shape = (height, width) if set(modes) <= set(GRAYSCALE) else (3, height, width)
    return ImageFormat(shape, resize=image_size is not None)


def _height_and_width(image_size: int | tuple[int, ...]) -> tuple[int, int]:
    given = (image_size,) if isinstance(image_size, int) else tuple(image_size)
    if len(given) not in (1, 2) or min(given) < 1:
        shown = " ".join(map(str, given))
        raise SettingsError(
            f"{shown} is not a size in pixels: give a height and a width, or one number", setting="image_size"
        )
    return given[0], given[-1]
