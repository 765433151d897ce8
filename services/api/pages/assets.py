"""Style and scripts. Their address changes with their content, so browsers keep them for ever."""

from __future__ import annotations

import hashlib
from http import HTTPStatus
from pathlib import Path

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

router = APIRouter(include_in_schema=False)

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_FILES = {
    path.name: path.read_bytes()
    for path in sorted((Path(__file__).parent / "static").iterdir())
    if path.suffix in _TYPES
}

_TAG = hashlib.sha256(b"".join(name.encode() + b"\0" + content for name, content in _FILES.items())).hexdigest()[:16]

_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def asset(name: str) -> str:
    """Return the path of a file."""
    assert name in _FILES, name
    return f"/static/{_TAG}/{name}"


@router.get("/static/{tag}/{name}")
async def static_file(tag: str, name: str) -> Response:
    """Send a file. A page of another version of the API gets ours, which it doesn't keep."""
    if name not in _FILES:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    headers = _FOR_EVER if tag == _TAG else {}
    return Response(_FILES[name], media_type=_TYPES[Path(name).suffix], headers=headers)
