// One event stream per run for all pages of this browser. A page says which run it follows and after which event;
// what happened in between is replayed from the table, because the stream begins at the earliest of them.
import { kinds } from "./kinds.js";

const streams = new Map(); // run -> { source, ports, last }
const followed = new Map(); // port -> run

function leave(port) {
  const run = followed.get(port);
  const stream = streams.get(run);
  followed.delete(port);
  if (!stream) return;
  stream.ports.delete(port);
  if (stream.ports.size === 0) {
    stream.source.close();
    streams.delete(run);
  }
}

function open(run, after) {
  const stream = { source: new EventSource(`/api/v1/runs/${run}/events?after=${after}`), ports: new Set(), last: after };
  const tell = (event) => {
    stream.last = Number(event.lastEventId);
    for (const port of stream.ports) port.postMessage({ kind: event.type, seq: stream.last });
  };
  for (const kind of kinds) stream.source.addEventListener(kind, tell);
  streams.set(run, stream);
  return stream;
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    leave(port);
    if (!data.follow) return;
    const known = streams.get(data.follow);
    const stream = known && known.source.readyState !== EventSource.CLOSED ? known : open(data.follow, data.after);
    stream.ports.add(port);
    followed.set(port, data.follow);
    if (stream.last > data.after) port.postMessage({ kind: "missed", seq: stream.last });
  };
};
