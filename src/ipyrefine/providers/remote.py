"""Decide what the servers of a run's models are sent, and remember what the user said of them."""

from collections.abc import Iterable

from ipyrefine.core.ports import Model
from ipyrefine.core.sharing import LEVELS, Level, Sharing
from ipyrefine.errors import UsageError
from ipyrefine.providers.local import is_local
from ipyrefine.providers.servers import facts_about, remember_about

_FACT = "share"
_asked = set[str]()  # servers that this process has asked the user about


def choose_sharing(models: Iterable[Model], level: str | None = None) -> Sharing:
    """Return what the servers of some models are sent: the least of what each may have.

    Args:
        models: the models of a run.
        level: what the user set; None for what was remembered of each server, else ``values`` for
            those on this machine, and ``structure`` for all others.

    Raises:
        UsageError: there is no such level.
    """
    if level is not None and level not in LEVELS:
        raise UsageError(f"share must be {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, not {level!r}.")
    models = list(models)
    live = [one for one in models if not getattr(one, "replays", False)]
    remote = [one for one in live if not is_local(one)]
    if level is not None:
        ruled = remote if level == "values" else live
        return Sharing(level, tuple(dict.fromkeys(map(_address, ruled))))
    servers = tuple(dict.fromkeys(map(_address, remote)))
    remembered = [_remembered(server) for server in servers]
    levels: list[Level] = [one or "structure" for one in remembered]
    if len(live) < len(models):
        levels.append("structure")  # for a live model that answers in its place
    least = min(levels, key=LEVELS.index, default=LEVELS[-1])
    asks = None in remembered and "structure" not in remembered and not _asked.issuperset(servers)
    return Sharing(least, servers, asks)


def remember_sharing(servers: Iterable[str], level: Level) -> bool:
    """Keep what some servers may be sent, for later kernels too; return whether it was stored."""
    stored = [remember_about(server, **{_FACT: level}) for server in servers]
    return all(stored)


def mark_asked(servers: Iterable[str]) -> None:
    """Say that the user was asked about some servers, so that later runs here don't ask again."""
    _asked.update(servers)


def _remembered(server: str) -> Level | None:
    known = facts_about(server).get(_FACT)
    return next((level for level in LEVELS if level == known), None)


def _address(model: Model) -> str:
    """Return a server's address; of the user's own model, its name."""
    return str(getattr(model, "base_url", "") or model.name)
