"""The process in which one round runs: ``python -m service.worker.tuning.process ID``.

It is given the settings of the service in its environment, and the lowest priority.
"""

import sys

import structlog

from service import logs
from service.settings import Settings
from service.store import StoreError, TuningLostError, TuningState, open_store
from service.worker.tuning.rounds import run_round

log = structlog.get_logger()

FAILED = 1


def main(tuning_id: str) -> int:
    """Run the round of that name, which the starter has taken; the exit code says how it went."""
    settings = Settings()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    try:
        tuning = store.tunings.find(tuning_id)
        if tuning is not None and tuning.state is TuningState.RUNNING:
            found = run_round(store, tuning, settings)
            adopted = found is not None and found.adopted
            log.info("tuned", tuning=tuning_id, cluster=tuning.cluster, adopted=adopted)
    except (StoreError, TuningLostError) as error:
        log.warning("a round of tuning was given up", tuning=tuning_id, reason=str(error))
        return FAILED
    finally:
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
