// The one AudioContext of the page, at the device's own rate, with both worklets loaded.
// Firefox does not connect nodes of different rates, so there is never a second one.

const WORKLETS = ["capture-worklet.js", "playback-worklet.js"];

export class Sound {
  constructor() {
    this.context = null;
    this.loaded = null;
  }

  static get supported() {
    return typeof AudioContext === "function" && typeof AudioWorkletNode === "function";
  }

  // To be called inside a tap or a key press: browsers, iOS first among them, only let sound out after one.
  unlock() {
    if (!Sound.supported || !window.isSecureContext) return;
    this.context ??= new AudioContext({ latencyHint: "interactive" });
    if (this.context.state !== "running") this.context.resume().catch(logged);
    this.ready().catch(logged);
  }

  // The context, its worklets loaded.
  async ready() {
    if (!Sound.supported) throw new Error("this browser has no AudioWorklet");
    this.context ??= new AudioContext({ latencyHint: "interactive" });
    this.loaded ??= this.load();
    await this.loaded;
    return this.context;
  }

  async load() {
    try {
      for (const name of WORKLETS) await this.context.audioWorklet.addModule(new URL(name, import.meta.url));
    } catch (error) {
      this.loaded = null; // the next use tries again
      throw error;
    }
  }

  // performance.now() at which what the context plays at `time` leaves the device, as well as the browser knows.
  heardAt(time) {
    const latency = this.context.outputLatency || this.context.baseLatency || 0;
    return performance.now() - (this.context.currentTime - time - latency) * 1000;
  }
}

function logged(error) {
  console.error("sound:", error);
}
