// The page's side of the playback worklet: what plays, how much of it was heard, and since when.
import { RATE } from "./pcm.js";

export class Player {
  // `onAudible(turn, at)`: the first sample that can be heard, on performance.now(). `onDrained(turn, seconds)`: all was played.
  constructor(sound, { onAudible, onDrained }) {
    this.sound = sound;
    this.onAudible = onAudible;
    this.onDrained = onDrained;
    this.node = null;
    this.waiting = []; // messages for the worklet while it loads
    this.turns = new Map(); // what is queued or played and neither drained nor flushed, oldest first
    this.lastQueued = 0;
  }

  // Whether a reply has sound that was not played yet.
  get playing() {
    return this.turns.size > 0;
  }

  // Whether sound of that turn was not played yet.
  holds(turn) {
    return this.turns.has(turn);
  }

  // Seconds of sound that came for the latest reply.
  get secondsQueued() {
    return this.lastQueued;
  }

  add(turn, samples) {
    if (!samples.length) return;
    const known = this.turns.get(turn) ?? { queued: 0, played: 0, time: 0, running: false };
    known.queued += samples.length / RATE;
    this.lastQueued = known.queued;
    this.turns.set(turn, known);
    this.post({ do: "add", turn, samples }, [samples.buffer]);
  }

  end(turn) {
    if (this.turns.has(turn)) this.post({ do: "end", turn });
  }

  duck(down) {
    if (this.playing) this.post({ do: "duck", down });
  }

  // Silence at once. Returns [turn, seconds of it that were played] for each that was cut.
  flush() {
    const cut = [...this.turns.keys()].map((turn) => [turn, this.played(turn)]);
    this.turns.clear();
    if (cut.length) this.post({ do: "flush" });
    return cut;
  }

  played(turn) {
    const known = this.turns.get(turn);
    if (!known) return 0;
    const since = known.running ? Math.max(0, this.sound.context.currentTime - known.time) : 0;
    return Math.min(known.queued, known.played + since);
  }

  post(message, transfer = []) {
    if (this.node) {
      this.node.port.postMessage(message, transfer);
      return;
    }
    this.waiting.push([message, transfer]);
    if (this.waiting.length === 1) this.connect();
  }

  async connect() {
    try {
      const context = await this.sound.ready();
      this.node = new AudioWorkletNode(context, "spoken-chat-playback", { numberOfInputs: 0, outputChannelCount: [1] });
      this.node.port.onmessage = ({ data }) => this.told(data);
      this.node.connect(context.destination);
      for (const [message, transfer] of this.waiting.splice(0)) this.node.port.postMessage(message, transfer);
    } catch (error) {
      console.error("playback:", error);
      this.waiting = [];
      const lost = [...this.turns.keys()];
      this.turns.clear();
      for (const turn of lost) this.onDrained(turn, 0);
    }
  }

  told({ type, turn, played, time }) {
    if (type === "audible") this.onAudible(turn, this.sound.heardAt(time));
    const known = this.turns.get(turn);
    if (!known || type === "audible") return;
    known.played = played;
    known.time = time;
    known.running = type === "progress";
    if (type === "drained") {
      this.turns.delete(turn);
      this.onDrained(turn, played);
    }
  }
}
