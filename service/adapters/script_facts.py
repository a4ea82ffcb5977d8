"""Further facts of a job by its script, as the submit filters send them."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from predictors.facts import FACTS, MOST_FEATURES, Facts
from service.adapters.job_scripts import gpus_of_options, options_of_slurm
from service.adapters.pbs_scripts import options_of_pbs
from service.adapters.submission_facts import gpus_of_chunks, reported_facts, tasks_in
from service.adapters.values import count, number

_FEATURE = re.compile(r"wt:(\w{1,64})=([\w.+-]{1,255})")
_GPU_TYPE = re.compile(r"(?:^|[:/,])([A-Za-z][\w-]{0,63}):\d")


def facts_in(
    script: str, *, name: str, work_dir: str, host: str, prefix: str = "#PBS"
) -> dict[str, Any]:
    """Return the facts of a job as fields of a submission; unknown ones are left out.

    Args:
        name: of the script's file.
        work_dir: directory of the submission.
        host: name of this machine.
        prefix: of the lines for qsub.
    """
    if options := options_of_slurm(script):
        facts = _of_slurm(options, script, name, work_dir, host)
    else:
        facts = _of_pbs(options_of_pbs(script, prefix), work_dir)
    known = asdict(facts) if facts else {}
    return {fact: known[fact] for fact in FACTS if known.get(fact)}


def _of_slurm(
    options: Mapping[str, str], script: str, name: str, work_dir: str, host: str
) -> Facts | None:
    kinds = (options.get(each, "") for each in ("gpus", "gres", "gpus-per-node", "gpus-per-task"))
    kind = next((found[1] for each in kinds if (found := _GPU_TYPE.search(each))), None)
    facts = reported_facts(
        work_dir=options.get("chdir") or work_dir,
        script=script,
        submit_line=name,
        qos=options.get("qos"),
        nodes=options.get("nodes", "").partition("-")[0],
        gpus=(count(gpus_of_options(options)), kind),
        array_size=tasks_in(options.get("array")),
        constraint=options.get("constraint"),
        dependency=options.get("dependency", "").partition(":")[0],
        submit_host=host.partition(".")[0],
    )
    return facts and _with_features(facts, options.get("comment", ""))


def _with_features(facts: Facts, comment: str) -> Facts:
    """Return the facts with numbers and words in a comment such as ``wt:rule=align``."""
    found: dict[str, float | str] = {}
    for name, value in _FEATURE.findall(comment):
        if len(found) < MOST_FEATURES and name not in found:
            found[name] = _number_or_word(value)
    return Facts(**{**asdict(facts), "features": found}) if found else facts


def _number_or_word(value: str) -> float | str:
    found = number(value.removeprefix("-"))
    if found is None:
        return value
    return -found if value.startswith("-") else found


def _of_pbs(resources: Mapping[str, str], work_dir: str) -> Facts | None:
    """Return what the hook sends; it sees no script, and other words of the command line."""
    select = resources.get("select")
    return reported_facts(
        work_dir=work_dir,
        gpus=(count(resources.get("ngpus")) or gpus_of_chunks(select), None),
        constraint=select,
    )
