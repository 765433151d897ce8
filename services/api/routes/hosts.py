"""Hosts."""

from fastapi import APIRouter

router = APIRouter(prefix="/api/hosts", tags=["hosts"])
