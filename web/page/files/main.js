// Which view is shown, by the part of the address behind #, and whether the server answers.
//
//	#/                      overview
//	#/t/T/TAB               topology T
//	#/t/T/c/COMPONENT       and a component of it
//	#/t/T/s/COMPONENT/STREAM   or a stream

import { el, text, attr, show, sentence } from "./dom.js";
import { time, many } from "./format.js";
import { ask } from "./api.js";
import { Live } from "./live.js";
import { Overview } from "./overview.js";
import { Topology } from "./topology.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const crumb = document.getElementById("crumb");
const leave = document.getElementById("leave");
const eyes = document.getElementById("eyes");

let view = null; // an Overview or a Topology: {root, hear(event, data), go(parts), close()}
let live = null;
let who = { act: false }; // what the one who looks may do

function route() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decode);
  const topology = parts[0] === "t" && parts[1] !== undefined ? parts[1] : null;
  if (!view || view.topology !== topology) change(topology);
  view.go(parts.slice(2));
}

function decode(s) {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

function change(topology) {
  live?.close();
  view?.close();
  view = topology === null ? new Overview(who) : new Topology(topology, who);
  document.title = topology === null ? "Egret" : `${topology} – Egret`;
  text(crumb, topology ?? "");
  main.classList.remove("stale");
  main.replaceChildren(view.root);
  window.scrollTo(0, 0);
  live = new Live(topology, hear);
  state(live.state);
}

function hear(event, data) {
  if (event === "state") state(data);
  else view.hear(event, data);
}

// state says how the connection is, in words; what is shown is grey while it is old.
function state(s) {
  const words = {
    connecting: "Connecting …",
    live: "Live",
    lost: "No answer",
    refused: "Refused",
    ended: "Ended",
  };
  const refused = s.name === "refused" && { 401: "Not logged in", 404: "Not here" }[s.error.status];
  const slow = s.name === "live" && s.missed > 0;
  text(connection.firstChild, refused || words[s.name] + (slow ? ", but this browser is slow" : ""));
  text(connection.lastChild, s.name === "lost" ? ` since ${time(1e9 * Math.round((Date.now() - s.since) / 1000)).short}` : slow ? `: ${many(s.missed, "moment")} missed` : ""); // not to be read out each second
  attr(connection, "data-state", refused ? "none" : s.name); // not alarming: nothing is wrong
  attr(connection, "title", s.error?.message);
  main.classList.toggle("stale", s.name === "lost");
  if (s.name !== "refused") view.hear("state", s);
  else if (s.error.status === 401) login();
  else view.refuse(s.error);
}

// login asks for a token; the server keeps it in a cookie that no script can read.
function login() {
  if (document.getElementById("token")) return;
  const token = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true, size: 40 });
  const wrong = el("p", { class: "wrong", role: "alert" });
  const form = el("form", { class: "login" },
    el("h1", { text: "Who looks?" }),
    sentence("A token is needed: the one of those who may act, or the one of those who may look."),
    el("label", { for: "token", text: "Token" }), token, el("button", { class: "button main", text: "Log in" }), wrong);
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    try {
      await ask("login", { token: token.value });
      await start();
    } catch (refusal) {
      text(wrong, refusal.message);
      token.select();
    }
  });
  main.replaceChildren(form);
  token.focus();
}

async function start() {
  try {
    who = await ask("me");
  } catch {
    // the live connection will meet the same, and say it
  }
  show(leave, Boolean(who.login && who.look));
  show(eyes, Boolean(who.look && !who.act));
  view?.close();
  view = null;
  route();
}

// logout has the server forget who looks; what is shown goes with it.
async function logout() {
  leave.disabled = true;
  try {
    await ask("logout", {});
    await start();
  } catch (refusal) {
    attr(leave, "title", `Still logged in: ${refusal.message}`);
  }
  leave.disabled = false;
}

leave.addEventListener("click", logout);

window.addEventListener("hashchange", route);
start();
