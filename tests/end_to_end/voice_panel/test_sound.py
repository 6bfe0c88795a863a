"""The voice panel's own signal processing and clocks, run in a real browser: its pure modules, and its worklet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.support.browser import chromium
from tests.support.panel_harness import panel_server

pytestmark = pytest.mark.browser

TOOLS = """
window.sine = (rate, frequency, seconds, level = 0.5) =>
  new Float32Array(Math.round(rate * seconds)).map((_, at) => level * Math.sin(2 * Math.PI * frequency * at / rate));
window.pcm = (samples) => Int16Array.from(samples, (sample) => Math.round(sample * 32767));
window.loudness = (samples) => Math.sqrt(samples.reduce((sum, one) => sum + one * one, 0) / samples.length);
// The level of one frequency in the samples, by projection on it.
window.levelAt = (samples, rate, frequency) => {
  let real = 0, imaginary = 0;
  samples.forEach((one, at) => {
    real += one * Math.cos(2 * Math.PI * frequency * at / rate);
    imaginary += one * Math.sin(2 * Math.PI * frequency * at / rate);
  });
  return 2 * Math.hypot(real, imaginary) / samples.length;
};
window.resampled = (Resampler, from, to, input, size) => {
  const resampler = new Resampler(from, to);
  const out = [];
  for (let at = 0; at < input.length; at += size) out.push(...resampler.push(input.subarray(at, at + size)));
  out.push(...resampler.finish());
  return Float32Array.from(out);
};
// A queue at 48 kHz whose output and messages are kept, in quanta of 128 samples.
window.playing = (PlaybackQueue, rate = 48000) => {
  const told = [], out = [];
  const queue = new PlaybackQueue(rate, (message) => told.push(message));
  const run = (seconds) => {
    const quantum = new Float32Array(128);
    for (let end = out.length + seconds * rate; out.length < end; ) {
      queue.render(quantum, out.length / rate);
      out.push(...quantum);
    }
  };
  return { queue, told, out, run };
};
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with panel_server() as server, chromium() as browser:
        opened = browser.new_page()
        opened.goto(server.url)
        opened.add_script_tag(content=TOOLS)
        yield opened


def run(page: Page, module: str, body: str, argument: Any = None) -> Any:
    """What `body`, a piece of a function with the module's exports as `m` and `argument` as `a`, returns."""
    script = f"async (a) => {{ const m = await import('/talk-assets/{module}'); {body} }}"
    return page.evaluate(script, argument)


@pytest.mark.parametrize("rate", [16_000, 22_050, 44_100, 48_000, 96_000])
def test_resampling_to_the_wires_rate_keeps_a_tone_and_its_level(page: Page, rate: int) -> None:
    level, length = run(
        page,
        "resampler.js",
        "const out = resampled(m.Resampler, a, 24000, sine(a, 1000, 0.5), 128);"
        "return [levelAt(out.subarray(2400, 9600), 24000, 1000), out.length]",
        rate,
    )
    assert level == pytest.approx(0.5, abs=0.001)
    assert length == 12_000, "no sample is lost at either end"


@pytest.mark.parametrize("frequency", [13_000, 15_000, 20_000])
def test_what_the_lower_rate_cannot_hold_is_filtered_out(page: Page, frequency: int) -> None:
    loudness = run(
        page,
        "resampler.js",
        "return loudness(resampled(m.Resampler, 48000, 24000, sine(48000, a, 0.5), 128).subarray(2400, 9600))",
        frequency,
    )
    assert loudness < 0.5 * 10 ** (-70 / 20)


@pytest.mark.parametrize(("rate", "out"), [(44_100, 24_000), (24_000, 44_100), (24_000, 48_000), (24_000, 24_000)])
def test_resampling_does_not_depend_on_how_the_stream_is_cut(page: Page, rate: int, out: int) -> None:
    difference = run(
        page,
        "resampler.js",
        "const [from, to] = a; const input = sine(from, 700, 0.3);"
        "const whole = resampled(m.Resampler, from, to, input, input.length);"
        "const pieces = resampled(m.Resampler, from, to, input, 77);"
        "return [whole.length - pieces.length, Math.max(...whole.map((one, at) => Math.abs(one - pieces[at])))]",
        [rate, out],
    )
    assert difference == [0, 0]


