// Sentences to read once, each with a button that puts it away. All of it goes in as text.

const MOST = 3;
const READ_MS = 10_000; // a hint how to use the panel goes by itself after so long

export class Notices {
  constructor(root) {
    this.root = root;
    this.lines = new Map();
    this.dismissLabel = "";
  }

  // `passing`: it goes away by itself.
  show(key, text, passing = false) {
    this.clear(key);
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
    this.lines.set(key, { line, timer: passing ? setTimeout(() => this.clear(key), READ_MS) : 0 });
    if (this.lines.size > MOST) this.clear(this.lines.keys().next().value);
  }

  clear(key) {
    const shown = this.lines.get(key);
    if (!shown) return;
    clearTimeout(shown.timer);
    shown.line.remove();
    this.lines.delete(key);
  }

  // Puts away every line whose key `fits`.
  clearWhere(fits) {
    for (const key of [...this.lines.keys()].filter(fits)) this.clear(key);
  }
}
