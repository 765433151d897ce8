"""Does beforehand what the first visitors would wait for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from services.api.pages.frame import compile_templates
from services.api.resources import Resources

log = logging.getLogger(__name__)


async def warm_up(resources: Resources) -> None:
    """Compile the pages, and take the looks that they show. Errors are left to those who look next."""
    looks: tuple[Awaitable[object], ...] = (resources.scene.get(), resources.draining.get())
    found = await asyncio.gather(asyncio.to_thread(compile_templates), *looks, return_exceptions=True)
    for error in found:
        if isinstance(error, Exception):
            log.debug("a page is not warm", exc_info=error)
