"""The scheduling studies of the papers, on real logs: a study is a module and one line here."""

from collections.abc import Mapping

from simulator.studies import klusacek, rocchetti, tang, xu
from simulator.studies.runs import Study

STUDIES: Mapping[str, Study] = {
    "klusacek": klusacek.STUDY,
    "tang": tang.STUDY,
    "xu-schedules": xu.STUDY,
    "rocchetti": rocchetti.STUDY,
}
