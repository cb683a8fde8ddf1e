"""The recipe: what is wanted, as its author wrote it."""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from ..base import Document, Line, ModuleName, Name, VariableName, spelt
from ..knowledge.entries import AliasName, BackendName, LaunchOptions, RuntimeName, entries_of
from ..knowledge.ranges import VersionRange, check_range, refuse_arbitrary_equality
from ..knowledge.terms import AdvisoryId, Arch, Use
from ..knowledge.urls import ChannelName, CleanUrl, refuse_secret_queries


def _pip_requirement(text: str) -> str:
    # lazy import: 0.01 s, and few recipes name packages
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"not a pip requirement: {text!r} (write 'pandas>=2')") from error
    if requirement.url:
        raise ValueError(f"a requirement by URL cannot be locked by version: {text!r}")
    refuse_arbitrary_equality(requirement.specifier)
    return text


PipRequirement = Annotated[Line, AfterValidator(_pip_requirement)]

_CONDA_VERSION = r"(?:==|!=|<=|>=|~=|=|<|>)[A-Za-z0-9][A-Za-z0-9._+!*]*"
CondaSpec = Annotated[
    str,
    spelt(
        rf"^[a-z0-9_][a-z0-9._+-]*(?: (?:\*|{_CONDA_VERSION}(?:[,|]{_CONDA_VERSION})*)"
        r"(?: [A-Za-z0-9._+*]+)?)?$",
        "a conda package such as 'scipy', 'scipy >=1.5,<2' or 'scipy ==1.5.2 py37h14eb087_0'",
        300,
    ),
]
"""A conda package by name, version and build: the MatchSpecs that need no brackets."""

# Setting these through a recipe would break what the build and the modulefile promise, or would
# make a shell run what the value says.
PROTECTED_VARIABLES = frozenset(
    {
        "BASHOPTS",
        "BASH_ENV",
        "CDPATH",
        "ENV",
        "HOME",
        "IFS",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LOADEDMODULES",
        "MODULEPATH",
        "PATH",
        "PIP_PREFIX",
        "PIP_TARGET",
        "PIP_USER",
        "PROMPT_COMMAND",
        "PS4",
        "PYTHONHOME",
        "PYTHONNOUSERSITE",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "SHELL",
        "SHELLOPTS",
        "VIRTUAL_ENV",
        "ZDOTDIR",
    }
)


def _not_protected(name: str) -> str:
    if name in PROTECTED_VARIABLES:
        raise ValueError(f"{name} is managed by envbuild itself and cannot be set here")
    return name


FreeVariable = Annotated[VariableName, AfterValidator(_not_protected)]
"""A variable that a recipe may set."""


def _range_or_module(text: str) -> str:
    if names_module(text):
        return TypeAdapter(ModuleName).validate_python(text)
    return check_range(text)


def names_module(constraint: str) -> bool:
    """Whether a constraint of the stack names a module instead of a range of versions."""
    return "/" in constraint


Constraint = Annotated[Line, AfterValidator(_range_or_module)]
"""A version range, or exactly one module: ``>=2.3.7``, ``*``, ``NCCL/2.3.7-fosscuda-2018b``."""


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


FlagValue = Annotated[
    Line,
    BeforeValidator(_as_text),
    WithJsonSchema({"type": ["string", "integer"], "minLength": 1, "maxLength": 500}),
]
"""What a build variable is set to: text, also where it is written as a number (``1``)."""


def _once(what: str) -> AfterValidator:
    """Return the validator of lists that name nothing twice."""

    def check(items: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(items)) < len(items):
            raise ValueError(f"the same {what} is listed twice")
        return items

    return AfterValidator(check)


def _each_package_once(specs: tuple[str, ...]) -> tuple[str, ...]:
    names = [each.partition(" ")[0] for each in specs]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise ValueError(f"{twice[0]} is listed twice")
    return specs


