// The WebSocket of the conversation: connects on first use, and again with the same token after a loss.

const BACK_OFF_MS = [500, 1000, 2000, 4000, 8000];
const MOST_WAITING = 1500; // events kept while the first connection comes up: half a minute of sound
const TAKEN_OVER = 4001;
const REFUSED = 1008;

export class Connection {
  // `onEvent(event)`; `onStatus(status)`: connecting, open, lost (it tries again by itself), taken_over, refused.
  constructor({ onEvent, onStatus }) {
    this.onEvent = onEvent;
    this.onStatus = onStatus;
    this.token = null;
    this.status = "idle";
    this.socket = null;
    this.waiting = [];
    this.failures = 0;
    this.timer = null;
    this.count = 0;
  }

  get isOpen() {
    return this.status === "open" && this.socket.readyState === WebSocket.OPEN;
  }

  // Whether what is sent now goes out, at once or when the first connection is up.
  get accepts() {
    return this.isOpen || this.status === "connecting";
  }

  // Another token is another conversation.
  use(token) {
    if (token === this.token) return;
    const wasUsed = this.status !== "idle";
    this.close();
    this.token = token;
    if (wasUsed) this.connect();
  }

  // Connects unless that is done or under way; after a loss, at once.
  connect() {
    if (this.socket || this.token === null || this.status === "refused") return;
    clearTimeout(this.timer);
    this.timer = null;
    if (this.status !== "lost") this.become("connecting");
    const url = new URL("v1/realtime", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.search = new URLSearchParams({ token: this.token }).toString();
    url.hash = "";
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onmessage = ({ data }) => this.socket === socket && this.received(data);
    socket.onclose = ({ code }) => this.socket === socket && this.closed(code);
  }

  // Sends an event, and returns its id. While the first connection comes up it waits; null where it was not sent.
  send(event) {
    const named = { event_id: `panel_${++this.count}`, ...event };
    if (this.isOpen) this.socket.send(JSON.stringify(named));
    else if (this.status === "connecting" && this.waiting.length < MOST_WAITING) this.waiting.push(named);
    else return null;
    return named.event_id;
  }

  // The network went away, as the browser says: do not wait until TCP notices.
  drop() {
    if (this.socket) this.closed(0);
  }

  close() {
    clearTimeout(this.timer);
    this.timer = null;
    this.waiting = [];
    this.status = "idle";
    this.letGo();
  }

  received(data) {
    const event = JSON.parse(data);
    if (event.type === "session.created") {
      this.failures = 0;
      this.become("open");
      for (const waiting of this.waiting.splice(0)) this.socket.send(JSON.stringify(waiting));
    }
    this.onEvent(event);
  }

  closed(code) {
    this.letGo();
    this.waiting = [];
    if (code === TAKEN_OVER || code === REFUSED) {
      this.become(code === TAKEN_OVER ? "taken_over" : "refused");
      return;
    }
    this.become("lost");
    const delay = BACK_OFF_MS[Math.min(this.failures, BACK_OFF_MS.length - 1)];
    this.failures += 1;
    this.timer = setTimeout(() => this.connect(), delay);
  }

  letGo() {
    const socket = this.socket;
    this.socket = null;
    if (socket) socket.close();
  }

  become(status) {
    this.status = status;
    this.onStatus(status);
  }
}
