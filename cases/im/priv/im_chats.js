// SPDX-License-Identifier: Apache-2.0
// What a page knows of its chats: pure. It outlives connections: what is not accepted is said again under its number, and the messages
// that have come are not told again (PROTOCOL.md).

export const empty = () => ({ peers: {} });

const fresh = () => ({ mark: null, next: 1, said: 0, accepted: 0, delivered: 0, received: 0, live: false, presence: "away", messages: [], unread: 0 });

const chat = (state, peer) => (state.peers[peer] ??= fresh());

// What a new connection begins with.
export function login(name, state) {
  const resume = {};
  for (const [peer, c] of Object.entries(state.peers)) {
    if (c.mark !== null || c.said > c.accepted) resume[peer] = { mark: c.mark, said: c.said, accepted: c.accepted, received: c.received };
  }
  return { login: name, resume };
}

// What is asked and said again after a login. A chat with a mark goes on by itself.
export const again = (state) => Object.entries(state.peers).flatMap(([peer, c]) => {
  const unsaid = c.messages.filter((m) => m.mine && m.state === "sent").map((m) => ({ say: peer, seq: m.seq, text: m.text }));
  return c.live && c.mark === null && unsaid.length === 0 ? [{ chat: peer }] : unsaid;
});

// A message of one's own, and the request for it.
export function say(state, peer, text) {
  const c = chat(state, peer);
  const seq = c.next++;
  c.said = seq;
  c.live = true;
  c.messages.push({ mine: true, seq, text, state: "sent" });
  return { say: peer, seq, text };
}

export function opened(state, peer) {
  chat(state, peer).live = true;
}

// An event of the door; gives what is to be said to it.
export function event(state, e) {
  if (e.peer === undefined) return [];
  const c = chat(state, e.peer);
  switch (e.event) {
    case "mark": c.mark = e.mark; return [];
    case "session": c.live = true; c.presence = e.presence; return [];
    case "presence": c.presence = e.presence; return [];
    case "message":
      if (e.seq !== c.received + 1) return [{ received: e.peer, seq: c.received }];
      c.received = e.seq;
      c.live = true;
      c.unread += 1;
      c.messages.push({ mine: false, text: e.text });
      return [{ received: e.peer, seq: e.seq }];
    case "accepted": marked(c, e.seq, "accepted", ["sent", "full"]); c.accepted = Math.max(c.accepted, e.seq); return [];
    case "delivered": marked(c, e.seq, "delivered", ["sent", "full", "accepted"]); c.accepted = Math.max(c.accepted, e.seq); return [];
    case "refused": refused(c, e); return [];
    case "ended": ended(c, e.reason); return [];
    default: return [];
  }
}

function marked(c, seq, state, from) {
  for (let i = c.messages.length - 1; i >= 0; i--) {
    const m = c.messages[i];
    if (m.mine && m.seq <= seq && from.includes(m.state)) m.state = state;
    else if (m.mine && m.state === state) break;
  }
}

function refused(c, e) {
  if (e.seq === null) { c.live = false; note(c, e.sentence); return; }
  const m = c.messages.findLast((is) => is.mine && is.seq === e.seq);
  if (m) m.state = e.reason;
  if (e.reason === "unsure") c.accepted = Math.max(c.accepted, e.seq);
  // These were not taken: the next message has the number.
  else if (e.reason !== "full") { c.next = Math.min(c.next, e.seq); c.said = Math.min(c.said, c.next - 1); }
}

function ended(c, reason) {
  const failed = reason === "receiver_not_found" || reason === "too_many_sessions";
  for (const m of c.messages) {
    if (m.mine && m.state === "accepted") m.state = "lost";
    if (m.mine && failed && (m.state === "sent" || m.state === "full")) m.state = "failed";
  }
  if (failed) c.accepted = c.said;
  c.mark = null;
  c.received = 0;
  c.live = c.said > c.accepted;
  c.presence = "away";
  note(c, {
    finished: "The chat has ended.", idle: "The chat has ended: nobody said anything for long.", expired: "The chat has ended: the other side was away for too long.",
    lost: "The chat has ended: the servers have lost messages.", receiver_not_found: "Nobody with this name is logged in.", too_many_sessions: "There are too many chats.",
  }[reason] ?? "The chat has ended.");
}

function note(c, text) {
  c.messages.push({ note: true, text });
}

// What a person reads of a message.
export const MARKS = {
  sent: "sending", accepted: "sent", delivered: "delivered", full: "waits: the other side is away and has many messages", unsure: "may not have arrived",
  too_long: "too long, not sent", too_many_waiting: "not sent: too many wait", failed: "not sent", lost: "sent, not delivered", gap: "not sent", logged_out: "not sent", yourself: "not sent",
};
