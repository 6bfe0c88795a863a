// Plays the reply's sound as it arrives and tells the page when the first sample could be heard.
// Runs as the js_on_load of a gr.HTML component: `element`, `props`, `watch` and `trigger` are Gradio's.
// props.value is {turn, url} of the turn whose sound should play, as JSON text.
const RATE = 24000;
const LEAD_S = 0.02; // first chunk starts this much in the future, so that the second cannot come too late to join
const Context = window.AudioContext || window.webkitAudioContext;

let context = null;
let current = null;

function audioContext() {
  context = context || new Context({ latencyHint: "interactive" });
  if (context.state === "suspended") context.resume();
  return context;
}

// Browsers, iOS first among them, only let sound out after a tap or a key.
for (const name of ["pointerdown", "keydown"]) {
  document.addEventListener(name, audioContext, { passive: true, capture: true });
}

class Playback {
  constructor(turn) {
    this.turn = turn;
    this.abort = new AbortController();
    this.gain = null;
    this.sources = new Set();
    this.next = 0; // context time at which the queued sound ends
    this.queued = 0; // seconds queued
    this.received = null; // performance.now() when the first bytes came
    this.carry = new Uint8Array(0);
  }

  async run(url) {
    const response = await fetch(url, { signal: this.abort.signal, cache: "no-store" });
    if (!response.ok) throw new Error(`the reply's sound answered ${response.status}`);
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      this.received = this.received ?? performance.now();
      this.push(value);
    }
  }

  push(bytes) {
    const joined = new Uint8Array(this.carry.length + bytes.length);
    joined.set(this.carry);
    joined.set(bytes, this.carry.length);
    const even = joined.length - (joined.length % 2);
    this.carry = joined.slice(even);
    if (even) this.schedule(new Int16Array(joined.buffer.slice(0, even)));
  }

  schedule(samples) {
    const out = audioContext();
    const buffer = out.createBuffer(1, samples.length, RATE);
    const data = buffer.getChannelData(0);
    for (let i = 0; i < samples.length; i++) data[i] = samples[i] / 32768;
    if (!this.gain) {
      this.gain = out.createGain();
      this.gain.connect(out.destination);
    }
    const source = out.createBufferSource();
    source.buffer = buffer;
    source.connect(this.gain);
    const first = this.queued === 0;
    const start = Math.max(this.next, out.currentTime + (first ? LEAD_S : 0));
    source.start(start);
    source.onended = () => this.sources.delete(source);
    this.sources.add(source);
    this.next = start + buffer.duration;
    this.queued += buffer.duration;
    if (first) this.tellWhenHeard(start);
  }

  tellWhenHeard(start) {
    const look = () => {
      if (this.abort.signal.aborted) return;
      if (context.state !== "running" || context.currentTime < start) {
        setTimeout(look, 5);
        return;
      }
      const late = (context.currentTime - start) * 1000;
      const output = (context.outputLatency || context.baseLatency || 0) * 1000;
      const wait = performance.now() - this.received - late + output;
      trigger("play", { turn: this.turn, wait_ms: Math.max(0, wait) });
    };
    look();
  }

  // Seconds heard so far; null when all of it was.
  heard() {
    if (!this.queued || !context) return 0;
    const left = Math.max(0, this.next - context.currentTime);
    return left > 0 ? Math.max(0, this.queued - left) : null;
  }

  stop() {
    this.abort.abort();
    for (const source of this.sources) source.stop();
    this.sources.clear();
  }
}

window.spokenChat = {
  // Silences the reply and returns the seconds of it that were heard, or -1 when nothing was cut off.
  stop() {
    if (!current) return -1;
    const heard = current.heard();
    current.stop();
    current = null;
    return heard === null ? -1 : heard;
  },
  get playing() {
    return Boolean(current && current.queued && current.heard() !== null);
  },
  get secondsQueued() {
    return current ? current.queued : 0;
  },
};

watch("value", () => {
  if (!props.value) return;
  const { turn, url } = JSON.parse(props.value);
  if (current && current.turn === turn) return;
  window.spokenChat.stop();
  const playback = new Playback(turn);
  current = playback;
  playback.run(new URL(url, location.href)).catch((error) => {
    if (!playback.abort.signal.aborted) console.error("reply audio:", error);
  });
});
