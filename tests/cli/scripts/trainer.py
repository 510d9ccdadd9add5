"""A small BERT, trained by the Trainer of transformers."""

import hashlib
import os
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(2)
config = BertConfig(
    vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3
)
classifier = BertForSequenceClassification(config)
ids = torch.randint(0, 50, (64, 12))
samples = [{"input_ids": one, "labels": torch.tensor(int(one.sum()) % 3)} for one in ids]
arguments = TrainingArguments(
    output_dir=os.path.join(sys.argv[1], "out"), max_steps=12, per_device_train_batch_size=8, report_to=[],
    disable_tqdm=True, save_strategy="no", logging_strategy="no", use_cpu=True,
)  # fmt: skip
Trainer(model=classifier, args=arguments, train_dataset=samples).train()
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in classifier.parameters())).hexdigest())