class Runtime(Document):
    """The collective runtime of the environment."""

    package: RuntimeName = "distributed-dl-training"
    origin: Literal["build", "module"] = Field(
        default="build",
        description="module: load and prove the Horovod of the site; never build one.",
    )
    version: VersionRange = Field(
        default="*", description="Allowed releases; the bundled runtime has only one."
    )
    flags: dict[FreeVariable, FlagValue] = Field(
        default_factory=dict,
        description="Build variables by their own names, such as HOROVOD_GPU_ALLREDUCE; for "
        "origin: module, those that its builder set.",
    )
    aliases: Annotated[tuple[AliasName, ...], _once("alias")] = Field(
        default=(),
        description="Further names under which programs can import the bundled runtime: horovod, "
        "for programs that import horovod.torch or horovod.tensorflow without Horovod; ddl, for "
        "those that import IBM's ddl.",
    )
    source: Line | None = Field(
        default=None,
        description="Folder of runtime sources to build instead of the bundled ones, "
        "relative to the recipe's file.",
    )

    @field_validator("origin")
    @classmethod
    def _runtime_can_be_a_module(cls, origin: str, info: ValidationInfo) -> str:
        entries, package = entries_of(info), info.data.get("package")
        traits = entries.runtimes.get(package or "") if entries else None
        if origin == "module" and entries and traits and not traits.from_module:
            able = [name for name, each in entries.runtimes.items() if each.from_module]
            raise ValueError(f"only {' or '.join(able)} can come from a module, not {package}")
        return origin

    @field_validator("aliases")
    @classmethod
    def _aliases_are_of_the_bundled(
        cls, aliases: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        entries, package = entries_of(info), info.data.get("package")
        traits = entries.runtimes.get(package or "") if entries else None
        if aliases and traits and not traits.aliases:
            raise ValueError(
                f"aliases are of the bundled runtime: package is {package}, which has its own name"
            )
        return aliases


class Smoke(Document):
    """Settings of the smoke test."""

    ranks: int = Field(default=2, ge=2, le=4096, description="Number of MPI ranks to start.")
    max_bytes: int = Field(
        default=64 * 1024 * 1024, ge=4, le=2**31, description="Largest message in bytes."
    )
    timeout: int = Field(
        default=120, ge=5, le=86400, description="Seconds until a run counts as hung."
    )


def _not_reserved(name: str) -> str:
    # A root keeps it beside its environments.
    if name == "modulefiles":
        raise ValueError(f"the name {name!r} is reserved for the root's own folders")
    return name


def _no_target(backend: object) -> object:
    # What a prefix is built into, whatever its backend.
    if backend in ("container", "image"):
        raise ValueError(
            f"{backend} is not a backend but a target: name what is installed in it, such as "
            "virtualenv; envbuild image makes the image of a recipe"
        )
    return backend


def _with_python(stack: dict[str, str]) -> dict[str, str]:
    if "python" not in stack:
        raise ValueError("the stack names no python: add 'python: \">=3.9\"' or 'python: \"*\"'")
    return stack


class ArchVariant(Document):
    """Differences for an architecture (default of each key: that of the recipe)."""

    summary: Line | None = None
    stack: Annotated[dict[Name, Constraint], AfterValidator(_with_python)] | None = Field(
        default=None, min_length=1, description="The complete stack on this architecture."
    )
    system_site_packages: bool | None = None


class RecipeImage(Document):
    """The base of an image of the recipe, and the origin of its stack."""

    base: Line | None = Field(
        default=None,
        description="Base of the image, in the form of --base; a path is relative to the recipe's "
        "file.",
    )
    stack: Literal["packages", "modules"] = Field(
        default="packages",
        description="packages: the image contains packages of indexes and channels that the base "
        "lacks; modules: the image binds the modules of the site.",
    )


class Recipe(Document):
    """A requested environment. ``stack``: constraints; the resolver chooses the providers."""

    schema_: Literal[1] = Field(alias="schema")
    name: Annotated[Name, AfterValidator(_not_reserved)]
    summary: Line
    arch: Annotated[tuple[Arch, ...], _once("architecture")] = Field(min_length=1)
    documented_for: dict[Arch, Name] = Field(default_factory=dict)
    for_arch: dict[Arch, ArchVariant] = Field(
        default_factory=dict,
        description="Differences for an architecture: summary, stack, system-site-packages.",
    )
    backend: Annotated[BackendName, BeforeValidator(_no_target)] = "virtualenv"
    system_site_packages: bool = False
    stack: Annotated[dict[Name, Constraint], AfterValidator(_with_python)] = Field(min_length=1)
    toolchain: Line | None = Field(
        default=None,
        description="The toolchain generation to prefer, such as 2018b (default: the site's).",
    )
    uses: tuple[Use, ...] = Field(
        default=(), description="Features that the programs use and that not every program needs."
    )
    allow: dict[AdvisoryId, Line] = Field(
        default_factory=dict, description="Waived advisories, each with a reason."
    )
    pip_names: dict[Name, Line] = Field(
        default_factory=dict,
        description="Another distribution of a component, such as tensorflow: tensorflow-cpu.",
    )
    from_source: tuple[Name, ...] = Field(
        default=(),
        description="Components of the stack to compile from source, never to take from a module "
        "or wheel.",
    )
    packages: tuple[PipRequirement, ...] = Field(
        default=(), description="Additional pip requirements that are not components."
    )
    conda_packages: Annotated[tuple[CondaSpec, ...], AfterValidator(_each_package_once)] = Field(
        default=(),
        description="For backend: conda: additional packages that are not components, or builds "
        "of components of the stack.",
    )
    env: dict[FreeVariable, Annotated[Line, AfterValidator(refuse_secret_queries)]] = Field(
        default_factory=dict, description="Variables that loading the environment sets."
    )
    pip_indexes: tuple[CleanUrl, ...] = Field(
        default=(),
        description="Package indexes in order, instead of those in pip's configuration.",
    )
    find_links: tuple[CleanUrl, ...] = ()
    channels: Annotated[tuple[ChannelName, ...], _once("channel")] = Field(
        default=(),
        description="For backend: conda: the channels in order, each as a recorded name, a URL or "
        "a folder.",
    )
    runtime: Runtime = Runtime()
    launch_options: LaunchOptions = Field(
        default_factory=dict,
        description="Further options of launch lines, by launcher, behind those of the site.",
    )
    smoke: Smoke = Smoke()
    image: RecipeImage = RecipeImage()

    @field_validator("from_source")
    @classmethod
    def _built_is_in_the_stack(
        cls, names: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        for name in names:
            if name not in info.data.get("stack", {name: "*"}):
                raise ValueError(f"the stack does not name {name}: add '{name}: \"*\"' to it")
        return names

    @field_validator("channels")
    @classmethod
    def _channels_are_for_the_backend(
        cls, channels: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        entries, backend = entries_of(info), info.data.get("backend")
        fitting = entries.with_channels() if entries else ()
        if channels and entries and backend and backend not in fitting:
            raise ValueError(f"channels are for backend: {' or '.join(fitting)}")
        return channels

    @model_validator(mode="after")
    def _backend_has_channels(self, info: ValidationInfo) -> "Recipe":
        entries = entries_of(info)
        if entries and self.backend in entries.with_channels() and not self.channels:
            raise ValueError(
                f"backend: {self.backend} needs channels: name those that packages come from"
            )
        if entries and self.conda_packages and self.backend not in entries.with_channels():
            fitting = " or ".join(entries.with_channels())
            raise ValueError(f"conda-packages are for backend: {fitting}")
        return self

    @field_validator("runtime")
    @classmethod
    def _runtime_has_its_framework(cls, runtime: Runtime, info: ValidationInfo) -> Runtime:
        entries = entries_of(info)
        traits = entries.runtimes.get(runtime.package) if entries else None
        holder = traits.holder if traits else None
        if holder is not None and holder not in info.data.get("stack", {holder: "*"}):
            raise ValueError(
                f"{runtime.package} is part of {holder}, which the stack does not name: "
                f"add '{holder}: \"*\"' to it"
            )
        return runtime
