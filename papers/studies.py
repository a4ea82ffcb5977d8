"""The studies of the papers: a study is a module and one line here."""

from collections.abc import Mapping

from papers.hanzich import hanzich_study
from papers.klusacek import klusacek_study
from papers.rocchetti import rocchetti_study
from papers.study import Study
from papers.tang import tang_study
from papers.xu import xu_schedules, xu_study

STUDIES: Mapping[str, Study] = {
    "hanzich": hanzich_study.STUDY,
    "klusacek": klusacek_study.STUDY,
    "rocchetti": rocchetti_study.STUDY,
    "tang": tang_study.STUDY,
    "xu": xu_study.STUDY,
    "xu-schedules": xu_schedules.STUDY,
}
