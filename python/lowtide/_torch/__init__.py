"""The same as tensors: loaders, datasets and devices of PyTorch."""
