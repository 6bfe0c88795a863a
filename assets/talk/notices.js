// Sentences to read once, each with a button that puts it away. All of it goes in as text.

const MOST = 3;
const READ_MS = 10_000; // a hint how to use the panel goes by itself after so long

export class Notices {
  constructor(root) {
    this.root = root;
    this.lines = new Map();
    this.timers = new Map();
    this.dismissLabel = "";
  }

  // `passing`: it goes away by itself.
  show(key, text, passing = false) {
    this.clear(key);
    if (passing) this.timers.set(key, setTimeout(() => this.clear(key), READ_MS));
    const line = document.createElement("div");
    line.className = "talk-notice";
    line.dataset.key = key;
    const sentence = document.createElement("span");
    sentence.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "×";
    close.setAttribute("aria-label", this.dismissLabel);
    close.addEventListener("click", () => this.clear(key));
    line.append(sentence, close);
    this.root.append(line);
    this.lines.set(key, line);
    if (this.lines.size > MOST) this.clear(this.lines.keys().next().value);
  }

  clear(key) {
    clearTimeout(this.timers.get(key));
    this.timers.delete(key);
    this.lines.get(key)?.remove();
    this.lines.delete(key);
  }

  // Puts away every line whose key `fits`.
  clearWhere(fits) {
    for (const key of [...this.lines.keys()].filter(fits)) this.clear(key);
  }
}
