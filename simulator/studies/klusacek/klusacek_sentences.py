"""Says what follows from the figures of Klusáček & Soysal 2020, beside what the paper says."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from simulator.reports.words import change, changes, listed, paragraph
from simulator.studies.klusacek.klusacek_figures import Figures, NodeFigures, ScheduleFigures

ByEstimates = Mapping[str, ScheduleFigures]
"""The schedules of one log."""

EXPLAINED = """\
The paper prints these results as pictures only (Figs. 5 to 7, 9 and 11 to 14), so findings are
compared. passed: jobs that were started past a waiting one. in gap: jobs that were planned, when
they arrived, before the planned start of another waiting job. A pinned job keeps its nodes and
starts as soon as they are free; what becomes of it when they are late the paper does not say: here
it is unpinned when they are late by more than the interval. "start kept" is another rule, in which
it also waits for its planned start.
"""

CLAIM = """\
Estimates: the paper says in section 4.2 that their accuracy plays a smaller role here than under
conservative backfilling."""


def sentences(figures: Figures, logs: Sequence[str]) -> str:
    """Paragraphs about backfilled jobs, waits, errors and nodes.

    Args:
        figures: of everything that was played.
        logs: names of the paper's logs; others stand in no sentence.
    """
    by_log = {
        log: {each.estimates: each for each in figures.schedules if each.log == log}
        for log in dict.fromkeys(each.log for each in figures.schedules)
        if log in logs
    }
    parts = [_backfilled(by_log), _waits(by_log), _errors(by_log)] if by_log else []
    if figures.nodes:
        parts += [_notice(figures.nodes), _prices(figures.nodes), _estimates(figures, by_log)]
    return "\n\n".join(part for part in [EXPLAINED.rstrip(), *parts] if part) + "\n"


def _backfilled(by_log: Mapping[str, ByEstimates]) -> str:
    readings: Mapping[str, Callable[[ScheduleFigures], float]] = {
        "in gap": lambda each: each.in_gap,
        "passed": lambda each: each.passed,
    }
    return paragraph(
        "Backfilled jobs (Fig. 5), by exact estimates, requests and max-usage: the paper has the"
        " first and the last slightly above requests.",
        *(
            f'Counted as "{name}": '
            + "; ".join(_order(log, found, reading) for log, found in by_log.items())
            + "."
            for name, reading in readings.items()
        ),
    )


def _order(log: str, found: ByEstimates, reading: Callable[[ScheduleFigures], float]) -> str:
    exact, requested, predicted = (
        reading(found[name]) for name in ("exact", "requested", "max-usage")
    )
    above = [
        name
        for name, value in (("exact estimates", exact), ("max-usage", predicted))
        if value > requested
    ]
    verdict = {0: "none is above requests", 1: f"only {listed(above)} above requests"}.get(
        len(above), "both above requests"
    )
    return f"{log} {exact:.1f}, {requested:.1f} and {predicted:.1f} %, {verdict}"


def _waits(by_log: Mapping[str, ByEstimates]) -> str:
    moves = [
        f"{change(_moved(found))} on {log}" if found["requested"].wait else f"nobody waits on {log}"
        for log, found in by_log.items()
    ]
    return paragraph(
        f"Waits (Figs. 6, 7): max-usage changes the mean wait of requests by {listed(moves)}. In"
        " the paper it shortens waits, but on CTC-SP2, where it stays close to requests."
    )


def _moved(found: ByEstimates) -> float:
    """Change of the mean wait by max-usage, as a share of that by requests."""
    return found["max-usage"].wait / found["requested"].wait - 1


def _errors(by_log: Mapping[str, ByEstimates]) -> str:
    pairs = {
        log: (found["requested"].median_error, found["max-usage"].median_error)
        for log, found in by_log.items()
    }
    smaller = sum(predicted < requested for requested, predicted in pairs.values())
    named = listed(
        [f"{before:,.0f} s to {after:,.0f} s on {log}" for log, (before, after) in pairs.items()]
    )
    return paragraph(
        f"Errors of the wait predicted at arrival (Fig. 9): with max-usage the median goes from"
        f" {named}. It is smaller on {smaller} of {len(pairs)} logs; in the paper on all."
    )


class _Pair(NamedTuple):
    """Requests and max-usage under one pinning of one span of jobs."""

    requested: NodeFigures
    predicted: NodeFigures

    @property
    def moved(self) -> float:
        """Change of the mean wait by max-usage, as a share of that by requests."""
        return self.predicted.wait / self.requested.wait - 1 if self.requested.wait else 0.0


def _pairs(nodes: Sequence[NodeFigures]) -> list[_Pair]:
    found = [each for each in nodes if each.estimates != "exact"]
    return [_Pair(*pair) for _, pair in groupby(found, key=lambda each: each[:4])]


def _notice(nodes: Sequence[NodeFigures]) -> str:
    lines = [
        [each.notice for each in nodes if _line(each) == line and not each.start_kept]
        for line in dict.fromkeys(map(_line, nodes))
        if line[2] != "exact"
    ]
    grows = sum(all(one < other for one, other in pairwise(line)) for line in lines)
    pinned = [pair for pair in _pairs(nodes) if pair.requested.hours]
    longer = sum(pair.predicted.notice > pair.requested.notice for pair in pinned)
    return paragraph(
        f"Nodes (Figs. 11, 12): mean T_node grows with every longer pinning in {grows} of"
        f" {len(lines)} cases (a span of jobs of one log by one kind of estimates), and with"
        f" pinning max-usage makes it longer than requests in {longer} of {len(pinned)}. In the"
        " paper pinning helps most, the predictor moderately, and exact estimates need none."
    )


def _line(each: NodeFigures) -> tuple[str, str, str]:
    return each.log, each.span, each.estimates


def _prices(nodes: Sequence[NodeFigures]) -> str:
    unpinned = {_line(each): each.wait for each in nodes if not each.hours}
    by_nodes, start_kept = (
        {
            (*_line(each), each.hours): (each.wait, unpinned[_line(each)])
            for each in nodes
            if each.hours and each.start_kept == kept
        }
        for kept in (False, True)
    )
    longer = sum(wait > base for wait, base in by_nodes.values())
    shares = [wait / base - 1 for wait, base in by_nodes.values() if base]
    factors = [
        (wait - base) / (by_nodes[case][0] - base)
        for case, (wait, base) in start_kept.items()
        if by_nodes[case][0] > base
    ]
    return paragraph(
        f"Waits on nodes (Figs. 13, 14): pinning makes the mean wait longer in {longer} of"
        f" {len(by_nodes)} cases; in the paper it adds delays.",
        f"It changes by {changes(min(shares), max(shares))}." if shares else "",
        f'With "start kept" the addition is {min(factors):.1f} to {max(factors):.1f} times as'
        " large."
        if factors
        else "",
    )


def _estimates(figures: Figures, by_log: Mapping[str, ByEstimates]) -> str:
    pairs = _pairs(figures.nodes)
    said = [CLAIM]
    there = [_moved(found) for found in by_log.values() if found["requested"].wait]
    if there:
        said.append(
            "There max-usage changes the mean wait of requests by"
            f" {changes(min(there), max(there))}."
        )
    for name, chosen in (
        ("without pinning", [pair for pair in pairs if not pair.requested.hours]),
        ("with pinning", [pair for pair in pairs if _by_nodes(pair)]),
        ('with "start kept"', [pair for pair in pairs if pair.requested.start_kept]),
    ):
        if chosen:
            said.append(_moves(name, [pair.moved for pair in chosen], there))
    return paragraph(*said, _growth(figures.nodes))


def _by_nodes(pair: _Pair) -> bool:
    return bool(pair.requested.hours) and not pair.requested.start_kept


def _moves(name: str, moves: Sequence[float], there: Sequence[float]) -> str:
    longer = sum(move > 0 for move in moves)
    verdict = ""
    if there:
        least = max(map(abs, moves)) < max(map(abs, there))
        verdict = ": a smaller role" if least else ": no smaller role"
    return (
        f"Here, {name}, by {changes(min(moves), max(moves))}{verdict}; max-usage waits longer in"
        f" {longer} of {len(moves)} cases."
    )


def _growth(nodes: Sequence[NodeFigures]) -> str:
    unpinned = [each for each in nodes if not each.hours and each.estimates == "requested"]
    grown = []
    for log, found in groupby(unpinned, key=lambda each: each.log):
        first, *later = found
        last = later[-1] if later else first
        if last.wait > first.wait:
            grown.append(
                f"{log} from {first.wait:,.0f} s ({first.span}) to {last.wait:,.0f} s ({last.span})"
            )
    return (
        f"Without backfilling waits grow with the number of jobs: on {listed(grown)}."
        if grown
        else ""
    )
