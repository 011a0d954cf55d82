"""Writes a run's metrics as an offline run of W&B or MLflow, by their own client libraries.

    python -m ropewalk.trackers wandb RUN -o FOLDER
    python -m ropewalk.trackers mlflow RUN -o FILE

Nothing is sent anywhere. `wandb sync` uploads W&B's run when it is asked to, and `mlflow ui` shows MLflow's file.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ropewalk.errors import RecordError, URLError
from ropewalk.metrics import StepMetrics, flat, metrics
from ropewalk.run import Run, open
from ropewalk.table import library


class ExportExists(RecordError, FileExistsError):
    """The run was exported to this place before."""


def to_wandb(run: Run, folder: str | os.PathLike[str], project: str = "ropewalk", group: str | None = None) -> Path:
    """Writes an offline run of W&B into folder/wandb and returns the run's folder. Its id and name are the run's name,
    its config is the recipe. Needs ropewalk[wandb,duckdb]."""
    steps = metrics(run)
    os.environ["WANDB_ERROR_REPORTING"] = "false"  # W&B reports its own errors and sessions to Sentry otherwise
    wandb = library("wandb")
    into = Path(folder)
    if found := sorted(into.glob(f"wandb/offline-run-*-{run.name}")):
        raise ExportExists(f"{found[0]} is this run already: delete it, or name another folder")
    into.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(
        console="off",
        silent=True,
        # Seconds that its service may take to start: on a busy machine more than W&B allows.
        init_timeout=600,
        x_service_wait=600,
        # W&B would describe this machine and program, which did not train the run.
        disable_code=True,
        disable_git=True,
        disable_job_creation=True,
        save_code=False,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    with wandb.init(
        mode="offline",
        dir=str(into),
        project=project,
        group=group,
        id=run.name,
        name=run.name,
        config=run.recipe,
        settings=settings,
    ) as out:
        made = Path(out.settings.sync_dir)
        for s in steps:
            out.log({**s.values, "_timestamp": s.time}, step=s.step)
    return made


def to_mlflow(run: Run, database: str | os.PathLike[str], experiment: str = "ropewalk") -> str:
    """Writes a run into an SQLite database of MLflow, which is made if it is not there, and returns the run's id. The
    parameters are the fields of the recipe. Needs ropewalk[mlflow,duckdb]."""
    steps = metrics(run)
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # MLflow reports its use otherwise
    mlflow, entities = library("mlflow"), library("mlflow.entities", "mlflow")
    library("sqlalchemy", "mlflow")
    path = Path(database).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}")
    named = client.get_experiment_by_name(experiment)
    at = named.experiment_id if named else client.create_experiment(experiment, path.with_suffix(".artifacts").as_uri())
    if client.search_runs([at], f"tags.`ropewalk.run` = '{run.name}'"):
        raise ExportExists(f"{database} has this run already: delete it there, or name another file")
    made = client.create_run(at, int(steps[0].time * 1000), {"ropewalk.run": run.name}, run_name=run.name).info.run_id
    params = [entities.Param(name, str(value)) for name, value in flat(run.recipe).items()]
    for i in range(0, len(params), 100):
        client.log_batch(made, params=params[i : i + 100])
    for s in steps:
        client.log_batch(made, metrics=[_metric(entities, s, name) for name in s.values])
    client.set_terminated(made, "FINISHED", int(steps[-1].time * 1000))
    return str(made)


def _metric(entities: Any, s: StepMetrics, name: str) -> Any:
    return entities.Metric(name, s.values[name], int(s.time * 1000), s.step)


def _arguments(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ropewalk.trackers", description="Writes a run's metrics as an offline run of W&B or MLflow."
    )
    tools = parser.add_subparsers(dest="tool", required=True)
    for tool, group, out in (
        ("wandb", "project", "the folder to write W&B's offline run into"),
        ("mlflow", "experiment", "the SQLite database to write MLflow's run into"),
    ):
        p = tools.add_parser(tool)
        p.add_argument("run", help="the run's name")
        p.add_argument("-o", "--output", required=True, help=out)
        p.add_argument("--record", default=".ropewalk", help="the URL of the record (default: %(default)s)")
        p.add_argument(f"--{group}", dest="place", default="ropewalk", help="the name to file it under (%(default)s)")
        if tool == "wandb":
            p.add_argument("--group", help="the run's group, such as its arm in an experiment")
    return parser.parse_args(args)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    given = _arguments(args)
    try:
        run = open(given.record, given.run)
        if given.tool == "wandb":
            made = to_wandb(run, given.output, given.place, given.group)
            print(f"written to {made}; `wandb sync {made}` uploads it")
        else:
            to_mlflow(run, given.output, given.place)
            uri = f"sqlite:///{Path(given.output).absolute()}"
            print(f"written to {given.output}; `mlflow ui --backend-store-uri {uri}` shows it")
    except RecordError as e:
        print(f"ropewalk: {e}", file=sys.stderr)
        return 2 if isinstance(e, (LookupError, URLError, ImportError, FileExistsError)) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
