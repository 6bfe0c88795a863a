// The voice panel: joins the conversation (talk.js) with the elements of the page. Runs inside a gr.HTML component,
// whose value is the JSON text made by spoken_chat/ui/panel.py.
import { Captions } from "./captions.js";
import { Composer } from "./composer.js";
import { holdByButton, holdBySpace } from "./hold.js";
import { Notices } from "./notices.js";
import { Talk } from "./talk.js";
import { Waterfall } from "./waterfall.js";

const REFRESH_MS = 150; // wishes to redraw that come this close together are one
const HINTS = ["hold_longer", "hold_lost", "text_too_long", "not_an_image", "image_too_large", "not_ready"];
const LOUD = 0.25; // RMS at which the level's ring is full

let running = null;

// `element`, `props` and `watch` are Gradio's own of the component; `refresh()` asks for the rest of the page anew.
export function start(host) {
  running?.close();
  running = new Panel(host);
}

class Panel {
  constructor({ element, props, watch, refresh }) {
    this.redraw = refresh;
    this.conversation = null;
    this.closing = new AbortController();
    this.words = {};
    this.ready = false;
    this.currentLevel = 0;
    this.drawing = 0;
    this.refreshing = 0;
    this.parts = partsOf(element);
    this.notices = new Notices(this.parts.notices);
    this.captions = new Captions(this.parts.captions, this.words);
    this.waterfall = new Waterfall(this.parts.waterfall, this.words);
    this.talk = new Talk(this);
    this.composer = new Composer(this.parts, this.parts.panel, {
      onSend: (message) => this.send(message),
      onTrouble: (key, values = {}) => this.line(key, filled(this.words[key], values)),
      signal: this.closing.signal,
    });
    this.listenToPage();
    this.expose();
    watch("value", () => this.use(props.value));
    if (props.value) this.use(props.value);
  }

  close() {
    this.closing.abort();
    this.talk.microphone.stop();
    this.talk.player.flush();
    this.talk.connection.close();
    clearTimeout(this.refreshing);
    cancelAnimationFrame(this.drawing);
  }

  use(value) {
    if (!value) return;
    const { token, conversation, language, words, ready, detection, limits } = JSON.parse(value);
    if (this.conversation !== null && this.conversation !== conversation) this.startOver();
    this.conversation = conversation;
    this.words = words;
    this.ready = ready;
    this.captions.useWords({ ...words, hint: detection === "manual" ? words.hint_by_hand : words.hint });
    this.waterfall.useWords(words);
    this.composer.limits = limits;
    this.notices.dismissLabel = words.dismiss;
    this.talk.useDetection(detection);
    this.talk.connection.use(token);
    this.label();
    this.state(this.talk.state, this.talk.facts);
    this.parts.panel.lang = language;
    this.parts.panel.hidden = false;
  }

  // Another conversation: nothing of the one before stays in the panel.
  startOver() {
    this.captions.clear();
    this.waterfall.clear();
    this.notices.clearWhere(() => true);
  }

  label() {
    const { text, send, attach, remove, stop, hold, thumbImage } = this.parts;
    text.placeholder = this.words.write;
    const named = { text: "write", send: "send", attach: "attach", remove: "remove_image", stop: "stop", hold: "hold" };
    for (const [part, word] of Object.entries(named)) this.parts[part].setAttribute("aria-label", this.words[word]);
    for (const part of [send, attach, stop, hold]) part.title = part.getAttribute("aria-label");
    remove.title = this.words.remove_image;
    thumbImage.alt = this.words.picture;
    this.parts.spaceHint.textContent = this.words.space_hint;
    this.parts.stopWord.textContent = this.words.stop;
    this.parts.holdWord.textContent = this.words.hold_short;
    this.parts.dropHint.textContent = this.words.drop_here;
  }

  listenToPage() {
    const { signal } = this.closing;
    const { button, mute, hold, stop } = this.parts;
    const on = (element, name, act) => element.addEventListener(name, act, { signal });
    on(button, "click", () => this.pressed());
    on(mute, "click", () => this.talk.mute(!this.talk.facts.muted));
    on(stop, "click", () => this.talk.stopReply());
    for (const one of [button, mute, stop]) {
      // Clicked by mouse, it must not keep the focus: the space bar is for talking then.
      on(one, "click", (event) => event.detail > 0 && one.blur());
    }
    const press = () => this.talk.press();
    const release = () => this.talk.release();
    holdBySpace({ enabled: () => this.ready, press, release, signal });
    holdByButton(hold, { enabled: () => this.ready, press, release, signal });
    holdByButton(button, { enabled: () => this.ready && this.byHand && !this.gone, press, release, signal });
    for (const name of ["pointerdown", "pointerup", "keydown"]) {
      // Whatever is tapped first lets sound out, also of a reply that something else on the page asks for.
      document.addEventListener(name, () => this.talk.sound.unlock(), { signal, capture: true, passive: true });
    }
    on(window, "offline", () => this.talk.connection.drop());
    on(window, "online", () => this.talk.connection.status === "lost" && this.talk.connection.connect());
  }

