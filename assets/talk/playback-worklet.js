// Plays the queue. Messages in: {do: "add", turn, samples}, {do: "end", turn}, {do: "duck", down}, {do: "flush"}.
import { PlaybackQueue } from "./playback-queue.js";

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = new PlaybackQueue(sampleRate, (message) => this.port.postMessage(message));
    this.port.onmessage = ({ data }) => this.obey(data);
  }

  obey(data) {
    if (data.do === "add") this.queue.add(data.turn, data.samples);
    else if (data.do === "end") this.queue.end(data.turn);
    else if (data.do === "duck") this.queue.duck(data.down);
    else if (data.do === "flush") this.queue.flush();
  }

  process(_, outputs) {
    const channels = outputs[0];
    this.queue.render(channels[0], currentTime);
    for (let other = 1; other < channels.length; other++) channels[other].set(channels[0]);
    return true;
  }
}

registerProcessor("spoken-chat-playback", Playback);
