// The browser's clock of V2V: from the end of what was said to the first sample of the answer that can be heard.
// All times are performance.now(), in ms. An anchor that is missing or contradicts itself gives nothing, never a guess.
import { RATE } from "./pcm.js";

const KEPT_MS = 150_000; // longer than the longest utterance
const NEAR_MS = 500; // chunks this near tell when a sample was captured; some of them came without delay

export class LatencyClock {
  constructor() {
    this.turns = new Map();
    this.anchor = null;
    this.restart();
  }

  // A new input stream begins: positions count from its first sample.
  restart() {
    this.samples = 0;
    this.chunks = [];
  }

  // The next `count` samples of the input arrived at `at`; `behind` s of sound had come after them by then.
  captured(count, at, behind) {
    this.samples += count;
    const position = (this.samples * 1000) / RATE;
    this.chunks.push({ position, offset: at - behind * 1000 - position });
    if (position - this.chunks[0].position > 2 * KEPT_MS) {
      this.chunks = this.chunks.filter((chunk) => position - chunk.position <= KEPT_MS);
    }
  }

  // When the sample at `position` ms of the input was captured; null where that is not known.
  // A message can come late, never early: the least offset near by is the truest.
  capturedAt(position) {
    let offset = null;
    for (const chunk of this.chunks) {
      if (Math.abs(chunk.position - position) <= NEAR_MS && (offset === null || chunk.offset < offset)) {
        offset = chunk.offset;
      }
    }
    return offset === null ? null : position + offset;
  }

  // An utterance is handed in at `at`; the next turn that was not heard hands-free is its answer.
  // `request`: the event id that asks for it, so that a refusal takes the anchor back.
  handedIn(at, request = null) {
    this.anchor = { at, request };
  }

  refused(request) {
    if (this.anchor && this.anchor.request !== null && this.anchor.request === request) this.anchor = null;
  }

  started(turn, speechEnd) {
    let from = null;
    if (typeof speechEnd === "number") {
      from = this.capturedAt(speechEnd);
    } else {
      from = this.anchor?.at ?? null;
      this.anchor = null;
    }
    this.turns.set(turn, { from, received: null });
  }

  // Sound of the turn arrived.
  received(turn, at) {
    const known = this.turns.get(turn);
    if (known && known.received === null) known.received = at;
  }

  // The turn's first sample was heard at `at`: what to report, once; null where it cannot be known.
  heard(turn, at) {
    const known = this.turns.get(turn);
    this.turns.delete(turn);
    if (!known || known.from === null || known.received === null) return null;
    const waited = at - known.from;
    const playback = at - known.received;
    return playback >= 0 && waited >= playback ? { waited_ms: rounded(waited), playback_ms: rounded(playback) } : null;
  }

  forget(turn) {
    this.turns.delete(turn);
  }
}

function rounded(value) {
  return Math.round(value * 100) / 100;
}
