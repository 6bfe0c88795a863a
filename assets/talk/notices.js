// Sentences to read once, each with a button that puts it away. All of it goes in as text.

const MOST = 3;

export class Notices {
  constructor(root) {
    this.root = root;
    this.lines = new Map();
    this.dismissLabel = "";
  }

  show(key, text) {
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
    this.lines.set(key, line);
    if (this.lines.size > MOST) this.clear(this.lines.keys().next().value);
  }

  clear(key) {
    this.lines.get(key)?.remove();
    this.lines.delete(key);
  }
}