def test_deltas_become_one_unbroken_tone(page: Page) -> None:
    steps, told = run(
        page,
        "playback-queue.js",
        "const { queue, told, out, run } = playing(m.PlaybackQueue); const tone = pcm(sine(24000, 300, 0.5));"
        "for (let at = 0; at < tone.length; at += 611) { queue.add('t', tone.slice(at, at + 611)); run(0.02); }"
        "queue.end('t'); run(0.3);"
        "let most = 0; for (let at = 480; at < 23500; at++) most = Math.max(most, Math.abs(out[at] - out[at - 1]));"
        "return [most, told.filter((one) => one.type !== 'progress')]",
    )
    assert steps < 0.5 * 2 * 3.1416 * 300 / 48_000 * 1.05, "between its two ends no step is larger than the sine's own"
    assert [one["type"] for one in told] == ["audible", "drained"]
    assert told[1]["played"] == pytest.approx(0.5, abs=0.001)


def test_sound_starts_with_the_first_delta_and_a_shorter_one_waits_for_20_ms(page: Page) -> None:
    first = "return told.find((one) => one.type === 'audible')?.time ?? null"
    make = "const { queue, told, run } = playing(m.PlaybackQueue); const tone = (s) => pcm(sine(24000, 440, s));"
    assert run(page, "playback-queue.js", f"{make} queue.add('t', tone(0.1)); run(0.2); {first}") < 0.001
    assert 0.019 < run(page, "playback-queue.js", f"{make} queue.add('t', tone(0.01)); run(0.2); {first}") < 0.025
    joined = f"{make} queue.add('t', tone(0.01)); run(0.005); queue.add('t', tone(0.01)); run(0.2); {first}"
    assert run(page, "playback-queue.js", joined) < 0.009


def test_after_the_queue_ran_dry_it_goes_on_when_more_comes(page: Page) -> None:
    told, later = run(
        page,
        "playback-queue.js",
        "const { queue, told, out, run } = playing(m.PlaybackQueue); const tone = pcm(sine(24000, 440, 0.1));"
        "queue.add('t', tone.slice()); run(0.3); queue.add('t', tone.slice()); queue.end('t'); run(0.3);"
        "return [told.filter((one) => !['progress'].includes(one.type)), loudness(out.slice(14500, 19000))]",
    )
    assert [one["type"] for one in told] == ["audible", "starved", "drained"]
    assert told[1]["played"] == pytest.approx(0.1, abs=0.001)
    assert told[2]["played"] == pytest.approx(0.2, abs=0.002)
    assert later == pytest.approx(0.5 / 2**0.5, rel=0.02)


def test_the_first_audible_sample_is_told_and_not_the_silence_before_it(page: Page) -> None:
    time = run(
        page,
        "playback-queue.js",
        "const { queue, told, run } = playing(m.PlaybackQueue); const sound = new Int16Array(6000);"
        "sound.set(pcm(sine(24000, 440, 0.1)), 2400); queue.add('t', sound); run(0.3);"
        "return told.find((one) => one.type === 'audible').time",
    )
    assert time == pytest.approx(0.1, abs=0.001)


def test_ducking_falls_in_15_ms_and_rises_in_80_ms(page: Page) -> None:
    levels = run(
        page,
        "playback-queue.js",
        "const { queue, out, run } = playing(m.PlaybackQueue);"
        "queue.add('t', new Int16Array(24000).fill(16384)); run(0.1); const down = out.length; queue.duck(true);"
        "run(0.1); const up = out.length; queue.duck(false); run(0.2);"
        "const at = (start, ms) => out[start + Math.round(ms * 48)];"
        "return [at(down, -5), at(down, 7.5), at(down, 16), at(up, 40), at(up, 81)]",
    )
    assert levels == [
        pytest.approx(0.5, abs=0.01),
        pytest.approx(0.2875, abs=0.02),
        pytest.approx(0.075, abs=0.005),
        pytest.approx(0.2875, abs=0.02),
        pytest.approx(0.5, abs=0.005),
    ]


def test_a_flush_is_silent_within_a_few_milliseconds_and_does_not_click(page: Page) -> None:
    last, step, after, told = run(
        page,
        "playback-queue.js",
        "const { queue, told, out, run } = playing(m.PlaybackQueue);"
        "queue.add('t', new Int16Array(24000).fill(16384)); run(0.2); const cut = out.length; queue.flush(); run(0.2);"
        "return [out[cut - 1], out[cut - 1] - out[cut], Math.max(...out.slice(cut + 480)), told.at(-1).type]",
    )
    assert last == pytest.approx(0.5, abs=0.01)
    assert abs(step) < 0.05
    assert after < 0.001
    assert told == "progress", "what was flushed is not told as drained"


