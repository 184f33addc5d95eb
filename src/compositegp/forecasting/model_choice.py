"""The choice of a model: one change after another is tried, and kept if past forecasts score better with it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import Parallel, delayed

from compositegp.backend import Floats
from compositegp.forecasting.effects import Effect
from compositegp.forecasting.grid import Grid, Rhythm, history_names
from compositegp.forecasting.memory import Memory
from compositegp.forecasting.series_learning import (
    Candidate,
    Learned,
    Task,
    averaged_over_kernels,
    learn_candidate,
)
from compositegp.forecasting.target_scales import scale_in_words, scale_name
from compositegp.predictive import TargetTransform

_WORTH = 0.002  # nats a value by which a change has to raise the score
_LOG_ERRORS, _CRPS_ERRORS = 2.0, 1.0  # standard errors within which two scales score alike
_YEARS_FOR_A_CYCLE, _WEEKS_FOR_A_PROFILE = 2.0, 3.0
_LEVEL_FREEDOM = 3.0
_HARMONICS = {"fine": 3, "days": 4}
_MEMORIES = (
    Memory(),  # learned anew, with the effects that were chosen
    Memory(drift="rough"),
    Memory(short=0.5),
    Memory(long=0.5),
    Memory(medium=1.5),
    Memory(short=None),
    Memory(medium=None),
    Memory(drift=None),
)


def clock_effects(grid: Grid, rhythm: Rhythm, seasons: Sequence[str] | None = None) -> list[Effect]:
    """Level, trend, and the effects of the clock that a series is long enough for.

    Parameters
    ----------
    grid : Grid
    rhythm : Rhythm
    seasons : sequence of str, optional
        "day", "week", "year": those to take; by default all that fit.
    """
    size, per_day = len(grid.values), rhythm.per_day
    days, sub_daily = size / per_day, rhythm.is_sub_daily

    def wanted(name: str, fits: bool) -> bool:
        return fits if seasons is None else name in seasons

    found = [Effect("level", "level", spread=_LEVEL_FREEDOM)]
    found.append(Effect("trend", "trend", numbers=np.array([grid.first + size / 2, size / 2])))
    if wanted("day", sub_daily and days >= 4):
        found.append(Effect("day", "day"))
    if wanted("week", per_day > 0.8 and days >= 7 * _WEEKS_FOR_A_PROFILE):
        found.append(Effect("week", "week", numbers=np.array([float(sub_daily)])))
    if wanted("year", days >= 365.25 * _YEARS_FOR_A_CYCLE and 365.25 * per_day >= 4):
        most = np.floor(365.25 * per_day / 2 - 1e-9)
        count = _HARMONICS["fine"] if sub_daily else _HARMONICS["days"] if per_day > 0.8 else min(6.0, most)
        found.append(Effect("year", "year", numbers=np.array([float(count)]), by_hour=sub_daily))
    return found


def column_effects(grid: Grid, rhythm: Rhythm, names: Sequence[str]) -> list[Effect]:
    """The effect of each further column that has a value, which may differ by the hour of day.

    Histories of the columns are in the grid too, after all the columns.
    """
    return [
        Effect.of_column(name, 1 + j, grid.columns[:, j], rhythm.is_sub_daily)
        for j, name in enumerate(names)
        if np.isfinite(grid.columns[:, j]).any()
    ]


def history_effects(grid: Grid, rhythm: Rhythm, names: Sequence[str]) -> dict[str, list[Effect]]:
    """Effects of what each column was before, by the name of the column; none for columns of two values."""
    found = {}
    for j, name in enumerate(names):
        if len(np.unique(grid.columns[np.isfinite(grid.columns[:, j]), j])) > 2:
            columns = [len(names) + 3 * j + i for i in range(3)]
            found[name] = [
                Effect.of_column(label, 1 + at, grid.columns[:, at], rhythm.is_sub_daily)
                for label, at in zip(history_names(name), columns, strict=True)
            ]
    return found


def choose_model(
    task: Task,
    transforms: Sequence[TargetTransform],
    effects: list[Effect],
    histories: dict[str, list[Effect]],
    *,
    fixed: Sequence[str] = (),
    search: bool = True,
    averaged: bool = False,
    n_jobs: int | None = None,
) -> tuple[Learned, list[str]]:
    """The model whose past forecasts score best, and a note about each change that was tried.

    Parameters
    ----------
    task : Task
    transforms : sequence of TargetTransform
    effects : list of Effect
        To begin with.
    histories : dict
        Effects of the histories of columns, to be added.
    fixed : sequence of str
        Names of effects that are not left out.
    search : bool
        Whether anything else than the transform is chosen.
    averaged : bool
        Whether forecasts of a short series are averaged over kernels. Then so are those by which the transform is
        chosen; other parts are, by the one kernel, which is quicker.
    n_jobs : int, optional
        Number of processes, as in joblib.

    Returns
    -------
    Learned, list of str
    """
    run = Parallel(n_jobs=n_jobs)
    averaged = averaged and task.is_whole
    first = run(delayed(learn_candidate)(task, Candidate(one, effects, _MEMORIES[0])) for one in transforms)
    judged = run(delayed(averaged_over_kernels)(task, one) for one in first) if averaged else first
    chosen = judged.index(_best_scale(judged))
    best = first[chosen]
    worth = max(_WORTH, task.chance) if task.is_whole else _WORTH
    notes = []
    if len(transforms) > 1:
        scores = ", ".join(f"{_name(one.candidate.transform)} {one.score:.3f}" for one in judged)
        notes.append(
            f"scale of the target: {_name(best.candidate.transform)}, by log density and CRPS of past forecasts (log "
            f"density, larger is better: {scores})"
        )
    stages = [_with_histories, _without_effects, *([] if task.is_whole else [_other_memories])]
    if search and task.clock_changes:
        stages.insert(0, _in_standard_time)
    for stage in stages if search else ():
        changes = list(stage(best.candidate, histories, fixed))
        tried = run(
            delayed(partial(learn_candidate, rounds=1))(
                task, change, None if stage is _other_memories else best.kernel
            )
            for _, change in changes
        )
        gains = {name: one.score - best.score for (name, _), one in zip(changes, tried, strict=True)}
        kept = [(name, one) for (name, _), one in zip(changes, tried, strict=True) if gains[name] > worth]
        notes += [f"{name}: {gain:+.3f} nats a value" for name, gain in gains.items()]
        if not kept:
            continue
        top = max(kept, key=lambda pair: _score(pair[1]))[1]
        if stage is not _other_memories and len(kept) > 1:
            # Changes that help alone may help together.
            together = learn_candidate(
                task, _merged(best.candidate, [one.candidate for _, one in kept]), best.kernel
            )
            top = max(top, together, key=_score)
        best = top
    if averaged:
        best = judged[chosen] if best is first[chosen] else averaged_over_kernels(task, best)
    return best, notes


def _with_histories(
    candidate: Candidate, histories: dict[str, list[Effect]], fixed: Sequence[str]
) -> Iterator[tuple[str, Candidate]]:
    for name, effects in histories.items():
        yield f"with the history of {name}", replace(candidate, effects=candidate.effects + effects)


def _in_standard_time(
    candidate: Candidate, histories: dict[str, list[Effect]], fixed: Sequence[str]
) -> Iterator[tuple[str, Candidate]]:
    """Day and week on a clock without daylight saving: the sun's, not people's."""
    effects = [effect.in_standard_time() for effect in candidate.effects]
    if any(one is not other for one, other in zip(effects, candidate.effects, strict=True)):
        yield "day and week without daylight saving", replace(candidate, effects=effects)


def _without_effects(
    candidate: Candidate, histories: dict[str, list[Effect]], fixed: Sequence[str]
) -> Iterator[tuple[str, Candidate]]:
    """Without each effect of the clock but the level, and without each column, its history with it."""
    with_history = {one.name: name for name, effects in histories.items() for one in effects}
    groups: dict[str, set[str]] = {}
    for effect in candidate.effects:
        if effect.kind != "level" and effect.name not in fixed:
            groups.setdefault(with_history.get(effect.name, effect.name), set()).add(effect.name)
    for name, group in groups.items():
        rest = [one for one in candidate.effects if one.name not in group]
        yield f"without {name}", replace(candidate, effects=rest)


def _other_memories(
    candidate: Candidate, histories: dict[str, list[Effect]], fixed: Sequence[str]
) -> Iterator[tuple[str, Candidate]]:
    for memory in _MEMORIES:
        changed = {name: value for name, value in memory._asdict().items() if value != getattr(_MEMORIES[0], name)}
        text = ", ".join(f"{name} {value}" for name, value in changed.items())
        yield f"memory with {text}" if changed else "memory learned anew", replace(candidate, memory=memory)


def _merged(before: Candidate, changed: Sequence[Candidate]) -> Candidate:
    """All the changes of the effects at once."""
    old = {effect.name for effect in before.effects}
    gone = set[str]()
    added: list[Effect] = []
    for one in changed:
        names = {effect.name for effect in one.effects}
        gone |= old - names
        added += [effect for effect in one.effects if effect.name not in old]
    return replace(before, effects=[effect for effect in before.effects if effect.name not in gone] + added)


def _best_scale(learned: Sequence[Learned]) -> Learned:
    """The scale whose past forecasts are the best: `learned` begins with the one that changes values least.

    Of the scales whose log density is as good as the best within two standard errors, those count whose CRPS is as good
    as the least within one, and of these the first is taken: the less a scale draws large values together, the less
    depends on tails that few data tell about. The log density alone says more about small values than a user would: a
    scale that draws large values together makes the densities of small ones large.
    """
    best = max(learned, key=_score)
    good = [one for one in learned if one is best or _is_as_good(one, best, _log_losses, _LOG_ERRORS)]
    least = min(good, key=lambda one: float(one.past.crps.mean()))
    return next(one for one in good if one is least or _is_as_good(one, least, _crps, _CRPS_ERRORS))


def _is_as_good(one: Learned, best: Learned, losses: Callable[[Learned], Floats], errors: float) -> bool:
    """Whether the mean loss of a value is as small as that of the best, within some standard errors."""
    behind = losses(one) - losses(best)
    return bool(behind.mean() <= errors * one.past.standard_error(behind))


def _log_losses(learned: Learned) -> Floats:
    return -learned.past.log_scores


def _crps(learned: Learned) -> Floats:
    return learned.past.crps


def _score(learned: Learned) -> float:
    return learned.score if np.isfinite(learned.score) else -np.inf


def _name(transform: TargetTransform) -> str:
    return scale_in_words(scale_name(transform))
