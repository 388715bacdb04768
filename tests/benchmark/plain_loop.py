"""The loop that most people would write, with which the baselines are compared.

Reads everything, pads everything to the longest of the whole set, takes the records as they come
and waits for each batch.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = getattr(torch, args.dtype)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, dtype=dtype)
    model.to(device).eval()
    records = [json.loads(line) for line in sys.stdin]
    tokens = tokenizer(
        [record["premise"] for record in records],
        [record["hypothesis"] for record in records],
        padding="longest",
        truncation=True,
        max_length=256,
        return_tensors="pt",
    )
    labels: list[int] = []
    with torch.no_grad():
        for start in range(0, len(records), args.batch_size):
            batch = {
                name: column[start : start + args.batch_size].to(device)
                for name, column in tokens.items()
            }
            labels += model(**batch).logits.argmax(dim=1).tolist()
    for record, label in zip(records, labels, strict=True):
        sys.stdout.write(json.dumps({"idx": record["idx"], "label": label}) + "\n")


if __name__ == "__main__":
    main()
