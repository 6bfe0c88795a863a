// The stages of the current turn as bars, as their marks come in. It draws; every figure in it is the server's text.

const ROWS = [
  ["endpoint_delay_ms", [["wait", "speech_end", "endpoint"]]],
  ["asr_ms", [["asr", "asr_start", "asr_done"]]],
  ["ttft_ms", [["ttft", "request_sent", "first_content"]]],
  ["tts_ms", [["first_clause", "first_content", "first_clause"], ["tts", "first_clause", "tts_first_byte"]]],
  ["wire_ms", [["wire", "first_audio_sent", "browser_received"]]],
  ["playback_ms", [["play", "browser_received", "browser_play"]]],
];
const ENDS = ["endpoint", "asr_done", "first_content", "first_clause", "tts_first_byte", "first_audio_sent", "browser_play"];
const SCALES_MS = [500, 1000, 1500, 2000, 3000, 5000, 8000, 12000, 20000, 30000, 60000];
const STEPS = 4;

export class Waterfall {
  constructor(root, words) {
    this.root = root;
    this.words = words;
    this.turn = null;
    this.drawn = null; // [record, figures] that were last drawn
  }

  useWords(words) {
    this.words = words;
    if (this.drawn) this.draw(...this.drawn);
  }

  // Another conversation begins.
  clear() {
    this.turn = this.drawn = null;
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  // Another turn begins; the last one's bars stay until its own first mark.
  begin(turn) {
    this.turn = turn;
  }

  show(record, figures) {
    if (this.turn !== null && record.id !== this.turn) return;
    this.turn = record.id;
    this.draw(record, figures);
  }

  draw(record, figures) {
    this.drawn = [record, figures];
    const marks = record.marks;
    const start = marks.speech_end ?? marks.endpoint;
    if (start === undefined) return;
    const latest = Math.max(...ENDS.filter((name) => name in marks).map((name) => marks[name] - start));
    const scale = SCALES_MS.find((most) => most >= latest) ?? latest;
    const plot = made("div", "talk-plot");
    for (const [figure, bars] of ROWS) plot.append(this.row(figure, bars, marks, start, scale, figures));
    plot.append(axis(scale));
    this.root.replaceChildren(this.head(record, figures), plot);
    this.root.hidden = false;
  }

  head(record, figures) {
    const head = made("div", "talk-fall-head");
    const title = made("span", "talk-fall-title", this.words.this_turn);
    for (const badge of this.badges(record)) title.append(made("em", "talk-badge", badge));
    head.append(title);
    const [name, text] = figures.v2v_ms ? ["v2v_ms", figures.v2v_ms] : ["first_audio_ms", figures.first_audio_ms];
    if (text) {
      const total = made("span", "talk-total", this.words.figures[name]);
      total.append(made("b", "", text), " ms");
      total.dataset.metric = name;
      head.append(total);
    }
    return head;
  }

  badges({ kind, speculation, interrupted, order, reopened }) {
    const named = this.words.badges;
    return [
      named[kind],
      kind === "hands_free" && named[`speculation_${speculation}`],
      interrupted && named.interrupted,
      reopened && named.reopened,
      named[`order_${order}`],
    ].filter(Boolean);
  }

  row(figure, bars, marks, start, scale, figures) {
    const row = made("div", "talk-row");
    const track = made("div", "talk-track");
    for (const [stage, first, last] of bars) {
      if (!(first in marks && last in marks) || marks[last] < marks[first]) continue;
      const bar = made("i", "talk-bar");
      bar.dataset.stage = stage;
      const from = Math.max(0, marks[first] - start);
      bar.style.left = percent(from, scale);
      bar.style.width = percent(Math.max(0, marks[last] - start - from), scale);
      track.append(bar);
    }
    const value = made("span", "talk-value", figures[figure] ?? "");
    value.dataset.metric = figure;
    row.append(made("span", "talk-stage", this.words.figures[figure]), track, value);
    return row;
  }
}

function axis(scale) {
  const line = made("div", "talk-axis");
  for (let step = 0; step <= STEPS; step++) {
    const tick = made("span", "", `${(scale * step) / STEPS / 1000} s`);
    tick.style.left = percent(step, STEPS);
    line.append(tick);
  }
  return line;
}

function percent(part, whole) {
  return `${Math.min(100, (part / whole) * 100).toFixed(2)}%`;
}

function made(tag, classes, text = "") {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  return element;
}