  // Whether the app does not know the conversation any more.
  get gone() {
    return this.talk.connection.status === "refused";
  }

  get byHand() {
    return this.talk.detection === "manual";
  }

  pressed() {
    if (!this.ready) return;
    if (this.gone) {
      location.reload(); // a page has one conversation, and Gradio's side of this one is gone too
      return;
    }
    if (this.byHand) return;
    if (this.talk.facts.microphone !== "off" && this.talk.facts.link !== "lost") this.talk.end();
    else this.talk.begin();
  }

  send(message) {
    if (this.ready) return this.talk.say(message);
    this.line("not_ready", null);
    return false;
  }

  // What Gradio's side and the tests use.
  expose() {
    const { talk } = this;
    window.spokenChat = {
      // Silences the reply and returns the seconds of it that were heard, or -1 when nothing was cut off.
      stop: () => talk.silence(),
      // An utterance is handed in now, by another way than the panel's own.
      anchor() {
        talk.connection.connect(); // the answer to a recording is heard over the same connection
        talk.latency.handedIn(performance.now());
      },
      get playing() {
        return talk.player.playing;
      },
      get secondsQueued() {
        return talk.player.secondsQueued;
      },
      get state() {
        return talk.state;
      },
      get lastPlayed() {
        return talk.lastPlayed;
      },
      get level() {
        return running?.currentLevel ?? 0;
      },
    };
  }

  // From here on: what Talk tells.

  state(name, facts) {
    const { panel, button, state, mute, stop } = this.parts;
    const active = facts.microphone !== "off";
    panel.dataset.state = name;
    panel.dataset.ready = String(this.ready);
    panel.dataset.byHand = String(this.byHand);
    panel.dataset.talking = String(active);
    const word = !this.ready ? "loading" : this.gone ? "refused" : name === "off" && this.byHand ? "off_by_hand" : name;
    const said = this.words[`state_${word}`] ?? "";
    if (state.textContent !== said) state.textContent = said;
    button.disabled = !this.ready;
    const act = this.gone ? "renew" : facts.link === "lost" ? "again" : this.byHand ? "hold" : active ? "end" : "begin";
    button.setAttribute("aria-label", this.words[act] ?? "");
    button.title = this.words[act] ?? "";
    button.setAttribute("aria-pressed", String(active));
    mute.disabled = !active;
    mute.setAttribute("aria-pressed", String(facts.muted));
    const muteWord = this.words[facts.muted ? "unmute" : "mute"] ?? "";
    mute.setAttribute("aria-label", muteWord);
    mute.title = muteWord;
    this.parts.muteWord.textContent = muteWord;
    stop.disabled = !(facts.sounding || facts.asked);
  }

  level(rms) {
    this.currentLevel = rms;
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      const share = Math.min(1, Math.sqrt(this.currentLevel / LOUD));
      this.parts.panel.style.setProperty("--level", share.toFixed(3));
    });
  }

  line(key, text) {
    this.notices.show(key, text ?? this.words[key] ?? key, HINTS.includes(key));
  }

  clear(key) {
    this.notices.clear(key);
  }

  // A turn goes on: what was wrong with an earlier one is old news.
  settled() {
    this.notices.clearWhere((key) => key.startsWith("error_") || HINTS.includes(key));
  }

  refresh() {
    this.refreshing ||= setTimeout(() => {
      this.refreshing = 0;
      this.redraw();
    }, REFRESH_MS);
  }

  putBack(message) {
    this.composer.putBack(message);
  }

  takePicture() {
    return this.composer.takePicture();
  }

  connected() {
    this.composer.retry();
  }
}

// `sentence` with each {name} in it replaced by its value.
function filled(sentence, values) {
  return sentence?.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole) ?? null;
}

function partsOf(element) {
  const parts = {};
  for (const part of element.querySelectorAll("[data-part]")) parts[part.dataset.part] = part;
  return parts;
}
