"""Dockerfiles, definition files and lists of modules: what counts, and a line for the rest."""

from __future__ import annotations

from envbuilder.documents.source import Source, source_of
from envbuilder.formats import container_file, module_list
from envbuilder.formats.environment_yml import EnvironmentFile


def container(text: str, **files: str) -> tuple[EnvironmentFile, list[int]]:
    """Return what a file asks for, and the lines of its notes. *files*: those beside it."""

    def beside(name: str) -> Source | None:
        key = name.replace(".", "_")
        return source_of(files[key].encode(), name) if key in files else None

    asked, notes = container_file.read(source_of(text.encode(), "Dockerfile"), beside)
    return asked, [int(note.split(":")[1]) for note in notes]


def test_commands_outside_of_quotes_are_read() -> None:
    text = (
        "FROM a\n"
        "ARG TORCH=2.0.1\n"
        "RUN pip install \"torch==${TORCH}; python_version>'3'\" && uv pip install six ; \\\n"
        "    # a comment\n"
        "    if true; then pip3 install -f https://x.example/w numpy; fi\n"
        "RUN make -j 4 || pip install $UNKNOWN\n"
        "RUN <<EOF\n"
        "python3 -m pip install scipy\n"
        "EOF\n"
    )
    asked, lines = container(text)
    link = "-f https://x.example/w"
    assert asked.pip == ("torch==2.0.1; python_version>'3'", "six", link, "numpy", "scipy")
    assert asked.places["numpy"].line == 5
    # FROM, ARG, if, fi, make, $UNKNOWN and the here-document's own command.
    assert lines == [1, 2, 5, 5, 6, 6, 7]


def test_conda_and_the_files_beside_are_read() -> None:
    text = (
        "FROM a\nCOPY env.yml /opt/\n"
        "RUN conda env update -n base --file /opt/env.yml\n"
        "RUN mamba install -y -c nvidia 'cuda-toolkit=12.1'\n"
        "RUN HOROVOD_WITH_MPI=1 OTHER=1 pip install horovod\n"
    )
    asked, lines = container(text, env_yml="channels: [own]\ndependencies: [numpy=1.26]\n")
    assert (asked.channels, asked.specs) == (("own", "nvidia"), ("numpy=1.26", "cuda-toolkit=12.1"))
    assert asked.variables == (("HOROVOD_WITH_MPI", "1"),)
    assert lines == [1, 2, 3, 5, 4]


def test_conda_adds_its_default_channels() -> None:
    command = "RUN conda install -c pytorch pytorch"
    asked, lines = container(f"FROM a\nRUN make\n{command}\n")
    assert (asked.channels, lines) == (("pytorch", "defaults"), [1, 2, 3])
    asked, lines = container(f"FROM a\nRUN bash Miniforge3.sh\n{command}\n")
    assert (asked.channels, lines) == (("pytorch",), [1, 2, 3])
    asked, lines = container(f"FROM a\nRUN make\n{command} -c nodefaults\n")
    assert (asked.channels, lines) == (("pytorch", "nodefaults"), [1, 2])


def modules(text: str) -> tuple[tuple[str, ...], list[int]]:
    source = source_of(text.encode(), "modules")
    assert module_list.is_one(source.text)
    asked, notes = module_list.read(source)
    return asked.modules, [int(note.split(":")[1]) for note in notes]


def test_modules_are_read_in_their_order() -> None:
    text = "Currently Loaded Modules:\n  1) gcc/9.3.0 (H)  3) cuda/11.4 <aL>\n  2) StdEnv\n"
    assert modules(text) == (("gcc/9.3.0", "StdEnv", "cuda/11.4"), [])
    text = "$ module list\nCurrently Loaded Modules:\n 1) gcc/9.3.0\nInactive Modules:\n 1) x/1\n"
    assert modules(text) == (("gcc/9.3.0",), [1])
    assert modules("module load gcc/9.3.0 openmpi/4.1.5\n") == (("gcc/9.3.0", "openmpi/4.1.5"), [])


def test_modules_of_a_script_and_of_a_collection() -> None:
    text = "module use --append /apps\nmodule load --notuasked gcc/12.3.0\n"
    assert modules(text) == (("gcc/12.3.0",), [1])
    assert modules("module purge\nml cuda/12.1\n# x\n") == (("cuda/12.1",), [1])


def test_each_package_behind_sudo_is_noted() -> None:
    asked, lines = container(
        "FROM a\nRUN sudo -E apt-get install -y git \\\n  curl && sudo pip install six\n"
    )
    assert (asked.pip, lines) == (("six",), [1, 2, 3])
