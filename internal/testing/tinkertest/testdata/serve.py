"""Runs SkyRL's Tinker server for tests: python serve.py PORT MODEL FOLDER, until its standard input ends.

The server listens on loopback alone. Its engine is started by this interpreter; the server itself starts it through
`uv run`, which wants a project.
"""

import os
import sys
import threading

from skyrl.tinker import api
from skyrl.tinker.config import EngineConfig, config_to_argv


def main(port: str, model: str, folder: str) -> None:
    api._build_uv_run_cmd_engine = lambda _, config: [
        sys.executable, "-m", "skyrl.tinker.engine", *config_to_argv(config)
    ]  # fmt: skip
    api.app.state.engine_config = EngineConfig(
        base_model=model,
        backend="jax",
        # A batch of a fixed number of rows is compiled once.
        backend_config={
            "max_lora_adapters": 6,
            "max_lora_rank": 8,
            "train_micro_batch_size": 4,
            "sample_max_num_sequences": 8,
        },
        checkpoints_base=os.path.join(folder, "checkpoints"),
        database_url="sqlite:///" + os.path.join(folder, "tinker.db"),
    )

    import uvicorn

    server = uvicorn.Server(uvicorn.Config(api.app, host="127.0.0.1", port=int(port), log_level="warning"))

    def end() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
