"""The API while its database goes away and comes back."""

from __future__ import annotations

import pytest

from local.servers import Servers
from tests.e2e.test_api_process import end, is_ready, running_api, until

pytestmark = pytest.mark.e2e


def test_a_database_that_restarts_is_used_again(servers: Servers, database_url: str) -> None:
    with running_api(database_url) as (api, client):
        until(lambda: is_ready(client))
        assert client.get("/api/feeds").status_code == 200
        servers.postgres.stop()
        try:
            until(lambda: not is_ready(client))
            assert client.get("/healthz").status_code == 200
            assert client.get("/api/feeds").status_code == 503
        finally:
            servers.postgres.start()
        until(lambda: is_ready(client))
        assert client.get("/api/feeds").status_code == 200
        assert end(api) == 0
