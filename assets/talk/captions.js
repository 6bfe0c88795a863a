// What was said, by both sides: the exchange that is going on, in large letters. All of it goes in as text.

export class Captions {
  constructor(root, words) {
    this.root = root;
    this.words = words;
    this.exchanges = [];
  }

  useWords(words) {
    this.words = words;
    this.draw();
  }

  isLatest(item) {
    return this.latest?.item === item;
  }

  get latest() {
    return this.exchanges.at(-1) ?? null;
  }

  // Something new is being said. `picture`: address of an image that goes with it.
  begin(item, picture = null) {
    if (this.exchanges.some((one) => one.item === item)) return;
    const exchange = { item, response: null, stable: "", tail: "", picture, reply: "", mood: "", cut: false };
    this.exchanges.push(exchange);
    if (this.exchanges.length > 3) this.exchanges.shift();
    this.draw();
  }

  // What was understood of it: `stable` stays, `tail` may change.
  understood(item, stable, tail) {
    this.change((one) => one.item === item, { stable, tail });
  }

  // It is not a turn after all: what was there before it is shown again.
  drop(item) {
    this.exchanges = this.exchanges.filter((one) => one.item !== item);
    this.draw();
  }

  // Nothing is known of what was being said any more: only what has words or a reply stays.
  dropUnfinished() {
    this.exchanges = this.exchanges.filter((one) => one.response || one.stable || one.tail || one.picture);
    this.draw();
  }

  // Another conversation begins.
  clear() {
    this.exchanges = [];
    this.draw();
  }

  // The reply to it is `response`.
  answering(item, response) {
    this.begin(item);
    this.change((one) => one.item === item, { response });
  }

  replied(response, text) {
    const exchange = this.exchanges.find((one) => one.response === response);
    if (exchange) this.change((one) => one === exchange, { reply: exchange.reply + text });
  }

  mood(response, mood) {
    this.change((one) => one.response === response, { mood });
  }

  // The reply was stopped before its end.
  cut(response) {
    this.change((one) => one.response === response, { cut: true });
  }

  // The reply failed: without words there is none.
  failed(response) {
    const exchange = this.exchanges.find((one) => one.response === response);
    if (!exchange) return;
    if (exchange.reply) this.cut(response);
    else this.change((one) => one === exchange, { response: null, mood: "" });
  }

  // What was said before this connection, as [{role, text}].
  restore(items) {
    if (this.exchanges.length || !items.length) return;
    const reply = items.at(-1).role === "assistant" ? items.at(-1).text : "";
    const said = items.findLast((one) => one.role === "user")?.text ?? "";
    this.exchanges = [
      { item: null, response: null, stable: said, tail: "", picture: null, reply, mood: "", cut: false },
    ];
    this.draw();
  }

  change(which, fields) {
    const exchange = this.exchanges.find(which);
    if (!exchange) return;
    Object.assign(exchange, fields);
    if (exchange === this.latest) this.draw();
  }

  draw() {
    const exchange = this.latest;
    this.root.dataset.empty = String(!exchange);
    if (!exchange) {
      this.root.replaceChildren(made("p", "talk-hint", this.words.hint ?? ""));
      return;
    }
    const parts = [this.saying(exchange)];
    if (exchange.reply || exchange.mood || exchange.response) parts.push(this.answer(exchange));
    this.root.replaceChildren(...parts);
    this.root.scrollTop = this.root.scrollHeight;
    this.root.dataset.more = String(this.root.scrollTop > 0);
  }

  saying({ stable, tail, picture }) {
    const block = made("div", "talk-said");
    block.dataset.who = "user";
    block.append(made("span", "talk-who", this.words.you));
    if (picture) {
      const image = made("img", "talk-picture");
      image.src = picture;
      image.alt = this.words.picture;
      block.append(image);
    }
    const line = made("p", "talk-line");
    line.append(made("span", "talk-stable", stable), made("span", "talk-tail", tail && stable ? joined(stable, tail) : tail));
    if (!stable && !tail && !picture) line.append(made("span", "talk-dots", "…"));
    if (line.textContent) block.append(line);
    return block;
  }

  answer({ reply, mood, cut }) {
    const block = made("div", "talk-said");
    block.dataset.who = "reply";
    block.dataset.cut = String(cut);
    const who = made("span", "talk-who", this.words.reply);
    if (mood) who.append(made("em", "talk-mood", mood));
    if (cut) who.append(made("em", "talk-cut", this.words.stopped));
    block.append(who);
    if (reply) block.append(made("p", "talk-line", reply.trimStart()));
    else if (!cut) block.append(made("p", "talk-line talk-dots", "…"));
    return block;
  }
}

// Chinese words stand side by side; others need a space.
function joined(stable, tail) {
  const apart = /\s$/.test(stable) || /^\s/.test(tail) || /[\u3000-\u9fff\uff00-\uffef]$/.test(stable);
  return apart ? tail : ` ${tail}`;
}

function made(tag, classes, text = "") {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  return element;
}
