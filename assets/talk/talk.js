// One conversation from the page's side: microphone and messages out, replies in. Knows nothing of the page's elements.
import { Connection } from "./connection.js";
import { LatencyClock } from "./latency.js";
import { Microphone } from "./microphone.js";
import { toBase64 } from "./pcm.js";
import { Player } from "./player.js";
import { Replies } from "./replies.js";
import { obey } from "./server-events.js";
import { Sound } from "./sound.js";
import { next, shown, START } from "./state.js";

const TAIL_MS = 100; // sound still taken after push-to-talk is let go: fingers are faster than last syllables
const LEAST_HOLD_MS = 200; // a shorter press is a slip
const MOST_WHISPERS = 100;
const LINKS = ["lost", "taken_over", "refused"]; // what is said of the connection: one at a time

export class Talk {
  // `view` shows what is told: state(name, facts), level(rms), line(key, text or null for its own words), clear(key),
  // refresh(), settled(), putBack(message), takePicture(), connected(); and has `captions` and `waterfall`.
  constructor(view) {
    this.view = view;
    this.facts = START;
    this.detection = "adaptive";
    this.lastPlayed = null;
    this.hold = null;
    this.sent = null; // the message that was not acknowledged yet
    this.picture = null; // handed over, for the utterance that is being said
    this.whispers = new Set(); // ids of events whose refusal means nothing to the person
    this.sound = new Sound();
    this.replies = new Replies();
    this.latency = new LatencyClock();
    this.connection = new Connection({
      onEvent: (event) => obey(this, event),
      onStatus: (status) => this.linked(status),
    });
    this.microphone = new Microphone(this.sound, {
      onChunk: (samples, level, behind) => this.captured(samples, level, behind),
      onEnded: () => this.microphoneLost("missing"),
    });
    this.player = new Player(this.sound, {
      onAudible: (response, at) => this.audible(response, at),
      onDrained: (response, seconds) => this.drained(response, seconds),
    });
  }

  get state() {
    return shown(this.facts);
  }

  become(event) {
    this.facts = next(this.facts, event);
    this.view.state(this.state, this.facts);
  }

  // How turns end, as the page's settings say. By hand, the microphone is open only while somebody holds.
  useDetection(detection) {
    if (!["adaptive", "fixed", "manual"].includes(detection) || detection === this.detection) return;
    this.detection = detection;
    if (detection !== "manual" || this.hold || this.facts.microphone === "off") return;
    this.closeMicrophone();
    if (this.connection.isOpen) this.whisper({ type: "input_audio_buffer.clear" });
  }

  closeMicrophone() {
    this.microphone.stop();
    this.become("microphone_off");
    this.view.level(0);
  }

  // Hands-free talk begins, or goes on after a loss. To be called inside a tap.
  async begin() {
    this.sound.unlock();
    if (!this.reachable()) return;
    await this.listen();
  }

  // Whether there may be a connection to this conversation; the person is told where there never will be.
  reachable() {
    this.connection.connect();
    if (this.connection.status === "refused") this.view.line("refused", null);
    return this.connection.status !== "refused";
  }

  end() {
    this.dropHold();
    this.closeMicrophone();
    if (this.player.playing || this.replies.running) this.stopReply();
    if (this.connection.isOpen) this.whisper({ type: "input_audio_buffer.clear" });
  }

  mute(muted) {
    this.microphone.mute(muted);
    this.become(muted ? "muted" : "unmuted");
  }

  // Whether there is a microphone now.
  async listen() {
    if (!this.microphone.open) {
      this.become("microphone_opening");
      try {
        await this.microphone.start();
      } catch (error) {
        this.microphoneLost(error.cause ?? "busy");
        return false;
      }
      this.become(this.microphone.open ? "microphone_on" : "microphone_off");
    }
    return this.microphone.open;
  }

  microphoneLost(cause) {
    this.dropHold();
    this.become("microphone_off");
    this.view.level(0);
    this.view.line(`mic_${cause}`, null);
  }

  captured(samples, level, behind) {
    this.view.level(this.microphone.muted ? 0 : level);
    if (!(this.hold ? this.hold.streaming : this.detection !== "manual")) return;
    const at = performance.now();
    if (this.connection.send({ type: "input_audio_buffer.append", audio: toBase64(samples) })) {
      this.latency.captured(samples.length, at, behind + this.microphone.latency);
    }
  }

  // Push-to-talk: pressed. To be called inside a tap or a key press.
  async press() {
    if (this.hold?.ending) this.handIn();
    if (this.hold) return;
    this.sound.unlock();
    if (!this.reachable() || this.connection.status === "lost") return;
    const hold = { pressed: performance.now(), released: null, streaming: false, timer: null, ending: false };
    hold.microphoneWasOff = !this.microphone.open;
    hold.wasMuted = this.microphone.muted;
    this.hold = hold;
    this.microphone.mute(false);
    if (this.player.playing || this.replies.running) this.stopReply();
    if (!(await this.listen()) || this.hold !== hold) return;
    if (this.detection !== "manual") this.connection.send({ type: "input.hold", held: true });
    this.connection.send({ type: "input_audio_buffer.clear" });
    hold.streaming = true;
    this.become("held");
    this.handPictureOver();
  }

