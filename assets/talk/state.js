// What the panel shows, from what is known. Pure.

export const START = Object.freeze({
  link: "idle", // idle, connecting, open, lost
  microphone: "off", // off, opening, on
  muted: false,
  held: false, // push-to-talk is pressed
  hearing: false, // the server hears speech
  asked: false, // an utterance was handed in, and no sound of its answer was heard yet
  sounding: false, // a reply plays
});

const CHANGES = {
  connecting: { link: "connecting" },
  connected: { link: "open" },
  lost: { link: "lost", held: false, hearing: false, asked: false },
  microphone_opening: { microphone: "opening" },
  microphone_on: { microphone: "on" },
  microphone_off: { microphone: "off", hearing: false },
  muted: { muted: true },
  unmuted: { muted: false },
  held: { held: true, asked: false },
  let_go: { held: false },
  speech_started: { hearing: true },
  speech_stopped: { hearing: false, asked: true },
  dropped: { hearing: false, asked: false },
  asked: { hearing: false, asked: true },
  audible: { asked: false, sounding: true },
  silent: { sounding: false },
  answered: { asked: false },
};

// The facts after `event`.
export function next(facts, event) {
  if (!(event in CHANGES)) throw new Error(`unknown event ${event}`);
  return { ...facts, ...CHANGES[event] };
}

// The one state that is shown: off, connecting, listening, hearing, thinking, speaking, muted or lost.
export function shown(facts) {
  if (facts.link === "lost") return "lost";
  if (facts.link === "connecting" || facts.microphone === "opening") return "connecting";
  if (facts.held || facts.hearing) return "hearing";
  if (facts.sounding) return "speaking";
  if (facts.asked) return "thinking";
  if (facts.microphone === "on") return facts.muted ? "muted" : "listening";
  return "off";
}
