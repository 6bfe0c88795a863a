// The microphone as chunks of PCM16 at the wire's rate, or the reason why there is none.
import { Sound } from "./sound.js";

const ASKED = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

// `cause`: insecure, unsupported, denied, missing or busy.
export class MicrophoneError extends Error {
  constructor(cause) {
    super(`no microphone: ${cause}`);
    this.cause = cause;
  }
}

export class Microphone {
  // `onChunk(samples, level, behind)`: 20 ms each. `onEnded()`: the device went away.
  constructor(sound, { onChunk, onEnded }) {
    this.sound = sound;
    this.onChunk = onChunk;
    this.onEnded = onEnded;
    this.muted = false;
    this.stream = null;
    this.opening = null;
    this.attempt = 0;
  }

  get open() {
    return this.stream !== null;
  }

  // Seconds that the device itself keeps sound back, where the browser says so.
  get latency() {
    return this.stream?.getAudioTracks()[0].getSettings().latency || 0;
  }

  // Raises MicrophoneError. Closed while it opens, it stays closed.
  async start() {
    if (this.open) return;
    this.opening ??= this.connect();
    const mine = this.opening;
    try {
      await mine;
    } finally {
      if (this.opening === mine) this.opening = null;
    }
  }

  stop() {
    this.opening = null;
    this.attempt += 1;
    if (!this.stream) return;
    this.node.port.onmessage = null;
    this.node.port.postMessage("close");
    this.node.disconnect();
    this.source.disconnect();
    for (const track of this.stream.getTracks()) {
      track.onended = null;
      track.stop();
    }
    this.stream = this.node = this.source = null;
  }

  // Muted, the microphone gives silence, so that the stream's time goes on.
  mute(muted) {
    this.muted = muted;
    for (const track of this.stream?.getAudioTracks() ?? []) track.enabled = !muted;
  }

  async connect() {
    const attempt = ++this.attempt;
    const asked = this.ask();
    const [stream, context] = await Promise.all([asked, this.context(asked)]);
    if (attempt !== this.attempt) {
      for (const track of stream.getTracks()) track.stop();
      return;
    }
    this.source = context.createMediaStreamSource(stream);
    this.node = new AudioWorkletNode(context, "spoken-chat-capture", { numberOfInputs: 1, outputChannelCount: [1] });
    this.node.port.onmessage = ({ data }) => this.onChunk(data.samples, data.level, data.behind);
    this.source.connect(this.node);
    this.node.connect(context.destination); // it puts out silence; unconnected nodes are not run everywhere
    for (const track of stream.getAudioTracks()) {
      track.onended = () => {
        this.stop();
        this.onEnded();
      };
    }
    this.stream = stream;
    this.mute(this.muted);
  }

  async ask() {
    if (!window.isSecureContext) throw new MicrophoneError("insecure");
    if (!navigator.mediaDevices?.getUserMedia || !Sound.supported) throw new MicrophoneError("unsupported");
    try {
      return await navigator.mediaDevices.getUserMedia({ audio: ASKED });
    } catch (error) {
      throw new MicrophoneError(causeOf(error));
    }
  }

  // Where the sound cannot be set up, a microphone that was granted is let go.
  async context(asked) {
    try {
      return await this.sound.ready();
    } catch (error) {
      console.error("microphone:", error);
      const stream = await asked;
      for (const track of stream.getTracks()) track.stop();
      throw new MicrophoneError("unsupported");
    }
  }
}

function causeOf(error) {
  if (error.name === "NotAllowedError" || error.name === "SecurityError") return "denied";
  if (error.name === "NotFoundError" || error.name === "OverconstrainedError") return "missing";
  return "busy";
}
