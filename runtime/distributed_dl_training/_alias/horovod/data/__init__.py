"""``horovod.data``: loaders of data, one of which reads ahead in a thread."""

import queue
import threading
from typing import Any, Iterator

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]


class BaseDataLoader:
    """Iterates over batches that ``_iterate`` yields, each through ``_process_batch``."""

    def __len__(self) -> int:
        """Return the number of batches; for derived classes to tell."""
        raise NotImplementedError

    def _iterate(self) -> Iterator[Any]:
        """Yield batches; for derived classes to do."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for batch in self._iterate():
            yield self._process_batch(batch)

    def _process_batch(self, batch: Any) -> Any:
        """Return what is handed out of a batch."""
        return batch


class AsyncDataLoaderMixin:
    """Reads batches ahead in a thread; to be the first base, before a ``BaseDataLoader``."""

    _END = object()

    def __init__(
        self,
        async_loader_queue_size: int = 64,
        debug_data_loader: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """async_loader_queue_size: batches that are read ahead; 0: none, without a thread."""
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._closed = threading.Event()
        super().__init__(*args, **kwargs)

    def close_async_loader(self) -> None:
        """End reading ahead."""
        self._closed.set()

    def _read_ahead(self, batches: "queue.Queue[Any]") -> None:
        last: Any = self._END
        try:
            for batch in self._iterate():  # type: ignore[attr-defined]
                if not self._put(batches, batch):
                    return
        except Exception as error:  # raised where the batches are taken
            last = error
        self._put(batches, last)

    def _put(self, batches: "queue.Queue[Any]", batch: Any) -> bool:
        while not self._closed.is_set():
            try:
                batches.put(batch, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Any]:
        if not self.async_loader_queue_size:
            yield from super().__iter__()  # type: ignore[misc]
            return
        self._closed = threading.Event()
        batches: queue.Queue[Any] = queue.Queue(self.async_loader_queue_size)
        thread = threading.Thread(target=self._read_ahead, args=(batches,), daemon=True)
        thread.start()
        try:
            while True:
                batch = batches.get()
                if batch is self._END:
                    return
                if isinstance(batch, Exception):
                    raise batch
                yield self._process_batch(batch)  # type: ignore[attr-defined]
        finally:
            self._closed.set()
            thread.join()
