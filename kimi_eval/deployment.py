"""Deployment: what is measured: where it answers, and everything declared about it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, SecretStr, ValidationError

from kimi_eval.problem import Problem

DEFAULT_KEY_VARIABLE = "KIMI_API_KEY"
DEFAULT_MODEL = "kimi-k3.1-pro"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Engine(_Part):
    """The inference engine as its operator declares it."""

    name: str | None = None
    version: str | None = None
    branch: str | None = None
    commit: str | None = None
    image: str | None = None
    args: tuple[str, ...] = ()


class Hardware(_Part):
    """The accelerators it runs on."""

    sku: str | None = None
    count: PositiveInt | None = None
    driver: str | None = None


class Capabilities(_Part):
    """What the deployment says it can do; None means not declared."""

    max_model_len: PositiveInt | None = None
    vision: bool | None = None
    logprobs: bool | None = None
    cached_tokens: bool | None = None
    moonshot_extensions: bool | None = None
    responses_api: bool | None = None
    messages_api: bool | None = None


class Timeouts(_Part):
    """Seconds to wait: for a connection, for the first byte of a reply, between two bytes, and for a whole reply."""

    connect: PositiveFloat = 10.0
    first_byte: PositiveFloat = 300.0
    idle: PositiveFloat = 120.0
    total: PositiveFloat = 1800.0


class Limits(_Part):
    """Ceilings that the runner keeps: requests in flight, requests a minute, and tokens one reply may have."""

    concurrency: PositiveInt | None = None
    requests_per_minute: PositiveFloat | None = None
    max_completion_tokens: PositiveInt | None = None


class Prices(_Part):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about a deployment and who says so: it was declared by the user, or observed by us."""

    name: str
    value: str
    origin: Literal["declared", "observed", "assumed"]


class Deployment(_Part):
    """One deployment of the model. The key is read from the environment late and shown never."""

    base_url: str
    model: str = DEFAULT_MODEL
    api_key_env: str = DEFAULT_KEY_VARIABLE
    profile: str | None = None
    engine: Engine = Engine()
    hardware: Hardware = Hardware()
    quantisation: str | None = None
    parallelism: str | None = None
    kv_cache_dtype: str | None = None
    speculative: str | None = None
    capabilities: Capabilities = Capabilities()
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    proxy: str | None = None
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    prices: Prices | None = None
    simulated: bool = Field(default=False, exclude=True)

    @property
    def api_key(self) -> str | None:
        """The key out of the environment, or None."""
        return os.environ.get(self.api_key_env) or None

    @property
    def secrets(self) -> list[bytes]:
        """Everything that must never be stored: the key and the values of all extra headers."""
        values = [self.api_key, *(value.get_secret_value() for value in self.headers.values())]
        parts = urlsplit(self.proxy or "")
        values.append(parts.password)
        return [value.encode() for value in values if value and len(value) >= 4]

    def declared(self) -> Iterator[Fact]:
        """Every fact that the user gave, flat, in the order of the target file. No header value is among them."""
        given = self.model_dump(exclude_unset=True, exclude={"headers", "timeouts", "limits", "proxy", "prices"})
        yield from (Fact(name, value, "declared") for name, value in _flat(given))
        for name in self.headers:
            yield Fact(f"headers.{name}", "(set, not shown)", "declared")

    def subject(self, observed: Sequence[Fact] = ()) -> str:
        """The digest of all declared and observed facts: what a certificate is about."""
        facts = sorted((fact.name, fact.value) for fact in (*self.declared(), *observed))
        return "sha256:" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict):
            yield from _flat(inner, f"{name}.")
        elif isinstance(inner, (list, tuple)):
            yield name, " ".join(map(str, inner))
        elif inner is not None:
            yield name, str(inner).lower() if isinstance(inner, bool) else str(inner)


def from_url(url: str, **given: Any) -> Deployment:
    """A deployment known by its address only. Raises Problem where that is no HTTP URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Problem(f"{url!r} is neither an http(s) URL nor a target file; give https://HOST/v1 or targets/NAME.yaml")
    if parts.username or parts.password:
        raise Problem("the URL carries a user name or a key; put the key into $KIMI_API_KEY instead")
    return Deployment(base_url=url.rstrip("/"), **{key: value for key, value in given.items() if value is not None})


def from_file(path: Path) -> Deployment:
    """Reads a target file. Raises Problem with the line of the first mistake in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else "not UTF-8 text"
        raise Problem(f"{path}: cannot be read ({reason}); give a target file or an http(s) URL") from None
    try:
        data = yaml.safe_load(text)
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as trouble:
        mark = getattr(trouble, "problem_mark", None)
        where = f":{mark.line + 1}" if mark else ""
        problem = getattr(trouble, "problem", None) or "a mistake in the YAML"
        raise Problem(f"{path}{where}: not YAML ({problem}); mend that line") from None
    if not isinstance(data, dict):
        raise Problem(f"{path}: a target file is a mapping that begins with base_url: https://HOST/v1")
    if "api_key" in data:
        line = _line(tree, ("api_key",))
        raise Problem(
            f"{path}:{line}: a key does not belong into a file; export it as a variable and write api_key_env: NAME"
        )
    try:
        target = Deployment.model_validate(data)
    except ValidationError as trouble:
        raise Problem(_sentence(path, tree, trouble)) from None
    from_url(target.base_url)
    return target.model_copy(update={"base_url": target.base_url.rstrip("/")})


def _sentence(path: Path, tree: yaml.Node | None, trouble: ValidationError) -> str:
    first = trouble.errors()[0]
    place = tuple(str(part) for part in first["loc"])
    name = ".".join(place)
    line = _line(tree, place)
    more = f" (and {trouble.error_count() - 1} more)" if trouble.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _keys_at(place[:-1])
        near = get_close_matches(place[-1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known)
        return f"{path}:{line}: {name!r} is not a known key; {hint}{more}"
    if first["type"] == "missing":
        return f"{path}:{line}: {name!r} is missing; every target needs it{more}"
    told = first["msg"][:1].lower() + first["msg"][1:]
    return f"{path}:{line}: {name}: {told}, got {first['input']!r}{more}"


def _keys_at(place: Sequence[str]) -> list[str]:
    model: type[BaseModel] = Deployment
    for part in place:
        field = model.model_fields.get(part)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return [name for name, field in model.model_fields.items() if not field.exclude]


def _line(tree: yaml.Node | None, place: Sequence[str]) -> int:
    node, line = tree, 1
    for name in place:
        if not isinstance(node, yaml.MappingNode):
            break
        for key, value in node.value:
            if key.value == name:
                line, node = key.start_mark.line + 1, value
                break
        else:
            break
    return line


def parse_header(text: str) -> tuple[str, SecretStr]:
    """``Name: value`` as given on the command line. Raises Problem."""
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name.strip()):
        raise Problem("--header takes 'Name: value'")
    return name.strip(), SecretStr(value.strip())
