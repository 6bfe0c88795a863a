// The reply's sound as it comes, made into an unbroken stream at the device's rate. Pure: the playback worklet runs it.
//
// It tells `tell` what happens:
//   {type: "audible", turn, time}           the first sample of a turn that can be heard, on the device's clock
//   {type: "progress", turn, played, time}  seconds of the turn played so far
//   {type: "starved", turn, played, time}   the queue ran dry before the turn's end
//   {type: "drained", turn, played, time}   all of the turn was played
import { Resampler } from "./resampler.js";

const RATE = 24000;
const LEAD_S = 0.02; // so much sound is there before it starts, or it has waited so long: no gap at the second chunk
const BLOCK = 240; // source samples resampled at once
const AUDIBLE = 0.002; // -54 dB under full scale: quieter is the silence around speech
const PROGRESS_S = 0.01;
const DUCKED = 0.15;
const DUCK_S = 0.015;
const UNDUCK_S = 0.08;
const DECAY_S = 0.001; // a cut dies away like this instead of clicking

export class PlaybackQueue {
  constructor(rate, tell) {
    this.rate = rate;
    this.tell = tell;
    this.resampler = new Resampler(RATE, rate);
    this.turns = [];
    this.gain = 1;
    this.target = 1;
    this.residue = 0;
    this.last = 0;
    this.decay = Math.exp(-1 / (DECAY_S * rate));
    this.forgetMade();
  }

  // More sound (Int16Array) of a turn, behind what is queued.
  add(turn, samples) {
    const known = this.turn(turn);
    known.chunks.push(samples);
    known.waiting += samples.length;
  }

  // No more sound of that turn will come.
  end(turn) {
    if (this.turns.some((one) => one.id === turn)) this.turn(turn).ended = true;
  }

  duck(down) {
    this.target = down ? DUCKED : 1;
  }

  // Drops all that is queued, at once.
  flush() {
    this.turns = [];
    this.resampler.reset();
    this.forgetMade();
    this.residue += this.last;
    this.gain = this.target = 1;
  }

  // Fills `out` (Float32Array) with what is heard from `time` on, in seconds of the device's clock.
  render(out, time) {
    out.fill(0);
    let at = 0;
    while (at < out.length && this.turns.length) {
      const turn = this.turns[0];
      if (this.made.length === 0 && !this.refill(turn, out.length - at)) {
        if (!this.rest(turn, time + at / this.rate)) break;
        continue;
      }
      const count = Math.min(this.made.length, out.length - at);
      out.set(this.made.subarray(0, count), at);
      this.made = this.made.subarray(count);
      this.listen(turn, out, at, count, time);
      turn.frames += count;
      at += count;
    }
    this.level(out);
    if (this.turns.length) this.report(this.turns[0], time + out.length / this.rate);
  }

  turn(id) {
    let turn = this.turns.find((one) => one.id === id);
    if (!turn) {
      turn = { id, chunks: [], waiting: 0, waited: 0, frames: 0, running: false, ended: false, audible: false, told: -1 };
      this.turns.push(turn);
    }
    return turn;
  }

  // Resamples the next block of the turn; false when there is nothing to play now.
  refill(turn, frames) {
    if (!turn.running) {
      const enough = turn.waiting >= LEAD_S * RATE || turn.waited >= LEAD_S * this.rate || turn.ended;
      if (!enough && turn.waiting) turn.waited += frames;
      if (!enough || !turn.waiting) return false;
      turn.running = true;
    }
    while (turn.waiting && this.made.length === 0) this.made = this.resampler.push(this.block(turn));
    if (this.made.length === 0) {
      this.made = this.resampler.finish();
      turn.running = false;
      turn.waited = 0;
    }
    return this.made.length > 0;
  }

  block(turn) {
    const chunk = turn.chunks[0];
    const count = Math.min(BLOCK, chunk.length);
    const samples = new Float32Array(count);
    for (let at = 0; at < count; at++) samples[at] = chunk[at] / 32768;
    if (count === chunk.length) turn.chunks.shift();
    else turn.chunks[0] = chunk.subarray(count);
    turn.waiting -= count;
    return samples;
  }

  // The turn has nothing to play: it is over (true: look at the next one), or more must come.
  rest(turn, time) {
    if (turn.running || turn.waiting) return false;
    const over = turn.ended;
    if (over) this.turns.shift();
    if (over || (turn.frames && !turn.starved)) {
      this.tell({ type: over ? "drained" : "starved", turn: turn.id, played: turn.frames / this.rate, time });
    }
    turn.starved = true;
    return over;
  }

  listen(turn, out, at, count, time) {
    turn.starved = false;
    if (turn.audible) return;
    for (let index = at; index < at + count; index++) {
      if (Math.abs(out[index]) > AUDIBLE) {
        turn.audible = true;
        this.tell({ type: "audible", turn: turn.id, time: time + index / this.rate });
        return;
      }
    }
  }

  report(turn, time) {
    if (turn.running && time - turn.told >= PROGRESS_S) {
      turn.told = time;
      this.tell({ type: "progress", turn: turn.id, played: turn.frames / this.rate, time });
    }
  }

  // The gain's ramp, and the rest of what was cut.
  level(out) {
    const down = (1 - DUCKED) / (DUCK_S * this.rate);
    const up = (1 - DUCKED) / (UNDUCK_S * this.rate);
    for (let at = 0; at < out.length; at++) {
      if (this.gain > this.target) this.gain = Math.max(this.target, this.gain - down);
      else if (this.gain < this.target) this.gain = Math.min(this.target, this.gain + up);
      out[at] = out[at] * this.gain + this.residue;
      this.residue = Math.abs(this.residue) < 1e-5 ? 0 : this.residue * this.decay;
    }
    this.last = out[out.length - 1];
  }

  forgetMade() {
    this.made = new Float32Array(0);
  }
}
