"""Is found where PyTorch is not installed, and cannot be imported either."""

raise ImportError("PyTorch is not installed")
