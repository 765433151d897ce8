from tests.deploy.conftest import Bench
def test_x(bench: Bench) -> None:
    r = bench.deploy()
    print(r); print("\n".join(bench.changes())); print(bench.other_calls); print(bench.records())
    assert 0
