// One connection to the server, for as long as somebody looks: it comes back by itself, and
// says how it is.

import { events, ask, of, Refusal } from "./api.js";

const SILENCE = 6000; // ms without a sign of life until a connection is taken for dead
const SLOW = 60_000; // ms for which it is said that moments were missed
const PAUSES = [500, 1000, 2000, 4000]; // ms before it is tried again

// A Live gives what the server says of a topology, or of all if that is null, to hear(event,
// data). Besides the server's events these are "history", a list of points, and "state":
// {name: connecting, live, lost, refused or ended; since; error; missed}, where missed is how
// many moments this browser was too slow for lately.
export class Live {
  constructor(topology, hear) {
    this.topology = topology;
    this.hear = hear;
    this.state = { name: "connecting", since: Date.now() };
    this.last = 0; // when there were numbers
    this.heard = 0; // when there was a sign of life
    this.latest = null; // moment of the last point
    this.fails = 0;
    this.missed = 0; // moments, until SLOW after the last of them
    this.watch = setInterval(() => this.look(), 1000);
    this.seen = () => (document.hidden ? this.stop() : this.go());
    document.addEventListener("visibilitychange", this.seen);
    this.go();
  }

  close() {
    this.closed = true;
    clearInterval(this.watch);
    document.removeEventListener("visibilitychange", this.seen);
    this.stop();
  }

  stop() {
    clearTimeout(this.again);
    this.abort?.abort();
    this.abort = null;
  }

  be(name, error) {
    if (this.closed) return;
    if (this.state.name !== name) this.state = { name, since: name === "lost" ? this.last || Date.now() : Date.now() };
    if (Date.now() - this.slow > SLOW) this.missed = 0;
    Object.assign(this.state, { error, missed: this.missed });
    this.hear("state", this.state);
  }

  // look is the clock of a connection that is silent.
  look() {
    if (this.abort && this.heard && Date.now() - this.heard > SILENCE) {
      this.stop();
      this.later();
    } else if (this.state.name === "lost") {
      this.hear("state", this.state); // it shows for how long
    }
  }

  later(error) {
    this.be("lost", error);
    this.again = setTimeout(() => this.go(), PAUSES[Math.min(this.fails++, PAUSES.length - 1)]);
  }

  async go() {
    if (this.closed || this.abort || document.hidden) return;
    const abort = (this.abort = new AbortController());
    this.heard = Date.now();
    try {
      if (this.topology !== null) await this.history(abort.signal);
      const path = this.topology === null ? "live" : `live?topology=${encodeURIComponent(this.topology)}`;
      for await (const { event, data } of events(path, abort.signal)) {
        this.take(event, data);
        if (event === "missed" && this.topology !== null) await this.history(abort.signal); // before what follows: then nothing is missing in between
      }
      throw new Refusal(0, "no-answer", "The server has closed the connection.");
    } catch (e) {
      if (this.abort !== abort) return; // stopped on purpose
      this.stop();
      this.failed(e);
    }
  }

  failed(e) {
    if (this.state.name === "ended") {
      this.again = setTimeout(() => this.go(), PAUSES.at(-1)); // one of its name may begin
      return;
    }
    if ([401, 403, 404].includes(e.status)) {
      this.be("refused", e);
      if (e.status === 404) this.again = setTimeout(() => this.go(), PAUSES.at(-1)); // it may begin yet
      return;
    }
    if (!(e instanceof Refusal)) console.warn(e); // a fault of the page: say where
    this.later(e);
  }

  take(event, data) {
    this.heard = Date.now();
    this.fails = 0;
    if (!event) return;
    if (event === "broken") return this.be("lost", data.error); // the server is there, and what it looks at is not
    if (event === "missed") {
      this.missed += data.missed;
      this.slow = this.heard;
    }
    this.last = this.heard;
    if (event === "ended" || data?.ended) this.be("ended");
    else if (event === "detail" || this.topology === null) this.be("live");
    if (event === "point") this.latest = data.at;
    this.hear(event, data);
  }

  // history is what was missed.
  async history(signal) {
    const since = this.latest ? `?since=${encodeURIComponent(this.latest)}` : "";
    const points = await ask(of(this.topology, "history") + since, undefined, signal);
    if (points.length) this.latest = points.at(-1).at;
    this.hear("history", points);
  }
}

// every asks now and then, while the page is looked at, and gives take the answer, or the
// Refusal. It returns a function that ends it.
export function every(ms, path, take) {
  const abort = new AbortController();
  let timer;
  const turn = async () => {
    if (!document.hidden) {
      try {
        take(await ask(path, undefined, abort.signal), null);
      } catch (e) {
        if (abort.signal.aborted) return;
        take(null, e);
      }
    }
    if (!abort.signal.aborted) timer = setTimeout(turn, ms);
  };
  turn();
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
}
