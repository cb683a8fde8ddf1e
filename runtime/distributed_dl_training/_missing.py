"""What is said of names of Horovod's API that are not there yet."""

from typing import Any, Callable, Collection


def not_yet(module: str, names: Collection[str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``, which Python asks from 3.7 on."""

    def missing(name: str) -> Any:
        if name in names:
            raise AttributeError(
                f"{module} has no {name} yet; docs/api.md tells what of Horovod's API is there"
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing
