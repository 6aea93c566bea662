"""Models: the list that clients choose from."""

from kimi_eval import MUST, SHOULD, Chat, check, expect, require


@check("`GET /models` lists the model that answers.", MUST, spec="protocol.md §7", variants=("",))
async def the_model_is_listed(chat: Chat) -> None:
    reply = await chat.send("GET", "/models")

    require(expect(reply.status, "status").equals(200))
    data = reply.body.get("data") if isinstance(reply.body, dict) else None
    require(expect(data, "data").is_a(list, "a list"))
    names = [entry.get("id") for entry in data or [] if isinstance(entry, dict)]
    expect(chat.session.deployment.model, "the model asked for").is_in(names)


@check("Every entry of the list has its fields.", SHOULD, spec="OpenAI API reference", variants=("",))
async def entries_have_their_fields(chat: Chat) -> None:
    reply = await chat.send("GET", "/models")

    body = reply.body if isinstance(reply.body, dict) else {}
    expect(body.get("object"), "object").equals("list")
    for number, entry in enumerate(body.get("data") or []):
        entry = entry if isinstance(entry, dict) else {}
        expect(entry.get("id"), f"data[{number}].id").is_text()
        expect(entry.get("object"), f"data[{number}].object").equals("model")
        expect(entry.get("created"), f"data[{number}].created").is_a(int, "an integer")
        expect(entry.get("owned_by"), f"data[{number}].owned_by").is_text()
