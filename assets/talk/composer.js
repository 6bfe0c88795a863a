// Where a message is written and an image is added: by the button, by pasting, by dropping.
import { picture, PictureError } from "./picture.js";

const KEPT = "spoken-chat-text";

export class Composer {
  // `parts`: form, text, file, attach, thumb, thumbImage, remove; `dropZone` takes dropped files.
  // `onSend(message)`: false when it cannot go out now; then it stays where it is, and goes out with `retry()`.
  // `onTrouble(key, values)`: what is wrong, and the numbers to put into its sentence.
  constructor(parts, dropZone, { onSend, onTrouble, signal }) {
    this.parts = parts;
    this.onSend = onSend;
    this.onTrouble = onTrouble;
    this.picture = null;
    this.limits = { image_max_bytes: null, text_max_chars: null };
    this.waits = false;
    const on = (element, name, act) => element.addEventListener(name, act, { signal });
    on(parts.form, "submit", (event) => {
      event.preventDefault();
      this.send();
    });
    on(parts.text, "keydown", (event) => {
      // While an input method composes a word, Enter chooses it.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.send();
    });
    on(parts.text, "input", () => this.fit());
    on(parts.text, "paste", (event) => this.taken(event, event.clipboardData));
    on(parts.attach, "click", () => parts.file.click());
    on(parts.file, "change", () => {
      if (parts.file.files.length) this.add(parts.file.files[0]);
      parts.file.value = "";
    });
    on(parts.remove, "click", () => {
      this.attach(null);
      parts.text.focus();
    });
    on(dropZone, "dragover", (event) => this.over(event, true));
    on(dropZone, "dragleave", (event) => this.over(event, dropZone.contains(event.relatedTarget)));
    on(dropZone, "drop", (event) => {
      this.over(event, false);
      this.taken(event, event.dataTransfer);
    });
    this.dropZone = dropZone;
    window.addEventListener("pagehide", () => stored((storage) => storage.setItem(KEPT, parts.text.value)), { signal });
    parts.text.value ||= stored((storage) => storage.getItem(KEPT)) ?? "";
    this.fit();
  }

  send() {
    const text = this.parts.text.value.trim();
    if (!text && !this.picture) return;
    const most = this.limits.text_max_chars;
    if (most !== null && text.length > most) {
      this.onTrouble("text_too_long", { length: text.length, most });
      return;
    }
    this.waits = !this.onSend({ text, picture: this.picture });
    if (this.waits) return;
    this.parts.text.value = "";
    this.attach(null);
    this.fit();
  }

  // The way is free again: what was to go out goes.
  retry() {
    if (this.waits) this.send();
  }

  // A message comes back, unless something new was written meanwhile.
  putBack({ text, picture }) {
    if (!this.parts.text.value) this.parts.text.value = text;
    if (!this.picture) this.attach(picture);
    this.fit();
  }

  // The image, for something that is spoken; none is left here.
  takePicture() {
    const taken = this.picture;
    if (taken) this.attach(null);
    return taken;
  }

  taken(event, data) {
    const file = [...(data?.files ?? [])].find((one) => one.type.startsWith("image/")) ?? data?.files?.[0];
    if (!file) return;
    event.preventDefault();
    this.add(file);
  }

  over(event, inside) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.dropZone.dataset.drop = String(inside);
  }

  async add(file) {
    try {
      this.attach(await picture(file, this.limits.image_max_bytes));
    } catch (error) {
      if (!(error instanceof PictureError)) throw error;
      this.onTrouble(error.cause);
    }
  }

  attach(added) {
    this.picture = added;
    this.parts.thumb.hidden = !added;
    if (added) this.parts.thumbImage.src = added.url;
    else this.parts.thumbImage.removeAttribute("src");
  }

  // As high as its text, up to the limit of the style sheet.
  fit() {
    this.parts.text.style.height = "auto";
    this.parts.text.style.height = `${this.parts.text.scrollHeight}px`;
  }
}

// What `act` returns of the tab's own storage, which outlives a reload; null where the browser gives a page none.
function stored(act) {
  try {
    return act(window.sessionStorage);
  } catch (error) {
    if (error instanceof DOMException) return null;
    throw error;
  }
}
