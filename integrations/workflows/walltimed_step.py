#!/usr/bin/python3
"""Asks for the walltime of a step of a workflow, by its rule and the size of its input.

In a Snakefile, with the plug-in for Slurm, for a rule with an input and a fallback of 120 minutes:

    from walltimed_step import Step
    resources:
        runtime=lambda wildcards, input: Step("align", input).minutes(120),
        slurm_extra=lambda wildcards, input: f"--wckey={Step('align', input).wckey}",

In a script of Nextflow, for a process with the input ``path reads``:

    def step(form, rule, files) {
        def inputs = (files instanceof Collection ? files : [files]).collect { it.toRealPath() }
        ["walltimed_step.py", form, rule, "120", *inputs]*.toString().execute().text.trim()
    }
    time { step("--minutes", "align", reads) + " min" }
    clusterOptions { "--wckey=" + step("--wckey", "align", reads) }

In dask-jobqueue, and for a case of CIME:

    step = Step("reduce", inputs)
    SLURMCluster(walltime=step.clock(120), job_extra_directives=[f"--comment='{step.comment}'"])

    ./xmlchange JOB_WALLCLOCK_TIME=$(walltimed_step.py --clock case.run 360 restart.nc)
    ./case.submit --batch-args "--wckey=$(walltimed_step.py --wckey case.run 360 restart.nc)"

The comment tells the submit filter rule and size again, so that the run that ends is learned with
them; so does the wckey, where the engine writes a comment of its own, as Snakemake does.
Without an answer within two seconds the fallback is the answer. The service is at WALLTIMED_URL,
the name of the cluster there in WALLTIMED_CLUSTER, a token in the file WALLTIMED_TOKEN_FILE.
Python 3.6 or newer, standard library only.
"""

import getpass
import json
import math
import os
import sys
import urllib.request

PATIENCE = 2.0  # seconds
LARGEST_ANSWER = 65536  # bytes
RATE = 0.05  # share of steps that may need longer
USAGE = "usage: walltimed_step.py [--minutes | --clock | --wckey] RULE FALLBACK_MINUTES [INPUT ...]"


class Step:
    """A step of a workflow.

    Args:
        rule: name of the rule or process.
        inputs: names of its input files; those that are not there yet count as empty.
    """

    def __init__(self, rule, inputs=()):
        self.rule = "".join(c if c.isalnum() or c in "_-" else "_" for c in str(rule))[:64]
        self.input_bytes = sum(size_of(name) for name in inputs)

    @property
    def comment(self):
        """The features for the submit filter, in the comment of the job."""
        return f"wt:rule={self.rule} wt:input_bytes={self.input_bytes}"

    @property
    def wckey(self):
        """The features without a blank, for engines that write the comment themselves."""
        return self.comment.replace(" ", ",")

    def clock(self, fallback, **fields):
        """Return ``minutes`` as HH:MM:SS."""
        return "{:02d}:{:02d}:00".format(*divmod(self.minutes(fallback, **fields), 60))

    def minutes(self, fallback, **fields):
        """Return whole minutes that all but RATE of such steps stay within, at most the fallback.

        Args:
            fallback: minutes that are requested without an answer.
            fields: others of the submission, such as queue or requested_processors.
        """
        features = {"rule": self.rule, "input_bytes": self.input_bytes}
        question = {
            "user": getpass.getuser(),
            "requested_walltime": 60 * fallback,
            "underestimation_rate": RATE,
            "features": features,
        }
        cluster = os.environ.get("WALLTIMED_CLUSTER")
        if cluster:
            question["cluster"] = cluster
        try:
            answer = ask({**question, **fields})
            reason, seconds = answer["basis"]["reason"], float(answer["predicted_walltime"])
        except Exception as error:  # a workflow goes on without predictions
            print(f"walltimed: {type(error).__name__}: {error}", file=sys.stderr)
            return fallback
        if reason != "history" or not 0 < seconds <= 60 * fallback:
            return fallback
        return max(1, math.ceil(seconds / 60))


def size_of(name):
    """Return the bytes of a file, 0 if it is not there."""
    try:
        return os.path.getsize(str(name))
    except OSError:
        return 0


def ask(question):
    """Return the answer to a question; raises an error without one."""
    url = os.environ.get("WALLTIMED_URL", "http://127.0.0.1:8580").rstrip("/")
    headers = {"Content-Type": "application/json"}
    file = os.environ.get("WALLTIMED_TOKEN_FILE")
    if file:
        with open(file) as words:
            headers["Authorization"] = "Bearer " + words.read().strip()
    body = json.dumps(question).encode()
    request = urllib.request.Request(url + "/v1/predictions", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read(LARGEST_ANSWER).decode())


def main(arguments):
    """Print minutes, clock or wckey of the step, as USAGE says."""
    form = "minutes"
    if arguments and arguments[0] in {"--minutes", "--clock", "--wckey"}:
        form, arguments = arguments[0][2:], arguments[1:]
    if len(arguments) < 2 or not arguments[1].isdigit() or not int(arguments[1]):
        print(USAGE, file=sys.stderr)
        return 2
    rule, fallback, *inputs = arguments
    step = Step(rule, inputs)
    print(step.wckey if form == "wckey" else getattr(step, form)(int(fallback)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
