"""Words that several documents share: architectures, origins, severities, APIs."""

from typing import Annotated, Literal

from ..base import spelt

Arch = Literal["x86_64", "ppc64le", "aarch64"]

Origin = Literal["module", "system", "conda", "pip", "build"]
"""What provides a component."""

PlainVersion = Annotated[str, spelt(r"^[0-9][A-Za-z0-9.+_-]*$", "a version such as 3.1.4", 64)]

FactName = Annotated[str, spelt(r"^[a-z][a-z0-9_]*$", "a fact's name such as cuda_aware", 40)]
"""A fact of what provides a component, which conditions ask for as COMPONENT.fact."""

AdvisoryId = Annotated[str, spelt(r"^[A-Z][A-Z0-9]*(-[A-Z0-9]+)+$", "an id such as OMPI-001", 40)]
"""The id of a row of knowledge, such as OMPI-001."""

GpuVendor = Literal["nvidia", "amd"]

Severity = Literal["error", "warning", "info"]

Api = Literal["numpy", "mpi4py", "torch.distributed", "horovod.torch", "horovod.tensorflow"]
"""What a program communicates through: the bundled runtime (numpy), or one of the environment."""

Transport = Literal["mpi", "nccl", "gloo"]
"""What carries the data of a collective."""

Use = Literal["alltoall", "elastic", "spark", "multi-node", "large-model-support"]
"""A feature that only some programs need."""

Profile = Literal["scorep"]
"""A variant of a recipe that is measured while it runs."""

PeerMemory = Literal["nv_peer_mem", "nvidia_peermem"]
"""Kernel modules by which a network card reaches GPU memory, as the kernel spells them."""
