"""Pages leave the event loop to others while they are rendered."""

import asyncio

from service.page import rendering
from service.page.assets import Assets
from service.page.rendering import Renderer

LOGIN = {"title": "Log in", "to": "/", "refused": None}


async def while_others_wait(work):
    """What the work answers, and how often others had their turn meanwhile."""
    turns, done = 0, False

    async def others():
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.ensure_future(others())
    found = await work
    done = True
    await waiting
    return found, turns


def test_a_page_is_the_same_in_slices_and_others_have_their_turn_between_them(monkeypatch):
    async def rendered(seconds):
        monkeypatch.setattr(rendering, "SLICE_SECONDS", seconds)
        renderer = Renderer(Assets())
        await renderer.render("login", **LOGIN)
        return await while_others_wait(renderer.render("login", **LOGIN))

    in_one_piece, no_turns = asyncio.run(rendered(60.0))
    in_slices, turns = asyncio.run(rendered(0.0))
    assert in_slices == in_one_piece
    assert no_turns == 0
    assert turns > 5


def test_templates_are_compiled_once_and_not_on_the_event_loop(monkeypatch):
    compiled_on = []
    compile_all = Renderer._all_templates

    def noted(renderer):
        try:
            compiled_on.append(asyncio.get_running_loop())
        except RuntimeError:
            compiled_on.append(None)
        return compile_all(renderer)

    monkeypatch.setattr(Renderer, "_all_templates", noted)

    async def two_at_once():
        renderer = Renderer(Assets())
        return await asyncio.gather(*(renderer.render("login", **LOGIN) for _ in range(2)))

    first, second = asyncio.run(two_at_once())
    assert first == second
    assert compiled_on == [None]
