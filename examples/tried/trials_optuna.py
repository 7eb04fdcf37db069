"""optuna 5.0: a trial that was enqueued goes to one worker.

sqlstress app examples/tried/trials_optuna.py -c 4
"""

import itertools

import optuna

from sqlstress import check, connect, note, setup, transaction

optuna.logging.set_verbosity(optuna.logging.ERROR)
numbers = itertools.count()


@setup
def create(database):
    optuna.create_study(study_name="s", storage=f"sqlite:///{database}")


@connect
def study(database):
    return optuna.load_study(study_name="s", storage=f"sqlite:///{database}")


@transaction
def enqueue(study):
    study.enqueue_trial({"x": next(numbers)})


@transaction
def work(study):
    trial = study.ask()
    note("trial", trial.number)
    trial.suggest_float("x", 0, 1e9)
    study.tell(trial, 1.0)


@check
def each_trial_goes_to_one_worker(query, notes):
    asked = notes.of("trial")
    twice = sorted({n for n in asked if asked.count(n) > 1})
    assert not twice, f"{len(twice)} of {len(asked)} trials, such as {twice[:3]}"
