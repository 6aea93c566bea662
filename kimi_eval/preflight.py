"""Preflight: one look at the models list and one short chat; an address that cannot be measured stops here, plainly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson

from kimi_eval import profile as profiles
from kimi_eval.deployment import Capabilities, Deployment, Fact
from kimi_eval.problem import NotMeasured, Problem
from kimi_eval.profile import Profile
from kimi_eval.reply import Reply
from kimi_eval.transcript import Exchange, Failure
from kimi_eval.wire import Wire, new_exchange

SIMULATOR = "kimi-eval-simulator"  # what our own simulated deployment says it is owned by
_CEILING = 2048  # tokens of the short chat


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the preflight saw: the deployment to measure, its dialect, and the facts observed."""

    deployment: Deployment
    profile: Profile
    recognised_by: str
    capabilities: Capabilities
    observed: tuple[Fact, ...]
    exchanges: tuple[Exchange, ...]


async def look(wire: Wire, *, model_given: bool, effort: str) -> Sighting:
    """Asks for the models list and has one short chat.

    Raises NotMeasured for whatever cannot be measured, and Problem for what the user can mend, in one sentence each.
    """
    deployment = wire.deployment
    listing = await _get_models(wire)
    _must_be_reachable(listing, deployment)
    models = _models(listing)
    names = [str(model["id"]) for model in models]
    model = _choose_model(deployment, names, given=model_given)
    deployment = deployment.model_copy(update={"model": model})
    chat = await _short_chat(wire, deployment, effort)
    await _must_be_a_chat(wire, chat, listing, deployment, names)
    entry = next((entry for entry in models if entry["id"] == model), {})
    owned_by = str(entry.get("owned_by", ""))
    reply = Reply(chat)
    profile, recognised_by = _profile(deployment, owned_by, reply)
    observed = list(_observed(entry, reply, names))
    if profile.name != deployment.profile:
        observed.append(Fact("profile", f"{profile.name} (by {recognised_by})", "observed"))
    simulated = SIMULATOR in (owned_by, chat.header("server"))
    deployment = deployment.model_copy(update={"simulated": simulated})
    capabilities = _capabilities(deployment, profile, entry)
    return Sighting(deployment, profile, recognised_by, capabilities, tuple(observed), (listing, chat))


async def _get_models(wire: Wire) -> Exchange:
    exchange = new_exchange("preflight-models", "preflight", "GET", f"{wire.deployment.base_url}/models", b"")
    await wire.send(exchange, {"Accept": "application/json"})
    return exchange


async def _short_chat(wire: Wire, deployment: Deployment, effort: str) -> Exchange:
    body = {
        "model": deployment.model,
        "messages": [{"role": "user", "content": "Reply with exactly this and nothing else: ready"}],
        "stream": False,
        "reasoning_effort": effort,
        "max_completion_tokens": min(_CEILING, deployment.limits.max_completion_tokens or _CEILING),
    }
    url = f"{deployment.base_url}/chat/completions"
    exchange = new_exchange("preflight-chat", "preflight", "POST", url, orjson.dumps(body))
    await wire.send(exchange, {"Content-Type": "application/json", "Accept": "application/json"})
    return exchange


def _must_be_reachable(listing: Exchange, deployment: Deployment) -> None:
    url = deployment.base_url
    if listing.failure is Failure.CONNECT:
        raise NotMeasured(f"{url}: cannot connect ({listing.failure_text}); is the server up, and the address right?")
    if listing.failure is Failure.TLS:
        raise NotMeasured(f"{url}: {listing.failure_text}; use a certificate that this machine trusts, or http://")
    if listing.failure is not Failure.NONE and listing.status is None:
        raise NotMeasured(f"{url}/models: {listing.failure_text}; is this an HTTP API?")
    if listing.status in (401, 403):
        raise _refused(listing, deployment)


def _refused(exchange: Exchange, deployment: Deployment) -> NotMeasured:
    variable = deployment.api_key_env
    said = Reply(exchange).error_message.strip()
    key = f"the key in ${variable} was refused" if deployment.api_key else f"no key: ${variable} is not set"
    return NotMeasured(f"{exchange.url}: {exchange.status}, {key} ({said[:200]}); export {variable}=… and try again")


