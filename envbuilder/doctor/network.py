"""Network facts without a network: proxies and pip's configuration, never a credential."""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..machine.host import LocalMachine, is_there
from ..machine.item_values import Item, Section, Status
from ..machine.items import make, section

PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")

# Options that name where packages come from: they may hold user names and tokens.
_ADDRESSES = ("index-url", "extra-index-url", "find-links", "proxy", "trusted-host")
# Options that put packages elsewhere than into the environment that is built.
_REDIRECTS = ("user", "target", "prefix", "root", "require-virtualenv")
_OFF = {"", "0", "false", "no", "off"}


@dataclass(frozen=True)
class PipOption:
    """One option that pip would read, and where it stands."""

    name: str
    value: str
    place: str


def address(text: str) -> str:
    """Return scheme and host of an address and nothing else: paths and queries may hold tokens."""
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return "(unreadable)"
    if not host:
        return f"{parts.scheme}: a local folder" if parts.scheme == "file" else "(a local folder)"
    shown = f"[{host}]" if ":" in host else host
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}{shown}" + (f":{port}" if port else "")


def network_section(host: LocalMachine) -> Section:
    """Return proxies and pip's settings. Connects to nothing."""
    return section("network", (_proxies(host), *_pip(host)))


def _proxies(host: LocalMachine) -> Item:
    names = [spelling for name in PROXIES for spelling in (name, name.upper())]
    values = {name: value for name in names if (value := host.environ.get(name))}
    details = [
        f"{name}: {'set' if name.lower() == 'no_proxy' else address(value)}"
        for name, value in values.items()
    ]
    found = f"{len(values)} variables set" if values else "none set"
    status: Status = "note" if values else "ok"
    return make("network.proxies", status, found, details=details, facts={"count": len(values)})


def pip_files(host: LocalMachine) -> list[str]:
    """Return the files that pip reads, in pip's order, whether they exist or not.

    Source: pip's documentation, topic Configuration.
    """
    environ = host.environ
    stated = environ.get("PIP_CONFIG_FILE", "")
    if stated == "/dev/null":
        return []
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [f"{folder}/pip/pip.conf" for folder in folders.split(":") if folder.startswith("/")]
    files.append("/etc/pip.conf")
    home = host.home()
    if home:
        files.append(f"{home}/.pip/pip.conf")
    config = environ.get("XDG_CONFIG_HOME", "")
    if config.startswith("/") or home:
        files.append(f"{config if config.startswith('/') else f'{home}/.config'}/pip/pip.conf")
    files += [f"{environ[v]}/pip.conf" for v in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(v)]
    if stated:
        files.append(stated)
    return list(dict.fromkeys(files))


def pip_options(host: LocalMachine) -> tuple[list[PipOption], list[str], dict[str, str]]:
    """Return pip's options from files and environment, the files read, and why others are not."""
    options, read, broken = [], [], dict[str, str]()
    for path in pip_files(host):
        text = host.read(path) if path.startswith("/") else None
        if text is None:
            if path.startswith("/") and is_there(host.at(path)):
                broken[path] = "cannot be read"
            continue
        read.append(path)
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error:
            # The error's own text quotes the line, which may hold a password.
            broken[path] = "not a valid configuration"
            continue
        options += [
            PipOption(name.replace("_", "-"), value or "", f"{path} [{part}]")
            for part in parser.sections()
            if part in {"global", "install", "download", "wheel"}
            for name, value in parser.items(part)
        ]
    for name in sorted(host.environ):
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE":
            option = name[4:].lower().replace("_", "-")
            options.append(PipOption(option, host.environ[name], name))
    return options, read, broken


def _pip(host: LocalMachine) -> Iterator[Item]:
    options, read, broken = pip_options(host)
    details = [path for path in read if path not in broken]
    details += [f"{path} ({why})" for path, why in broken.items()]
    yield make(
        "network.pip-files",
        "problem" if broken else ("note" if read else "ok"),
        f"{len(read)} read" + (f", {len(broken)} broken" if broken else ""),
        details=details,
        facts={"count": len(read)},
    )
    yield _indexes(options)
    redirects = [o for o in options if o.name in _REDIRECTS and o.value.lower() not in _OFF]
    if redirects:
        yield make(
            "network.pip-redirects",
            "problem",
            ", ".join(sorted({option.name for option in redirects})),
            details=[f"{option.name} in {option.place}" for option in redirects],
        )


def _indexes(options: Iterable[PipOption]) -> Item:
    details, indexes, offline = [], 0, False
    for option in options:
        if option.name in _ADDRESSES:
            values = option.value.split()
            indexes += len(values) if option.name in {"index-url", "extra-index-url"} else 0
            shown = ", ".join(address(value) for value in values)
            details.append(f"{option.name} in {option.place}: {shown}")
        elif option.name == "no-index":
            offline = option.value.lower() not in _OFF
            details.append(f"no-index in {option.place}")
    found = f"{indexes} configured" if indexes else "pip's default"
    return make(
        "network.pip-indexes",
        "note" if details else "ok",
        "none: pip is configured to use no index" if offline else found,
        details=details,
        facts={"count": indexes, "no-index": offline},
    )
