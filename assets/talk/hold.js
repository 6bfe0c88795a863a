// Push-to-talk by hand: the space bar anywhere outside text fields, or a button that is held down.

const OWN_USE = "input, textarea, select, [contenteditable], [role=textbox], [role=slider], [role=combobox]";
const PRESSABLE = "button, a[href], summary, audio, video, [role=button], [role=tab], [role=option], [role=listbox]";

// Holding space presses. `enabled()` says whether that is wanted now.
export function holdBySpace({ enabled, press, release, signal }) {
  let held = false;
  const letGo = () => {
    if (held) release();
    held = false;
  };
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.code !== "Space" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (held) event.preventDefault();
      if (held || event.repeat || isTaken(event.target) || !enabled()) return;
      event.preventDefault();
      held = true;
      press();
    },
    { signal },
  );
  document.addEventListener(
    "keyup",
    (event) => {
      if (event.code !== "Space" || !held) return;
      event.preventDefault();
      letGo();
    },
    { signal },
  );
  window.addEventListener("blur", letGo, { signal });
}

// Holding `button` presses: by a finger, the mouse, or Enter and space on it. `enabled()` as above.
export function holdByButton(button, { enabled, press, release, signal }) {
  let held = false;
  const down = (event) => {
    if (held || !enabled()) return;
    held = true;
    event.preventDefault();
    press();
  };
  const up = () => {
    if (held) release();
    held = false;
  };
  const on = (name, act) => button.addEventListener(name, act, { signal });
  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    down(event);
    if (held) button.setPointerCapture(event.pointerId); // the finger may slip off
  });
  on("pointerup", up);
  on("pointercancel", up);
  on("keydown", (event) => {
    if (!event.repeat && (event.code === "Space" || event.key === "Enter")) down(event);
  });
  on("keyup", (event) => {
    if (event.code === "Space" || event.key === "Enter") up();
  });
  on("blur", up);
  on("contextmenu", (event) => enabled() && event.preventDefault()); // what a long touch would open
}

// Whether the space bar means something else there.
function isTaken(target) {
  if (!(target instanceof Element)) return false;
  return target.closest(OWN_USE) !== null || target.closest(PRESSABLE) !== null;
}
