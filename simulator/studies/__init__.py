"""The scheduling studies of the papers, on real logs: a study is a module and one line here."""

from collections.abc import Mapping

from simulator.studies import klusacek, rocchetti, tang, xu_schedules
from simulator.studies.simulations import Study

STUDIES: Mapping[str, Study] = {
    "klusacek": klusacek.STUDY,
    "tang": tang.STUDY,
    "xu-schedules": xu_schedules.STUDY,
    "rocchetti": rocchetti.STUDY,
}
