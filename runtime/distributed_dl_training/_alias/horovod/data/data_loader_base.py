"""``horovod.data.data_loader_base``: where some programs import the loaders from."""

from . import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]
