// What each of the server's events does to the conversation on the page. The protocol has more; the page needs no others.
import { fromBase64 } from "./pcm.js";

// Does what `event` says. Events that the page does not know are left alone.
export function obey(talk, event) {
  if (Object.hasOwn(HANDLERS, event.type)) HANDLERS[event.type](talk, event);
}

const CLOSING = ["taken_over", "session_gone"]; // the close code that follows says the same

const HANDLERS = {
  "conversation.restored"(talk, { items, detection }) {
    // A connection that broke while push-to-talk was pressed left the server listening by hand.
    if (detection === "manual" && talk.detection !== "manual") talk.connection.send({ type: "input.hold", held: false });
    talk.view.captions.restore(items);
    talk.view.refresh();
  },
  "input_audio_buffer.speech_started"(talk, { item_id }) {
    talk.become("speech_started");
    talk.handPictureOver();
    talk.view.captions.begin(item_id, talk.picture?.url);
  },
  "input_audio_buffer.speech_stopped"(talk) {
    talk.become("speech_stopped");
  },
  "input_audio_buffer.committed"(talk, { item_id }) {
    talk.view.captions.begin(item_id, talk.picture?.url);
  },
  "input.caption"(talk, { item_id, stable, tail }) {
    talk.view.captions.begin(item_id, talk.picture?.url);
    talk.view.captions.understood(item_id, stable, tail);
  },
  "conversation.item.added"(talk, { item }) {
    const said = item.content.map((part) => part.text ?? part.transcript ?? "").join(" ").trim();
    if (item.role === "user" && said) talk.view.captions.understood(item.id, said, "");
  },
  "input.dropped"(talk, { item_id }) {
    talk.replies.voided(item_id);
    if (talk.view.captions.isLatest(item_id)) talk.become("dropped");
    talk.view.captions.drop(item_id);
    talk.view.refresh();
  },
  "conversation.item.input_audio_transcription.completed"(talk, { item_id, transcript }) {
    talk.view.captions.understood(item_id, transcript, "");
    talk.view.refresh();
  },
  "turn.started"(talk, { turn_id, kind, item_id, response_id, speech_end_ms }) {
    talk.replies.started(response_id, turn_id, item_id);
    talk.latency.started(response_id, speech_end_ms);
    if (kind === "typed") talk.sent = null;
    talk.picture = null;
    talk.view.captions.answering(item_id, response_id);
    talk.view.waterfall.begin(turn_id);
    talk.view.settled();
    talk.become("asked");
    talk.view.refresh();
  },
  "response.output_item.added"(talk, { response_id, item }) {
    talk.replies.of(response_id).item = item.id;
  },
  "response.output_audio.delta"(talk, { response_id, item_id, delta }) {
    talk.replies.of(response_id).item = item_id;
    if (talk.replies.isCut(response_id)) return;
    talk.latency.received(response_id, performance.now());
    talk.player.add(response_id, fromBase64(delta));
  },
  "response.output_audio.done"(talk, { response_id }) {
    talk.player.end(response_id);
  },
  "response.output_audio_transcript.delta"(talk, { response_id, delta }) {
    if (!talk.replies.isCut(response_id)) talk.view.captions.replied(response_id, delta);
  },
  "response.output_text.delta"(talk, { response_id, delta }) {
    if (!talk.replies.isCut(response_id)) talk.view.captions.replied(response_id, delta);
  },
  "response.done"(talk, { response }) {
    const reply = talk.replies.of(response.id);
    reply.done = true;
    talk.player.end(response.id);
    if (response.status === "cancelled") talk.view.captions.cut(response.id);
    if (response.status === "failed") talk.view.captions.failed(response.id);
    const fault = response.status === "failed" && response.status_details?.error;
    if (fault?.message) talk.view.line(`error_${fault.code}`, fault.message);
    if (reply === talk.replies.latest && !talk.player.playing) talk.become("answered");
    talk.view.refresh();
  },
  "output_audio_buffer.cleared"(talk, { response_id }) {
    if (talk.player.holds(response_id)) talk.silence();
    const reply = talk.replies.cut(response_id, 0);
    talk.tellPlayed(reply);
    if (reply.wholeMs === null) talk.view.captions.cut(response_id);
  },
  "reply.duck"(talk, { turn_id, down }) {
    const reply = talk.replies.ofTurn(turn_id);
    if (reply && talk.player.holds(reply.response)) talk.player.duck(down);
  },
  "reply.mood"(talk, { turn_id, mood }) {
    const reply = talk.replies.ofTurn(turn_id);
    if (reply) talk.view.captions.mood(reply.response, mood);
  },
  "turn.progress"(talk, { turn, figures }) {
    talk.view.waterfall.show(turn, figures);
    if (talk.replies.ofTurn(turn.id)?.done) talk.view.refresh();
  },
  "turn.timeline"(talk, { turn, figures }) {
    const reply = talk.replies.ofTurn(turn.id);
    if (reply && !reply.done) {
      // Stopped before it had words, a turn has no response on the wire.
      reply.done = true;
      if (reply === talk.replies.latest && !talk.player.playing) talk.become("answered");
    }
    talk.view.waterfall.show(turn, figures);
    talk.view.refresh();
  },
  notice(talk, { code, message }) {
    talk.view.line(`notice_${code}`, message);
  },
  error(talk, { error }) {
    if (CLOSING.includes(error.code) || talk.whispers.delete(error.event_id)) return;
    talk.view.line(`error_${error.code}`, error.message);
    if (!talk.replies.running) talk.become("answered");
    if (!error.event_id) return;
    talk.latency.refused(error.event_id);
    const { sent } = talk;
    if (sent && (error.event_id === sent.request || error.event_id === sent.creation)) {
      talk.whispers.add(sent.request); // without its message it is refused as well
      talk.latency.refused(sent.request);
      talk.whisper({ type: "conversation.item.delete", item_id: sent.item });
      talk.takeBack();
    }
  },
};