  // Let go: the sound so far, and a tail, is the utterance.
  release() {
    const hold = this.hold;
    if (!hold || hold.ending) return;
    hold.released = performance.now();
    hold.ending = true;
    if (!hold.streaming || hold.released - hold.pressed < LEAST_HOLD_MS) {
      this.dropHold();
      this.view.line("hold_longer", null);
      return;
    }
    hold.timer = setTimeout(() => this.handIn(), TAIL_MS);
  }

  handIn() {
    const hold = this.hold;
    this.become("asked");
    this.connection.send({ type: "input_audio_buffer.commit" });
    const request = this.connection.send({ type: "response.create" });
    this.latency.handedIn(hold.released, request);
    this.endHold();
  }

  // What was said while holding is not handed in.
  dropHold() {
    if (!this.hold) return;
    if (this.hold.streaming) this.whisper({ type: "input_audio_buffer.clear" });
    this.endHold();
  }

  endHold() {
    const { timer, streaming, microphoneWasOff, wasMuted } = this.hold;
    clearTimeout(timer);
    this.hold = null;
    this.microphone.mute(wasMuted);
    if (streaming && this.detection !== "manual") this.connection.send({ type: "input.hold", held: false });
    this.become("let_go");
    if (microphoneWasOff) {
      this.closeMicrophone();
    }
  }

  // Sends {text, picture}; false when it cannot go out now. To be called inside a tap or a key press.
  say(message) {
    this.sound.unlock();
    if (!this.reachable() || !this.connection.accepts) return false;
    if (this.player.playing || this.replies.running) this.stopReply();
    else if (this.sent) this.whisper({ type: "response.cancel" }); // its answer began and word of it is on its way
    const { item, creation } = this.addItem([
      ...(message.picture ? [{ type: "input_image", image_url: message.picture.url }] : []),
      ...(message.text ? [{ type: "input_text", text: message.text }] : []),
    ]);
    const request = this.connection.send({ type: "response.create" });
    this.latency.handedIn(performance.now(), request);
    this.sent = { item, creation, request, message };
    this.view.captions.begin(item, message.picture?.url);
    this.view.captions.understood(item, message.text, "");
    this.become("asked");
    return true;
  }

  addItem(content) {
    const item = `item_${randomName()}`;
    const message = { id: item, type: "message", role: "user", content };
    return { item, creation: this.connection.send({ type: "conversation.item.create", item: message }) };
  }

  // A picture that waited goes with what is being said.
  handPictureOver() {
    const picture = this.view.takePicture();
    if (!picture) return;
    this.addItem([{ type: "input_image", image_url: picture.url }]);
    this.picture = picture;
  }

  // Silences the reply here. Returns the seconds of it that were heard, or -1 when nothing was cut.
  silence() {
    const cut = this.player.flush();
    for (const [response, seconds] of cut) this.replies.cut(response, seconds);
    if (!cut.length) return -1;
    this.become("silent");
    this.view.captions.cut(cut[0][0]);
    return cut[0][1];
  }

  // Silences the reply and stops it where it is made.
  stopReply() {
    this.silence();
    if (this.replies.running) this.replies.cut(this.replies.latest.response, 0);
    this.tellPlayed(this.replies.latest);
    this.whisper({ type: "response.cancel" });
    if (this.replies.latest) this.view.captions.cut(this.replies.latest.response);
    this.become("answered");
  }

  tellPlayed(reply) {
    if (!reply?.item || reply.playedMs === null) return;
    const audio_end_ms = reply.playedMs;
    this.whisper({ type: "conversation.item.truncate", item_id: reply.item, content_index: 0, audio_end_ms });
  }

  audible(response, at) {
    if (!this.replies.isCut(response)) this.become("audible");
    const turn = this.replies.of(response).turn;
    const report = this.latency.heard(response, at);
    if (report === null || turn === null) return;
    this.lastPlayed = { turn_id: turn, ...report };
    if (this.connection.isOpen) this.whisper({ type: "turn.played", ...this.lastPlayed });
  }

  drained(response, seconds) {
    this.replies.heardWhole(response, seconds);
    if (this.player.playing) return;
    this.become("silent");
    if (!this.replies.running) this.become("answered");
  }

  // Sends what keeps the server informed: it may be too late for that, as when the reply is over by then.
  whisper(event) {
    const id = this.connection.send(event);
    if (id === null) return;
    this.whispers.add(id);
    if (this.whispers.size > MOST_WHISPERS) this.whispers.delete(this.whispers.values().next().value);
  }

  linked(status) {
    if (status === "connecting") {
      this.latency.restart();
      this.become("connecting");
    } else if (status === "open") {
      this.become("connected");
      for (const key of LINKS) this.view.clear(key);
      this.view.connected();
    } else {
      this.unlinked(status);
    }
  }

  unlinked(status) {
    const held = this.hold !== null;
    this.dropHold();
    this.latency.restart();
    this.replies.allDone();
    for (const response of this.replies.byResponse.keys()) this.player.end(response);
    this.become("lost");
    for (const key of LINKS) this.view.clear(key);
    this.view.line(status, null);
    if (held && status === "lost") this.view.line("hold_lost", null);
    if (this.sent) this.takeBack();
    this.view.captions.dropUnfinished();
    if (status !== "lost") this.closeMicrophone();
  }

  // A message that was not answered for goes back to where it was written.
  takeBack() {
    this.view.putBack(this.sent.message);
    this.view.captions.drop(this.sent.item);
    this.sent = null;
  }
}

function randomName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
