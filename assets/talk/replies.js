// Which reply is which: the response's id on the wire, its turn, and its item; what was cut, and how much of it played.

const MOST_KEPT = 50;

export class Replies {
  constructor() {
    this.byResponse = new Map();
    this.latest = null;
  }

  // The reply of `response`, made known on first sight.
  of(response) {
    let reply = this.byResponse.get(response);
    if (!reply) {
      reply = { response, turn: null, said: null, item: null, done: false, wholeMs: null, playedMs: null };
      this.byResponse.set(response, reply);
      if (this.byResponse.size > MOST_KEPT) this.byResponse.delete(this.byResponse.keys().next().value);
    }
    return reply;
  }

  // The reply of `turn`, to what was said in the item `said`.
  started(response, turn, said) {
    this.latest = this.of(response);
    this.latest.turn = turn;
    this.latest.said = said;
  }

  // What was said in that item is no turn after all, and the reply to it is none.
  voided(said) {
    for (const reply of this.byResponse.values()) if (reply.said === said) reply.done = true;
  }

  ofTurn(turn) {
    return [...this.byResponse.values()].find((reply) => reply.turn === turn) ?? null;
  }

  // Whether the latest reply is still being made.
  get running() {
    return this.latest !== null && !this.latest.done && this.latest.playedMs === null;
  }

  // Only `seconds` of it were played; what still comes of it is not to be heard or shown.
  cut(response, seconds) {
    const reply = this.of(response);
    reply.playedMs ??= reply.wholeMs ?? Math.round(seconds * 1000);
    return reply;
  }

  // All `seconds` of its sound were played.
  heardWhole(response, seconds) {
    this.of(response).wholeMs = Math.round(seconds * 1000);
  }

  isCut(response) {
    return this.byResponse.get(response)?.playedMs != null;
  }

  // The connection broke: nothing more comes of any of them.
  allDone() {
    for (const reply of this.byResponse.values()) reply.done = true;
  }
}
