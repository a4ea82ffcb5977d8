"""The studies of the papers and our own: a study is a module and one line here."""

from collections.abc import Mapping

from simulator.studies import (
    boosted,
    calibration,
    least_cost,
    likeness,
    wait_prediction,
    xu_schedules,
)
from simulator.studies.hanzich import study as hanzich
from simulator.studies.klusacek import study as klusacek
from simulator.studies.rocchetti import study as rocchetti
from simulator.studies.study import Study
from simulator.studies.tang import study as tang
from simulator.studies.xu import study as xu

STUDIES: Mapping[str, Study] = {
    "boosted": boosted.STUDY,
    "calibration": calibration.STUDY,
    "hanzich": hanzich.STUDY,
    "klusacek": klusacek.STUDY,
    "least-cost": least_cost.STUDY,
    "likeness": likeness.STUDY,
    "rocchetti": rocchetti.STUDY,
    "tang": tang.STUDY,
    "wait-prediction": wait_prediction.STUDY,
    "xu": xu.STUDY,
    "xu-schedules": xu_schedules.STUDY,
}
