"""The studies of the papers and our own: a study is a module and one line here."""

from collections.abc import Mapping

from simulator.studies import (
    calibration,
    learned,
    wait_prediction,
    xu_schedules,
)
from simulator.studies.hanzich import hanzich_study
from simulator.studies.klusacek import klusacek_study
from simulator.studies.rocchetti import rocchetti_study
from simulator.studies.study import Study
from simulator.studies.tang import tang_study
from simulator.studies.xu import xu_study

STUDIES: Mapping[str, Study] = {
    "calibration": calibration.STUDY,
    "learned": learned.STUDY,
    "hanzich": hanzich_study.STUDY,
    "klusacek": klusacek_study.STUDY,
    "rocchetti": rocchetti_study.STUDY,
    "tang": tang_study.STUDY,
    "wait-prediction": wait_prediction.STUDY,
    "xu": xu_study.STUDY,
    "xu-schedules": xu_schedules.STUDY,
}
