"""Keeping what applications are when they run alone, for forecasts on shared nodes."""

import asyncio
from collections.abc import Callable, Mapping

from predictors.jobs import Submission
from service.contract.bodies import check_length
from service.contract.characterisation_bodies import (
    ApplicationQuery,
    CharacterisationAnswer,
    CharacterisationsAnswer,
    CharacterisationsBody,
    DroppedAnswer,
)
from service.pseudonyms import Pseudonyms
from service.store import Characterisation, Source, Store

Characterised = Mapping[tuple[str, int], Characterisation]
"""By application, as the history names it, and number of tasks."""


class Characterising:
    """The characterisations of the applications of every cluster.

    Args:
        store: keeps them.
        pseudonyms: replaces the names of applications.
        clock: Unix seconds.
        most: applications in one request.
    """

    def __init__(
        self,
        store: Store,
        *,
        pseudonyms: Pseudonyms,
        clock: Callable[[], float],
        most: int,
    ) -> None:
        self._store = store
        self._pseudonyms = pseudonyms
        self._clock = clock
        self._most = most

    async def keep(self, body: CharacterisationsBody) -> CharacterisationsAnswer:
        """Keep what is posted, in the place of whatever was known of these applications.

        Raises:
            InvalidFieldError: there are too many applications.
            StoreUnavailableError: nothing was kept.
        """
        check_length(body.applications, "applications", self._most)
        now = self._clock()
        posted = [
            Characterisation(
                cluster=body.cluster,
                application=self._name(each.application),
                tasks=each.tasks,
                execution_time=each.execution_time,
                cpu_share=each.cpu_share,
                source=Source.POSTED,
                recorded_at=now,
            )
            for each in body.applications
        ]
        await asyncio.to_thread(self._store.characterise, posted)
        return _answer(body.cluster, posted)

    async def known(self, cluster: str) -> CharacterisationsAnswer:
        """The applications of a cluster.

        Raises:
            StoreUnavailableError: they cannot be read now.
        """
        return _answer(cluster, await asyncio.to_thread(self._store.characterisations, cluster))

    async def drop(self, query: ApplicationQuery) -> DroppedAnswer:
        """Delete all that is known of an application.

        Raises:
            StoreUnavailableError: nothing was deleted.
        """
        name = self._name(query.application)
        dropped = await asyncio.to_thread(self._store.drop_characterisations, query.cluster, name)
        return DroppedAnswer(dropped=dropped)

    async def of_cluster(self, cluster: str) -> Characterised:
        """The applications of a cluster, for forecasts.

        Raises:
            StoreUnavailableError: they cannot be read now.
        """
        known = await asyncio.to_thread(self._store.characterisations, cluster)
        return {(each.application, each.tasks): each for each in known}

    def key_of(self, submission: Submission) -> tuple[str, int]:
        """What a job is looked up by."""
        named = self._pseudonyms.submission(submission)
        return named.application or "", named.requested_processors or 1

    def _name(self, application: str) -> str:
        job = Submission(requested_walltime=1.0, submit_time=0.0, application=application)
        return self._pseudonyms.submission(job).application or ""


def _answer(cluster: str, known: list[Characterisation]) -> CharacterisationsAnswer:
    return CharacterisationsAnswer(
        cluster=cluster,
        applications=[
            CharacterisationAnswer(
                application=each.application,
                tasks=each.tasks,
                execution_time=each.execution_time,
                cpu_share=each.cpu_share,
                source=each.source.value,
                recorded_at=each.recorded_at,
            )
            for each in known
        ],
    )
