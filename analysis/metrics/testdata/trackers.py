"""Exports a run with ropewalk.trackers, and reads the results back with `wandb sync` and MLflow's client.

stdin: {"package", "record", "run", "out"}. stdout: {"wandb", "config", "mlflow", "params", "again", "dialled",
"control"}: what `wandb sync` sends of the run's history and config; each metric's [step, time, value] and the
parameters that MLflow has; what a second export answers; what the exports dialled; and what a program dialled that does
use the network, by which the watch is checked.
"""
import glob
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading

TWICE = "import sys; from ropewalk.trackers import main; print(main(sys.argv[1:]), main(sys.argv[1:]))"
HERE = os.path.dirname(os.path.abspath(__file__))


class Server(http.server.ThreadingHTTPServer):
    """A proxy that serves nothing, and the part of W&B's server that `wandb sync` needs."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.proxied, self.history, self.config, self.summary = [], [], {}, None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def graphql(self, name, given):
        if name == "UpsertBucket":
            if given.get("config"):
                self.config = json.loads(given["config"])
            project = {"id": "cA==", "name": given["project"], "entity": {"id": "ZQ==", "name": "someone"}}
            bucket = {"id": "aWQ=", "name": given["name"], "project": project, "historyLineCount": 0, "config": "{}"}
            return {"upsertBucket": {"bucket": bucket, "inserted": True}}
        if name == "CreateRunFiles":
            files = [{"name": f, "uploadUrl": f"{self.url}/upload/{f}"} for f in given["files"]]
            return {"createRunFiles": {"runID": "aWQ=", "uploadHeaders": [], "files": files}}
        return {}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_CONNECT(self):
        self.server.proxied.append(self.path)
        self.send_error(403)

    def do_GET(self):
        if not self.path.startswith("/"):
            return self.do_CONNECT()
        self.answer({})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.startswith("/"):
            return self.do_CONNECT()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/graphql":
            doc = json.loads(body)
            return self.answer({"data": self.server.graphql(doc.get("operationName"), doc.get("variables") or {})})
        if self.path.endswith("/file_stream"):
            lines = json.loads(body).get("files", {}).get("wandb-history.jsonl", {}).get("content", [])
            self.server.history += [json.loads(line) for line in lines]
        self.answer({})

    do_PUT = do_POST

    def answer(self, doc):
        text = json.dumps(doc).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def watched(server, out, package):
    """The environment of a program whose connections are noted."""
    noted = os.path.join(out, "dialled.txt")
    env = {k: v for k, v in os.environ.items() if k.lower() != "no_proxy"}
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        env[name] = server.url
    path = os.pathsep.join([package, os.path.join(HERE, "watched")])
    home = os.path.join(out, "home")
    os.makedirs(home, exist_ok=True)
    return noted, {**env, "DIALLED": noted, "PYTHONPATH": path, "HOME": home}


def call(args, env, ok=True):
    # The trackers write logs into the working folder.
    done = subprocess.run([sys.executable, *args], env=env, cwd=env["HOME"], capture_output=True, text=True, timeout=900)
    if ok and done.returncode != 0:
        raise SystemExit(f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def dialled(server, noted):
    names = open(noted).read().split("\n") if os.path.exists(noted) else []
    return server.proxied + [n for n in names if n]


def read_mlflow(path, run):
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}")
    [found] = client.search_runs([client.get_experiment_by_name("ropewalk").experiment_id])
    assert (found.info.run_name, found.info.status) == (run, "FINISHED"), found.info
    history = {name: client.get_metric_history(found.info.run_id, name) for name in found.data.metrics}
    return found.data.params, {n: [[m.step, m.timestamp / 1e3, m.value] for m in ms] for n, ms in history.items()}


job = json.load(sys.stdin)
server, out = Server(), job["out"]
noted, env = watched(server, out, job["package"])
database = os.path.join(out, "mlflow.db")
rest = [job["run"], "--record", job["record"], "-o"]
again = []
for args in (["wandb", *rest, out], ["mlflow", *rest, database]):
    done = call(["-c", TWICE, *args], env)
    first, second = done.stdout.splitlines()[-1].split()
    assert first == "0", (done.stdout, done.stderr)
    again.append([int(second), done.stderr.splitlines()[-1]])
answer = {"dialled": dialled(server, noted), "again": again}
call(["-c", "import socket; socket.getaddrinfo('name.invalid', 80)"], env, ok=False)
call(["-c", "import urllib.request as r; r.urlopen('http://proxied.invalid/')"], env, ok=False)
[offline] = glob.glob(os.path.join(out, "wandb", "offline-run-*"))
call(["-m", "wandb", "sync", offline], {**env, "WANDB_API_KEY": "a" * 40, "WANDB_BASE_URL": "http://wandb.invalid"},
     ok=False)
answer["control"] = dialled(server, noted)
sync = {**os.environ, "WANDB_BASE_URL": server.url, "WANDB_API_KEY": "a" * 40, "WANDB_ERROR_REPORTING": "false",
        "WANDB_DIR": out, "HOME": env["HOME"]}
call(["-m", "wandb", "sync", offline], sync)
answer["wandb"], answer["config"] = server.history, server.config
answer["params"], answer["mlflow"] = read_mlflow(database, job["run"])
json.dump(answer, sys.stdout)
