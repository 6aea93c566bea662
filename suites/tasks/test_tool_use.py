"""Tool use: the right calls with the right arguments, then an answer from the results (tasks.md §5)."""

import random

from kimi_eval import Item, call_key, calls_exactly, function, task, user, with_tools

_ITEMS = "lamp kettle ladder blanket lantern compass hammer saddle teapot violin".split()
_STORES = "north harbour market station castle garden".split()

STOCK = function(
    "get_stock",
    {"item": {"type": "string"}, "store": {"type": "string"}},
    description="How many pieces of an item a store has. One store at a time.",
)
PRICE = function("get_price", {"item": {"type": "string"}}, description="The price of an item in euros.")
ORDER = function(
    "place_order",
    {"item": {"type": "string"}, "pieces": {"type": "integer"}},
    description="Orders pieces of an item. Only on request.",
)


@task(
    "Exactly the calls that a question needs are made.",
    spec="tasks.md §5 parallel calls, irrelevance",
    ask=with_tools,
    score=calls_exactly,
)
def calls_that_a_question_needs(draw: random.Random) -> Item:
    item, stores = draw.choice(_ITEMS), draw.sample(_STORES, draw.choice((1, 2, 3)))
    want_price = draw.random() < 0.5
    calls = [("get_stock", {"item": item, "store": store}) for store in stores]
    if want_price:
        calls.append(("get_price", {"item": item}))
    pieces = {store: draw.randint(0, 40) for store in stores}
    results = {call_key("get_stock", {"item": item, "store": store}): f"{pieces[store]} pieces" for store in stores}
    price = draw.randint(5, 90)
    results[call_key("get_price", {"item": item})] = f"{price} euros"
    listed = ", ".join(f"'{store}'" for store in stores)
    report = draw.randint(1000, 9999)
    text = f"For report {report}: how many pieces of '{item}' are there in each of these stores: {listed}?"
    if want_price:
        text += " And what does one piece cost?"
    text += " Look everything up with the tools in one step, with the names exactly as I wrote them."
    gold_calls = {"content": "", "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}
    said = "; ".join(f"{store}: {pieces[store]}" for store in stores) + (f"; {price} euros each" if want_price else "")
    return Item(
        (user(text),),
        expect=calls,
        gold=(gold_calls, {"content": said}),
        tools=(STOCK, PRICE, ORDER),
        results=results,
        knobs=f"calls={len(calls)}",
    )