def test_the_worklet_plays_without_a_gap_at_a_devices_rate(page: Page) -> None:
    level, quietest = page.evaluate("""async () => {
      const context = new OfflineAudioContext(1, 44100, 44100);
      await context.audioWorklet.addModule("/talk-assets/playback-worklet.js");
      const node = new AudioWorkletNode(context, "spoken-chat-playback", { numberOfInputs: 0 });
      node.connect(context.destination);
      const tone = pcm(sine(24000, 1000, 0.9));
      for (let at = 0; at < tone.length; at += 3001) {
        node.port.postMessage({ do: "add", turn: "t", samples: tone.slice(at, at + 3001) });
      }
      await new Promise((done) => {
        node.port.onmessage = done;
        setTimeout(done, 300);
      });
      const out = (await context.startRendering()).getChannelData(0);
      const middle = out.subarray(8000, 36000);
      let quietest = 1;
      for (let at = 0; at + 441 < middle.length; at += 441) {
        quietest = Math.min(quietest, loudness(middle.subarray(at, at + 441)));
      }
      return [levelAt(middle, 44100, 1000), quietest];
    }""")
    assert level == pytest.approx(0.5, abs=0.01)
    assert quietest == pytest.approx(0.5 / 2**0.5, rel=0.03), "every 10 ms are equally loud"


@pytest.mark.parametrize(
    ("happened", "state"),
    [
        ([], "off"),
        (["connecting"], "connecting"),
        (["connected", "microphone_opening"], "connecting"),
        (["connected", "microphone_on"], "listening"),
        (["connected", "microphone_on", "muted"], "muted"),
        (["connected", "microphone_on", "speech_started"], "hearing"),
        (["connected", "microphone_on", "speech_started", "speech_stopped"], "thinking"),
        (["connected", "microphone_on", "speech_started", "dropped"], "listening"),
        (["connected", "microphone_on", "asked", "audible"], "speaking"),
        (["connected", "microphone_on", "asked", "audible", "speech_started"], "hearing"),
        (["connected", "microphone_on", "asked", "audible", "silent"], "listening"),
        (["connected", "asked"], "thinking"),
        (["connected", "asked", "answered"], "off"),
        (["connected", "microphone_on", "held"], "hearing"),
        (["connected", "microphone_on", "held", "lost"], "lost"),
        (["connected", "microphone_on", "lost", "connected"], "listening"),
    ],
)
def test_the_state_that_is_shown_follows_from_what_happened(page: Page, happened: list[str], state: str) -> None:
    assert run(page, "state.js", "return m.shown(a.reduce(m.next, m.START))", happened) == state


def clock(page: Page, body: str) -> Any:
    """Runs `body` on a LatencyClock whose input began at 1,000 ms, with chunks that came up to 9 ms late."""
    feed = "const c = new m.LatencyClock(); for (let n = 1; n <= 200; n++) c.captured(480, 1000 + 20 * n + n % 10, 0);"
    return run(page, "latency.js", f"{feed} {body}")


def test_hands_free_v2v_counts_from_when_the_end_of_speech_was_captured(page: Page) -> None:
    body = "c.started('t', 2500); c.received('t', 4000); c.received('t', 4100); return c.heard('t', 4040)"
    assert clock(page, body) == {"waited_ms": 540, "playback_ms": 40}


def test_sound_that_the_device_held_back_was_captured_earlier(page: Page) -> None:
    heard = "c.started('t', 20); c.received('t', 5100); return c.heard('t', 5115)"
    assert clock(page, f"c.restart(); c.captured(480, 5020, 0.005); {heard}") == {"waited_ms": 100, "playback_ms": 15}


def test_other_turns_count_from_when_they_were_handed_in(page: Page) -> None:
    body = "c.handedIn(7000); c.started('t'); c.received('t', 7200); return [c.heard('t', 7230), c.heard('t', 7240)]"
    assert clock(page, body) == [{"waited_ms": 230, "playback_ms": 30}, None], "and are told once"


@pytest.mark.parametrize(
    "body",
    [
        "c.started('t'); c.received('t', 10); return c.heard('t', 20)",
        "c.started('t', 99000); c.received('t', 10); return c.heard('t', 20)",
        "c.handedIn(7000); c.started('t'); return c.heard('t', 7230)",
        "c.handedIn(7000); c.started('t'); c.received('t', 7300); return c.heard('t', 7200)",
        "c.handedIn(7000, 'e1'); c.refused('e1'); c.started('t'); c.received('t', 7100); return c.heard('t', 7200)",
    ],
    ids=["no anchor", "a position never sent", "no sound received", "heard before it came", "a request refused"],
)
def test_a_measurement_that_cannot_be_right_is_none(page: Page, body: str) -> None:
    assert clock(page, body) is None


def test_base64_of_much_sound_comes_back_as_it_was(page: Page) -> None:
    body = (
        "const pcm = Int16Array.from({ length: 500001 }, (_, n) => (n * 7919) % 65536 - 32768);"
        "const back = m.fromBase64(m.toBase64(pcm));"
        "return back.length === pcm.length && back.every((x, n) => x === pcm[n])"
    )
    assert run(page, "pcm.js", body)
