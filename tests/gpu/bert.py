"""A target the size of BERT-base with random weights; prints PyTorch's peak memory.

Needs torch and transformers, and takes the GPU where there is one.
"""

import argparse
import json
import sys
from itertools import islice

import torch
from transformers import BertConfig, BertForSequenceClassification

_LENGTH = 128


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model: torch.nn.Module = BertForSequenceClassification(BertConfig())
    model.to(device).eval()
    records = map(json.loads, sys.stdin)
    while batch := list(islice(records, args.batch_size)):
        for record, label in zip(batch, predict(model, batch, device), strict=True):
            sys.stdout.write(json.dumps({"idx": record["idx"], "label": label}) + "\n")
    sys.stdout.flush()
    reserved = torch.cuda.max_memory_reserved() if device.type == "cuda" else 0
    sys.stderr.write(json.dumps({"max_memory_reserved": reserved}) + "\n")


def predict(model: torch.nn.Module, batch: list[dict[str, str]], device: torch.device) -> list[int]:
    """Return a label for each record; the letters make the token ids."""
    ids = [[ord(letter) % 30000 for letter in json.dumps(r)[:_LENGTH]] for r in batch]
    padded = torch.tensor([row + [0] * (_LENGTH - len(row)) for row in ids], device=device)
    with torch.inference_mode():
        labels: list[int] = model(padded).logits.argmax(dim=1).tolist()
    return labels


if __name__ == "__main__":
    main()
