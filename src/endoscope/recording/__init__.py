"""Record a training run: when, what and how are three objects; nothing here may stop or change training."""
