"""Files as Hugging Face's safetensors library writes them: every type that it has of PyTorch's. Run it where `torch` and
`safetensors` are installed; it writes types.safetensors beside itself."""
import pathlib

import torch
from safetensors.torch import save_file

here = pathlib.Path(__file__).parent
tensors = {
    "truth": torch.tensor([True, False, True]),
    "bytes": torch.tensor([[0, 1], [200, 255]], dtype=torch.uint8),
    "small": torch.tensor([-128, -1, 127], dtype=torch.int8),
    "short": torch.tensor([-32768, -1, 32767], dtype=torch.int16),
    "short.positive": torch.tensor([0, 40000, 65535], dtype=torch.uint16),
    "int": torch.tensor([[-(2**31)], [2**31 - 1]], dtype=torch.int32),
    "int.positive": torch.tensor([0, 2**32 - 1], dtype=torch.uint32),
    "long": torch.tensor(-(2**62), dtype=torch.int64),
    "long.positive": torch.tensor([2**63], dtype=torch.uint64),
    "half": torch.tensor([1.5, -65504.0, 6e-8], dtype=torch.float16),
    "brain": torch.tensor([1.5, -3e38], dtype=torch.bfloat16),
    "float": torch.arange(6, dtype=torch.float32).reshape(1, 2, 3) / 4,
    "double": torch.tensor([1 / 3], dtype=torch.float64),
    "eight": torch.tensor([1.5], dtype=torch.float8_e4m3fn),
    "none": torch.zeros(0, 3),
    "many": torch.ones(1, 1, 1, 1, 1, 1, 1, 1, 2),
    "\u00e4\"\\\n\U0001f600": torch.tensor([7.0]),
}
save_file(tensors, here / "types.safetensors", metadata={"format": "pt", "who": "\u00e4 \"quoted\""})
