"""pylock.toml and uv.lock: each package that Linux needs, and the line of each loss."""

from __future__ import annotations

from envbuilder.documents.source import source_of
from envbuilder.formats import python_lock

UV = """\
version = 1
requires-python = ">=3.10"
[[package]]
name = "ours"
source = { virtual = "." }
dependencies = [{ name = "click" }, { name = "torch", extra = ["opt"] }]
[package.dev-dependencies]
dev = [{ name = "pytest" }]
[[package]]
name = "click"
version = "8.2.1"
source = { registry = "https://index.example.org/simple" }
dependencies = [{ name = "colorama", marker = "sys_platform == 'win32'" }]
wheels = [{ url = "https://x.example/click-8.2.1-py3-none-any.whl", hash = "sha256:0" }]
[[package]]
name = "colorama"
version = "0.4.6"
source = { registry = "https://index.example.org/simple" }
[[package]]
name = "torch"
version = "2.3.0+cu121"
source = { registry = "https://torch.example/cu121" }
dependencies = [{ name = "nccl", marker = "platform_machine == 'x86_64'" }]
wheels = [{ url = "https://x.example/torch-2.3.0-cp310-cp310-linux_x86_64.whl" }]
[package.optional-dependencies]
opt = [{ name = "opt-einsum" }]
[[package]]
name = "nccl"
version = "2.20.5"
source = { registry = "https://index.example.org/simple" }
wheels = [{ url = "https://x.example/nccl-2.20.5-py3-none-win_amd64.whl" }]
[[package]]
name = "opt-einsum"
version = "3.4.0"
source = { registry = "https://index.example.org/simple" }
sdist = { url = "https://x.example/opt_einsum-3.4.0.tar.gz" }
"""


def lines_of(notes: tuple[str, ...]) -> list[int]:
    return [int(note.split(":")[1]) for note in notes]


def test_a_lock_of_uv_is_what_its_project_needs_on_linux() -> None:
    asked, notes = python_lock.read_uv(source_of(UV.encode(), "uv.lock"))
    assert asked.pip == (
        "--index-url https://index.example.org/simple",
        "--extra-index-url https://torch.example/cu121",
        "click==8.2.1",
        "torch==2.3.0+cu121",
        "nccl==2.20.5 ; (platform_machine == 'x86_64')",
        "opt-einsum==3.4.0",
    )
    assert asked.software == (("python", ">=3.10"),)
    # dev-dependencies, the project, hashes, colorama, nccl's wheel, an sdist, torch's index
    assert lines_of(notes) == [7, 3, 14, 15, 27, 32, 19]


def test_keys_of_a_pylock_are_noted_once_where_they_are() -> None:
    text = (
        'lock-version = "1.0"\nextras = ["gpu"]\n'
        '[[packages]]\nname = "a"\nversion = "1"\nrequires-python = ">=3"\n'
        '[[packages.wheels]]\nname = "a-1-py3-none-any.whl"\n'
        '[[packages]]\nname = "b"\nversion = "2"\nrequires-python = ">=3"\nsdist = {name = "b"}\n'
        '[[packages]]\nname = "c"\n[packages.vcs]\nurl = "https://x.example/c"\n'
    )
    asked, notes = python_lock.read_pylock(source_of(text.encode(), "pylock.toml"))
    assert asked.pip == ("a==1", "b==2")
    assert lines_of(notes) == [2, 6, 9, 14]
