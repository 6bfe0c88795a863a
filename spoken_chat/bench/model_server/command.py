"""`python -m spoken_chat.bench.model_server.command start|measure|stop`: see docs/measurements/README.md."""

from __future__ import annotations

import argparse
import asyncio
import datetime
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from spoken_chat.bench.model_server import fleet
from spoken_chat.bench.model_server.probe import Probe
from spoken_chat.bench.model_server.scenarios import SCENARIOS
from spoken_chat.bench.model_server.summary import medians, summary
from spoken_chat.bench.report import machine
from spoken_chat.persona import load_personas
from spoken_chat.server.recipe import ServerOptions
from spoken_chat.settings import ROOT

Lists = dict[str, list[Any]]

PACKAGES: Final = ("vllm", "torch", "triton", "transformers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Start servers, measure them, or end them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("start", "measure", "stop"))
    parser.add_argument("--variants", default="plain", help="by commas")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="by commas")
    parser.add_argument("--folder", type=Path, required=True, help="logs, caches and ports of the servers")
    parser.add_argument("--model", default="", help="the checkpoint to serve")
    parser.add_argument("--passes", type=int, default=4, help="over every scenario and server, in turns")
    parser.add_argument("--wait", type=float, default=540, help="seconds to wait for the servers")
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    parser.add_argument("--note", default="", help="what a reader of the figures must know")
    parsed, further = parser.parse_known_args(arguments)
    names = parsed.variants.split(",")
    if parsed.what == "start":
        fleet.start(names, ServerOptions(model=parsed.model), parsed.folder, further)
        up = fleet.wait(names, parsed.folder, parsed.wait)
        print("up after seconds:", up, flush=True)
        return 0 if all(up.values()) else 1
    if parsed.what == "stop":
        fleet.stop(parsed.folder)
        return 0
    return asyncio.run(_measure(names, parsed))


async def _measure(names: Sequence[str], parsed: argparse.Namespace) -> int:
    persona = load_personas(ROOT / "persona")["xiaohe"]
    report: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "note": parsed.note,
        "machine": machine(),
        "gpu": _gpu(),
        "versions": {name: _version(name) for name in PACKAGES},
        "servers": {},
    }
    servers = {name: json.loads((parsed.folder / f"{name}.json").read_text()) for name in names}
    probes = {
        name: Probe(f"http://127.0.0.1:{server['port']}/v1", server.get("model", "qwen36"))
        for name, server in servers.items()
    }
    found: dict[str, Lists] = {name: {} for name in names}
    for number in range(parsed.passes):
        for scenario in parsed.scenarios.split(","):
            for name in names if number % 2 else reversed(names):
                try:
                    for key, values in (await SCENARIOS[scenario](probes[name], persona, number)).items():
                        found[name].setdefault(key, []).extend(values)
                except Exception as error:  # noqa: BLE001 - the device time of the other scenarios must not be lost
                    print(f"{name} {scenario}: {error!r}", file=sys.stderr)
        report["servers"] = {
            name: {"flags": servers[name]["flags"], **{key: summary(values) for key, values in found[name].items()}}
            for name in names
        }
        if parsed.out is not None:  # after each pass: what was measured is kept
            parsed.out.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    for name in names:
        print(name, json.dumps(medians({key: summary(values) for key, values in found[name].items()})), flush=True)
        await probes[name].close()
    return 0


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpu() -> str | None:
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


if __name__ == "__main__":
    sys.exit(main())
