"""Property-based tests look for the same examples every time, and are not timed."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "loop",
    deadline=None,
    derandomize=True,
    max_examples=60,
    # The autouse fixture only empties the environment, which every example may share.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("loop")
