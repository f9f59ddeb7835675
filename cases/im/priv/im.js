// SPDX-License-Identifier: Apache-2.0
// The page: a WebSocket, what is shown, and what is kept over a reload (in this tab). What it knows of chats is im_chats.js.
import * as chats from "./im_chats.js";

const $ = (id) => document.getElementById(id);
const KEPT = "im";
const PAUSE_MOST_MS = 10000;
// Of one chat, so that a reload finds them.
const MESSAGES_KEPT = 300;

let name = null;
let state = chats.empty();
let current = null;
let socket = null;
let isIn = false;
// Since the name was given, in this page or before a reload.
let wasIn = false;
let tries = 0;
let timer = null;

restore();
render();
if (name !== null) connect();

function restore() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT));
    if (kept) ({ name, state, current, wasIn = false } = kept);
  } catch { sessionStorage.removeItem(KEPT); }
}

function keep() {
  for (const c of Object.values(state.peers)) {
    const old = c.messages.length - MESSAGES_KEPT;
    if (old > 0) c.messages = c.messages.filter((m, i) => i >= old || m.state === "sent");
  }
  if (name === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, JSON.stringify({ name, state, current, wasIn }));
}

function connect() {
  clearTimeout(timer);
  const mine = socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
  mine.onopen = () => send(chats.login(name, state));
  mine.onmessage = ({ data }) => { if (mine === socket) happened(JSON.parse(data)); };
  mine.onclose = () => {
    if (mine !== socket || name === null) return;
    isIn = false;
    const pause = Math.min(PAUSE_MOST_MS, 500 * 2 ** tries++) * (0.75 + Math.random() / 2);
    timer = setTimeout(connect, pause);
    render();
  };
}

const send = (request) => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request)); };

function happened(e) {
  switch (e.event) {
    case "logged_in":
      isIn = wasIn = true; tries = 0;
      chats.again(state).forEach(send);
      break;
    case "login_refused": leave(e.sentence); return;
    case "logged_out": leave(""); return;
    // Who was logged in has something to lose, and tries again.
    case "error":
      if (!isIn && !wasIn) { leave(e.sentence); return; }
      $("problem").textContent = e.sentence;
      if (!isIn) socket.close();
      break;
    case "connection": $("connection").dataset.servers = e.state; break;
    default: {
      const answers = chats.event(state, e);
      if (current === null && e.peer !== undefined) current = e.peer;
      if (e.peer === current && state.peers[current]) state.peers[current].unread = 0;
      // First it is kept, then it is said to have come.
      keep();
      answers.forEach(send);
    }
  }
  keep();
  render();
}

function leave(sentence) {
  name = null; isIn = wasIn = false; current = null; state = chats.empty();
  const old = socket; socket = null; old?.close();
  clearTimeout(timer);
  keep(); render();
  $("problem").textContent = sentence;
  $("name").focus();
}

$("login").onsubmit = (e) => {
  e.preventDefault();
  name = $("name").value.trim();
  if (name === "") { name = null; return; }
  $("problem").textContent = "";
  keep(); connect(); render();
};
$("logout").onclick = () => { if (isIn) send({ logout: true }); else leave(""); };
$("open").onsubmit = (e) => {
  e.preventDefault();
  const peer = $("peer").value.trim();
  if (peer === "") return;
  $("peer").value = "";
  chats.opened(state, peer);
  // After the login if there is none now, as what is said.
  if (isIn) send({ chat: peer });
  show(peer);
};
$("say").onsubmit = (e) => {
  e.preventDefault();
  const text = $("text").value;
  if (text === "" || current === null) return;
  $("text").value = "";
  const request = chats.say(state, current, text);
  // It is sent after the login if there is none now.
  keep();
  if (isIn) send(request);
  render();
};
$("finish").onclick = () => send({ finish: current });

function show(peer) {
  current = peer;
  if (state.peers[peer]) state.peers[peer].unread = 0;
  keep(); render();
  $("text").focus();
}

function render() {
  const inside = name !== null;
  $("login").hidden = inside;
  $("rooms").hidden = !inside;
  $("logout").hidden = !inside;
  const lost = inside && !isIn;
  const servers = $("connection").dataset.servers === "lost";
  $("connection").className = lost || servers ? "lost" : "";
  text($("connection"), !inside ? "" : lost ? `${name}: connecting again…` : servers ? `${name}: looking for a server…` : name);
  const peers = Object.keys(state.peers).sort();
  $("chats").replaceChildren(...peers.map((peer) => {
    const c = state.peers[peer];
    const row = element("button", { type: "button", ariaCurrent: peer === current ? "true" : null }, element("span", {}, peer),
      element("span", { className: `state ${c.unread ? "unread" : c.live ? c.presence : ""}` }, c.unread ? `${c.unread} new` : c.live ? c.presence : "ended"));
    row.onclick = () => show(peer);
    return element("li", {}, row);
  }));
  const c = current !== null ? state.peers[current] : undefined;
  $("chat").hidden = !c;
  $("nothing").hidden = !!c;
  if (!c) return;
  text($("with"), current);
  text($("presence"), c.live ? c.presence : "ended");
  $("presence").className = c.live ? c.presence : "";
  $("finish").hidden = !c.live || !isIn;
  const log = $("messages"), view = $("log");
  const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 40 || log.dataset.peer !== current;
  // Only what changed is touched, so that a reader hears what is new and nothing else.
  if (log.dataset.peer !== current) log.replaceChildren();
  log.dataset.peer = current;
  while (log.children.length > c.messages.length) log.firstChild.remove();
  c.messages.forEach((m, i) => {
    const row = log.children[i] ?? log.appendChild(element("li", {}, element("span", {}), element("span", { className: "mark" })));
    row.className = m.note ? "note" : m.mine ? "mine" : "";
    text(row.children[0], m.text);
    text(row.children[1], m.mine ? chats.MARKS[m.state] : "");
    row.children[1].hidden = !m.mine;
    row.children[1].className = `mark ${m.mine && ["unsure", "too_long", "failed", "lost"].includes(m.state) ? "failed" : ""}`;
  });
  if (atEnd) view.scrollTop = view.scrollHeight;
}

function text(node, is) { if (node.textContent !== is) node.textContent = is; }

function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) if (value !== null) node[key] = value;
  for (const child of children) node.append(child);
  return node;
}
