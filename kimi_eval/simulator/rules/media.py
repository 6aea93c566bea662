"""Picture: the rules for image parts."""

from __future__ import annotations

from kimi_eval.simulator.images import UnreadableImage, read_image
from kimi_eval.simulator.request import Request, as_list, image_url
from kimi_eval.simulator.rules.rule import Verdict, rule


@rule("image")
def images_are_readable(request: Request) -> Verdict:
    for message in request.messages:
        for part in as_list(message.get("content")):
            if not isinstance(part, dict) or part.get("type") != "image_url":
                continue
            url = image_url(part)
            if url is None:
                return "Invalid request: image_url must be a string or an object with url"
            try:
                read_image(url)
            except UnreadableImage as problem:
                return f"Invalid request: image_url: {problem}"
    return None
