// The microphone at the device's rate, as chunks of 20 ms at the wire's rate with their level.
import { Resampler } from "./resampler.js";

const RATE = 24000;
const CHUNK = 480;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, RATE);
    this.mono = new Float32Array(128);
    this.chunk = new Int16Array(CHUNK);
    this.filled = 0;
    this.energy = 0;
    this.open = true;
    this.port.onmessage = () => {
      this.open = false;
    };
  }

  process(inputs) {
    const channels = inputs[0];
    if (this.open && channels.length) this.take(this.resampler.push(this.mixed(channels)));
    return this.open;
  }

  mixed(channels) {
    if (channels.length === 1) return channels[0];
    if (this.mono.length !== channels[0].length) this.mono = new Float32Array(channels[0].length);
    this.mono.fill(0);
    for (const channel of channels) {
      for (let at = 0; at < channel.length; at++) this.mono[at] += channel[at] / channels.length;
    }
    return this.mono;
  }

  take(samples) {
    for (let at = 0; at < samples.length; at++) {
      const sample = Math.max(-1, Math.min(1, samples[at]));
      this.energy += sample * sample;
      this.chunk[this.filled++] = Math.round(sample * 32767);
      if (this.filled === CHUNK) this.send(samples.length - at - 1);
    }
  }

  // `behind`: seconds of sound that the device had already given when the chunk's last sample was complete.
  send(left) {
    const level = Math.sqrt(this.energy / CHUNK);
    const behind = this.resampler.behind + left / RATE;
    this.port.postMessage({ samples: this.chunk, level, behind }, [this.chunk.buffer]);
    this.chunk = new Int16Array(CHUNK);
    this.filled = 0;
    this.energy = 0;
  }
}

registerProcessor("spoken-chat-capture", Capture);
