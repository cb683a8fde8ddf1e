"""Which other machines' programs the kernel hands to an emulator: binfmt_misc of Linux."""

from __future__ import annotations

from .host import LocalMachine

_ARCHS = ("ppc64le", "aarch64", "x86_64")


def emulator(host: LocalMachine, arch: str) -> str | None:
    """Return what the kernel says of its emulator for *arch*; None where it has none enabled."""
    text = host.read(f"/proc/sys/fs/binfmt_misc/qemu-{arch}") or ""
    return text if text.startswith("enabled") else None


def emulated_archs(host: LocalMachine) -> list[str]:
    """Return the architectures whose programs the kernel hands to an emulator."""
    return [arch for arch in _ARCHS if emulator(host, arch)]
