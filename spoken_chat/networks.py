"""Loading the ONNX networks that run in this process. The one place that knows how onnxruntime says a file is bad."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spoken_chat.errors import ChatError, package_missing

if TYPE_CHECKING:
    import onnxruntime


def load_network(
    path: Path, threads: int, *, what: str, mend: str, spinning: bool = True
) -> onnxruntime.InferenceSession:
    """The network in `path`, on `threads` CPU threads; its `run` may be called from several threads at once.

    `spinning`: whether its idle threads keep a core busy for a while, which is faster when nobody else needs it.
    Raises ChatError when onnxruntime is missing or the file is damaged; it names `what` and says how to `mend` it.
    """
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as faults
    except ImportError as error:
        raise package_missing(error) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not spinning:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except (
        faults.Fail,
        faults.InvalidProtobuf,
        faults.InvalidGraph,
        faults.InvalidArgument,
        faults.NoSuchFile,
    ) as error:
        raise ChatError("weights_damaged", f"{what} in {path} cannot be loaded; {mend}.", file=str(path)) from error
