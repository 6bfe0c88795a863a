"""How far a start is, read off vLLM's log as it grows."""

from __future__ import annotations

import pytest

from spoken_chat.server.start_log import STAGES, StartFacts, StartLog

H200 = """\
(APIServer pid=617) INFO 12-01 12:41:03 [api_utils.py:273] non-default args: {'enable_prompt_tokens_details': True}
(EngineCore pid=1557) INFO 12-01 12:42:39 [gpu_model_runner.py:5230] Starting to load model qwen...
(EngineCore pid=1557) INFO 12-01 12:42:49 [gpu_model_runner.py:5347] Model loading took 18.6 GiB memory and 10.3 s
(EngineCore pid=1557) INFO 12-01 12:42:49 [interface.py:905] Setting attention block size to 544 tokens to ensure that
(EngineCore pid=1557) INFO 12-01 12:43:04 [backends.py:1155] Dynamo bytecode transform time: 11.99 s
(EngineCore pid=1557) INFO 12-01 12:43:51 [backends.py:393] Compiling a graph for compile range (1, 8192) takes 46.88 s
(EngineCore pid=1557) INFO 12-01 12:43:57 [monitor.py:53] torch.compile took 65.53 s in total
(EngineCore pid=1557) INFO 12-01 12:46:44 [kv_cache_utils.py:2177] GPU KV cache size: 113,981 tokens
(EngineCore pid=1557) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|          | 0/13 [00:00<?, ?it/s]
(EngineCore pid=1557) INFO 12-01 12:46:57 [gpu_model_runner.py:6844] Graph capturing finished in 7 secs, took 0.13 GiB
(APIServer pid=617) INFO 12-01 12:47:28 [launcher.py:37] Starting vLLM server on http://127.0.0.1:8000
"""
CPU = """\
(Worker pid=11217) INFO 12-01 12:34:10 [cpu_model_runner.py:69] Starting to load model text...
(Worker pid=11217) INFO 12-01 12:34:12 [cpu_model_runner.py:88] Warming up model for the compilation...
(Worker pid=11217) INFO 12-01 12:34:39 [monitor.py:81] Initial profiling/warmup run took 0.07 s
(EngineCore pid=11197) INFO 12-01 12:34:41 [kv_cache_utils.py:2464] CPU KV cache size: 1,048,576 tokens, Maximum
(APIServer pid=11174) INFO 12-01 12:34:49 [entry.py:136] Starting vLLM server on http://127.0.0.1:8101
"""


def stages_of(text: str, pieces: int = 1) -> list[str]:
    """The stages that a log of `text` goes through, fed `pieces` characters at a time."""
    log, seen = StartLog(), ["starting"]
    for start in range(0, len(text), pieces):
        log.feed(text[start : start + pieces])
        if log.stage != seen[-1]:
            seen.append(log.stage)
    return seen


@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_stages_follow_each_other_however_the_log_is_cut(pieces: int) -> None:
    assert stages_of(H200, pieces) == ["starting", "loading", "compiling", "warming", "capturing", "serving"]
    assert stages_of(CPU, pieces) == ["starting", "loading", "compiling", "warming", "serving"]


def test_a_stage_never_goes_back() -> None:
    log = StartLog()
    log.feed("Capturing CUDA graphs (decode, FULL):  50%|#\n")
    log.feed("INFO Starting to load model draft...\n")
    assert (log.stage, log.percent) == ("capturing", 50)


@pytest.mark.parametrize(
    ("bar", "stage"),
    [
        ("Fetching 14 files:  {}%|##   | 3/14", "downloading"),
        ("model-00001-of-00005.safetensors:  {}%|##  | 1.2G/4.9G", "downloading"),
        ("Loading safetensors checkpoint shards:  {}% Completed | 2/5", "loading"),
        ("(EngineCore pid=7) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  {}%|#", "capturing"),
    ],
)
def test_a_progress_bar_says_how_far_its_stage_is(bar: str, stage: str) -> None:
    log = StartLog()
    log.feed("".join(bar.format(percent) + "\r" for percent in (0, 20, 60)))
    assert (log.stage, log.percent) == (stage, 60)
    assert stage in STAGES


def test_the_sizes_it_settled_on_are_read() -> None:
    log = StartLog()
    log.feed(H200)
    assert log.facts == StartFacts(18.6, 113_981, 544)
    log = StartLog()
    log.feed(CPU)
    assert log.facts == StartFacts(None, 1_048_576, None)


def read_off(*pieces: str) -> tuple[str, int | None, StartFacts]:
    log = StartLog()
    for piece in pieces:
        log.feed(piece)
    return log.stage, log.percent, log.facts


def test_a_log_that_is_cut_anywhere_is_read_as_if_it_were_whole() -> None:
    text = "".join(H200.splitlines(keepends=True)[1:4] + H200.splitlines(keepends=True)[7:9])
    assert read_off(text) == ("capturing", 0, StartFacts(18.6, 113_981, 544))
    for place in range(len(text)):
        assert read_off(text[:place], text[place:]) == read_off(text)


def test_a_line_is_read_only_once_it_has_ended() -> None:
    line = "(EngineCore pid=1557) INFO 12-01 12:42:49 [interface.py:905] Setting attention block size to 54"
    assert read_off(line) == ("starting", None, StartFacts())
    assert read_off(line, "4 tokens to ensure that\r\n") == ("starting", None, StartFacts(block_tokens=544))


def test_bars_of_one_line_are_read_one_by_one_and_a_new_stage_forgets_how_far_the_last_one_was() -> None:
    log = StartLog()
    bar = "Loading safetensors checkpoint shards:  {}% Completed | 2/5 [00:03<00:04,  1.50s/it]\r"
    log.feed(bar.format(20) + bar.format(40))
    assert (log.stage, log.percent) == ("loading", 40)
    log.feed("\n(EngineCore pid=1557) INFO 12-01 12:43:04 [backends.py:1155] Dynamo bytecode transform time: 11.99 s\n")
    assert (log.stage, log.percent) == ("compiling", None)


@pytest.mark.parametrize("stage", STAGES)
def test_ordinary_lines_change_nothing(stage: str) -> None:
    log = StartLog()
    log.stage = stage  # type: ignore[assignment]
    log.feed("(APIServer pid=617) INFO 12-01 12:41:33 [vllm.py:1109] Asynchronous scheduling is enabled.\n\n\r\n")
    log.feed('INFO:     127.0.0.1:57320 - "GET /health HTTP/1.1" 200 OK\n')
    assert (log.stage, log.percent, log.facts) == (stage, None, StartFacts())


def test_a_download_is_told_though_vllm_says_first_that_it_loads() -> None:
    log = StartLog()
    log.feed("(EngineCore pid=1557) INFO 12-01 12:42:37 [gpu_model_runner.py:5250] Starting to load model Qwen/x...\n")
    log.feed("model-00001-of-00005.safetensors:  20%|##        | 1.00G/4.99G [00:40<02:40, 24.9MB/s]\r")
    assert (log.stage, log.percent) == ("downloading", 20)