def _models(listing: Exchange) -> list[dict[str, Any]]:
    body = Reply(listing).body if listing.status == 200 else None
    data = body.get("data") if isinstance(body, dict) else None
    entries = data if isinstance(data, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _choose_model(deployment: Deployment, names: list[str], *, given: bool) -> str:
    """The model to ask for: the one that was named, or the only one that is served."""
    if not names or deployment.model in names:
        return deployment.model
    if not given and len(names) == 1:
        return names[0]
    near = get_close_matches(deployment.model, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "it serves " + ", ".join(names[:10]) + "; name one with --model"
    raise Problem(f"{deployment.base_url} serves no model {deployment.model!r}; {hint}")


async def _must_be_a_chat(
    wire: Wire, chat: Exchange, listing: Exchange, deployment: Deployment, names: list[str]
) -> None:
    if not chat.answered:
        raise NotMeasured(f"{chat.url}: a short chat got no complete reply ({chat.failure_text}); nothing was measured")
    reply = Reply(chat)
    if chat.status in (401, 403):
        raise _refused(chat, deployment)
    if reply.content_type == "text/html" or chat.raw.lstrip()[:1] == b"<":
        raise NotMeasured(f"{chat.url} answers {chat.status} with a web page; an API's address usually ends in /v1")
    if chat.status in (404, 405) and not names:
        if await _answers_below_v1(wire):
            raise Problem(f"{deployment.base_url} has no chat API, {deployment.base_url}/v1 has; use that address")
        raise NotMeasured(
            f"{chat.url}: {chat.status}; there is no chat completions API at this address (is it HOST/v1?)"
        )
    if chat.status == 404 and "model" in reply.error_message.lower():
        raise Problem(f"{deployment.base_url} serves no model {deployment.model!r} ({reply.error_message[:200]})")
    if chat.status == 200 and not isinstance(reply.body, dict):
        start = chat.raw[:60].decode("utf-8", "backslashreplace")
        raise NotMeasured(f"{chat.url}: answers 200 with a body that is not JSON ({_why_not_json(chat)}): {start!r}")
    if chat.status != 200:
        said = reply.error_message.strip()[:300]
        raise NotMeasured(f"{chat.url}: a short chat got {chat.status} ({said}); nothing was measured")


def _why_not_json(chat: Exchange) -> str:
    if not chat.raw:
        return "it is empty"
    try:
        orjson.loads(chat.raw)
    except ValueError as trouble:
        return str(trouble)
    return "it is not an object"


async def _answers_below_v1(wire: Wire) -> bool:
    url = f"{wire.deployment.base_url}/v1/models"
    exchange = new_exchange("preflight-v1", "preflight", "GET", url, b"")
    await wire.send(exchange, {"Accept": "application/json"})
    return bool(_models(exchange))


def _profile(deployment: Deployment, owned_by: str, reply: Reply) -> tuple[Profile, str]:
    if deployment.profile:
        return profiles.named(deployment.profile), "the profile that was named"
    headers = dict(reply.exchange.headers)
    body: Mapping[str, Any] = reply.body if isinstance(reply.body, dict) else {}
    return profiles.detect(owned_by, headers, frozenset({*body, *reply.choice, *reply.message}))


def _observed(entry: Mapping[str, Any], reply: Reply, names: list[str]) -> list[Fact]:
    facts = [Fact("models", " ".join(names[:20]), "observed")] if names else []
    for name in ("owned_by", "max_model_len", "context_length", "root"):
        if entry.get(name) is not None:
            facts.append(Fact(f"models.{name}", str(entry[name]), "observed"))
    if server := reply.exchange.header("server"):
        facts.append(Fact("server", server, "observed"))
    body = reply.body if isinstance(reply.body, dict) else {}
    if fingerprint := body.get("system_fingerprint"):
        facts.append(Fact("system_fingerprint", str(fingerprint), "observed"))
    if reply.reasoning_fields:
        facts.append(Fact("reasoning field", " ".join(reply.reasoning_fields), "observed"))
    return facts


def _capabilities(deployment: Deployment, profile: Profile, entry: Mapping[str, Any]) -> Capabilities:
    """What was declared, completed by what was observed and by what the profile assumes."""
    known: dict[str, Any] = dict(profile.capabilities)
    window = entry.get("max_model_len") or entry.get("context_length")
    if isinstance(window, int) and window > 0:
        known["max_model_len"] = window
    known |= deployment.capabilities.model_dump(exclude_none=True)
    return Capabilities(**known)
