"""Which class plays which actor."""

from __future__ import annotations

from importlib import import_module

from actor import Actor

KINDS = {
    "tokens": ("token_actor", "TokenActor"),
    "columns": ("column_actor", "ColumnActor"),
    "ragged": ("ragged_actor", "RaggedActor"),
    "sparse": ("sparse_actor", "SparseActor"),
    "remote": ("remote_actor", "RemoteActor"),
    "create": ("create_actor", "CreateActor"),
    "token_writer": ("token_writer_actor", "TokenWriterActor"),
    "shuffle": ("shuffle_actor", "ShuffleActor"),
    "maps": ("map_actor", "MapActor"),
    "guard": ("guard_actor", "GuardActor"),
}


def kind_of(name: str) -> type[Actor]:
    """Imports only that actor: each process holds what it needs."""
    module, kind = KINDS[name]
    found: type[Actor] = getattr(import_module(module), kind)
    return found
