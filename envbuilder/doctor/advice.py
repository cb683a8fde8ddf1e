"""What each thing is needed for, and how one gets it or does without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """Kept under the id of the item that is missing or wrong.

    ``debian`` names the Debian packages that bring it, None where no package does.
    """

    needed_for: str
    without_root: str
    debian: str | None = None


_COMPILER = Advice(
    "recipes that compile: mpi4py or Horovod from source; the recipe allreduce compiles nothing",
    "load a compiler module (module avail gcc), or take conda's package 'compilers'",
    "build-essential",
)
_CONTAINER_BUILD = "building and running container images"

ADVICE: dict[str, Advice] = {
    "machine.arch": Advice(
        "choosing wheels and packages", "use a machine with x86_64, ppc64le or aarch64"
    ),
    "machine.glibc": Advice(
        "binary wheels: those of the Python package index are built for glibc",
        "use a machine or a container image with glibc (Debian, Ubuntu, RHEL and their kin)",
    ),
    "machine.memory": Advice(
        "building and starting ranks", "ask the scheduler for more memory, or use another node"
    ),
    "modules.system": Advice(
        "'module load NAME' for built environments, and recipes that use the site's modules",
        "environments still work by: source PREFIX/bin/activate; "
        "Lmod can also be installed into a home folder with conda's package 'lmod'",
        "lmod",
    ),
    "modules.path": Advice(
        "finding the site's modules",
        "module use FOLDER for the folders that exist, or correct MODULEPATH where it is set",
    ),
    "mpi": Advice(
        "starting ranks with the machine's own MPI and its fast network",
        "the recipe allreduce brings MPICH from a wheel (x86_64, aarch64); "
        "on a cluster load the site's MPI: module avail mpi",
        "openmpi-bin libopenmpi-dev",
    ),
    "mpi.command": Advice(
        "starting ranks or compiling with this MPI",
        "load a module that brings a working MPI, or take the recipe allreduce, which brings one",
        "openmpi-bin libopenmpi-dev",
    ),
    "mpi.known-bad": Advice(
        "starting ranks that do not hang",
        "load another version of the MPI (module avail mpi), "
        "or take the recipe allreduce, which brings MPICH from a wheel",
    ),
    "mpi.mixed": Advice(
        "programs must be started by the MPI that they were compiled with",
        "put one MPI first on PATH, or load only one MPI module",
    ),
    "compilers.gcc": _COMPILER,
    "compilers.g++": _COMPILER,
    "compilers.gfortran": Advice(
        "recipes that compile Fortran (some MPI and BLAS builds)",
        "load a compiler module, or take conda's package 'fortran-compiler'",
        "gfortran",
    ),
    "compilers.nvcc": Advice(
        "recipes that compile for NVIDIA GPUs (Horovod's GPU operations)",
        "load a CUDA module (module avail cuda), or take conda's package 'cuda-nvcc'",
        "nvidia-cuda-toolkit",
    ),
    "compilers.cmake": Advice(
        "recipes that compile Horovod",
        "pip install cmake in a virtualenv of your own, or load a module (module avail cmake)",
        "cmake",
    ),
    "compilers.make": Advice(
        "recipes that compile",
        "load a compiler or buildenv module, or take conda's package 'make'",
        "make",
    ),
    "compilers.bash": Advice(
        "every build: build.sh is a bash script",
        "take conda's package 'bash' and put it on PATH",
        "bash",
    ),
    "conda": Advice(
        "recipes with backend conda; virtualenv recipes do without",
        "micromamba is one file that runs from any folder, without an installation",
    ),
    "conda.command": Advice(
        "recipes with backend conda",
        "run it by hand to see what it says; micromamba is one file that runs from any folder",
    ),
    "containers": Advice(
        _CONTAINER_BUILD,
        "apptainer can be installed unprivileged into a home folder (its install-unprivileged.sh), "
        "where user namespaces are on; or ask the site",
        "podman",
    ),
    "containers.command": Advice(
        _CONTAINER_BUILD, "run it by hand to see what it says, or ask the site"
    ),
    "containers.userns": Advice(
        "building and running images without root",
        "ask the site to allow user namespaces, or build the image on another machine",
    ),
    "containers.subuid": Advice(
        "building images that need several user ids (podman, apptainer --fakeroot)",
        "ask the site for a range in /etc/subuid and /etc/subgid and for newuidmap",
        "uidmap",
    ),
    "containers.fuse": Advice(
        "running image files (SIF) without unpacking them, unprivileged",
        "run from an unpacked folder instead (apptainer build --sandbox), or ask the site",
        "fuse3",
    ),
    "scheduler": Advice(
        "jobs and proofs over several nodes",
        "ranks run on this machine alone; on a cluster log in to a node that has the scheduler",
        "slurm-client",
    ),
    "scheduler.command": Advice(
        "jobs and proofs over several nodes", "run it by hand to see what it says, or ask the site"
    ),
    "pythons": Advice(
        "every virtualenv environment",
        "load a Python module (module avail python), or install one into your home folder with "
        "pyenv, uv or micromamba",
        "python3 python3-venv",
    ),
    "pythons.venv": Advice(
        "making a virtualenv with this interpreter (it lacks venv, ensurepip or zlib)",
        "use another interpreter: a module, or one from pyenv, uv or micromamba",
        "python3-venv",
    ),
    "network.pip-files": Advice(
        "pip reads it and fails on it", "correct the file, or point PIP_CONFIG_FILE to another one"
    ),
    "network.pip-redirects": Advice(
        "pip must put packages into the environment and nowhere else",
        "remove these options from the file or variable while building",
    ),
    "gpu": Advice(
        "recipes with NCCL or CUDA; the recipe allreduce needs none",
        "log in to a node with GPUs, or ask the scheduler for one (srun --gres=gpu:1 --pty bash)",
    ),
    "gpu.driver": Advice(
        "recipes with NCCL or CUDA", "ask the site: the driver does not answer on this node"
    ),
    "gpu.gpudirect": Advice(
        "NCCL between nodes without a copy through the host's memory",
        "ask the site to load nvidia-peermem, which NVIDIA's driver has from 470 on, or to use its "
        "open kernel modules with Linux 5.12 or later; NCCL runs without, but slower",
    ),
    "places.home": Advice(
        "the cache and the configuration, unless they are moved",
        "move the cache with XDG_CACHE_HOME=FOLDER, give --root FOLDER on a file system that can "
        "be written",
    ),
    "places.cache": Advice(
        "keeping downloads and built wheels, so that the next build is quick",
        "set XDG_CACHE_HOME to a folder with space that you may write (a workspace, /scratch)",
    ),
    "places.root": Advice(
        "keeping the environments", "give --root FOLDER, a folder with space that you may write"
    ),
    "places.temp": Advice(
        "building: compilers and pip unpack and run programs there",
        "set TMPDIR to a folder of yours that can be written and run from",
    ),
    "python-settings.pythonpath": Advice(
        "environments that see their own packages: PYTHONPATH outranks a virtualenv",
        "unset PYTHONPATH, or unload the module that sets it",
    ),
    "python-settings.pythonhome": Advice(
        "any Python but the one it was set for", "unset PYTHONHOME"
    ),
    "looked": Advice(
        "telling what this machine has", "run doctor again; if it stays so, report it"
    ),
}
