// SPDX-License-Identifier: Apache-2.0
// Serves the page and a made-up cluster, as the watch would: the contract's paths, its
// token, its stream, its policy. Each answer is held to the contract.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { frames } from './flow.mjs';

export const TOKEN = 'the-token';
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css' };

/** What of a value is not as a schema has it. */
export const unlike = (schemas, schema, value, where = '') => {
  if (schema.$ref) return value === null && schema.nullable ? [] : unlike(schemas, schemas[schema.$ref.split('/').pop()], value, where);
  if (value === null) return schema.nullable ? [] : [`${where} is null`];
  if (schema.enum && !schema.enum.includes(value)) return [`${where} is ${value}`];
  const type = Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  if (type !== schema.type && !(schema.type === 'number' && type === 'integer')) return [`${where} is of type ${type}, not ${schema.type}`];
  if (type === 'array') return value.flatMap((item, i) => unlike(schemas, schema.items, item, `${where}[${i}]`));
  if (type !== 'object') return [];
  const known = schema.properties ?? {};
  return [
    ...(schema.required ?? []).filter(key => !(key in value)).map(key => `${where} has no ${key}`),
    ...Object.entries(value).flatMap(([key, item]) => known[key] ? unlike(schemas, known[key], item, `${where}.${key}`)
      : schema.additionalProperties === false ? [`${where} has ${key}`] : [])
  ];
};

/** What of an answer is not as the contract has it. */
export const unlikeAnswer = ({ paths, components: { schemas } }, method, path, status, data) => {
  const parts = path.split('/');
  const named = Object.keys(paths).find(name => {
    const wanted = name.split('/');
    return wanted.length === parts.length && wanted.every((part, i) => part.startsWith('{') || part === parts[i]);
  });
  const schema = paths[named]?.[method.toLowerCase()]?.responses[status]?.content?.['application/json']?.schema;
  return schema === undefined ? [`${method} ${path}: ${status} is not in the contract`] : unlike(schemas, schema, data, `${method} ${path}`);
};

export class Server {
  constructor(dir, contract, cluster) {
    Object.assign(this, { dir, contract, cluster, streams: new Set(), flows: new Set(), faults: [], refuses: false });
    this.server = createServer((request, response) => void this.answer(request, response));
  }

  async listen() {
    await new Promise(done => this.server.listen(0, '127.0.0.1', done));
    // As the watch does, once in a period.
    this.period = setInterval(() => this.tell('cluster', this.cluster.cluster(Date.now())), 5000);
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
    return this;
  }

  close() {
    clearInterval(this.period);
    this.cut();
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Ends all streams. */
  cut() {
    for (const stream of [...this.streams, ...this.flows]) stream.destroy();
    this.streams.clear();
  }

  tell(event, data) {
    for (const stream of this.streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** What the watch says when an alarm has changed. */
  tellAlarm(alarm) {
    this.tell('alarm', alarm);
    this.tell('nodes', [this.cluster.nodes.get(alarm.node)]);
    this.tell('cluster', this.cluster.cluster(Date.now()));
  }

  async answer(request, response) {
    const url = new URL(request.url, this.url);
    const path = url.pathname.split('/').slice(1).map(decodeURIComponent);
    if (this.refuses) return request.socket.destroy();
    if (path[0] !== 'api') return this.file(url.pathname, response);
    const body = JSON.parse(await text(request) || 'null');
    const say = (status, data) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(data === undefined ? undefined : JSON.stringify(data));
    };
    if (path[2] === 'session' && body?.token === TOKEN) {
      response.setHeader('set-cookie', 'atoll_watch=yes; HttpOnly; SameSite=Strict; Path=/');
      return say(204);
    }
    if (!/atoll_watch=yes/.test(request.headers.cookie ?? '')) return say(401, { error: 'The token is wrong.' });
    if (path[2] === 'events') return this.stream(response);
    if (path[2] === 'traffic') return this.flow(url.searchParams.get('load'), response);
    const [status, data] = this.said(request.method, path.slice(2), url.searchParams, body) ?? [404, { error: 'There is no such thing.' }];
    if (data !== undefined) this.faults.push(...unlikeAnswer(this.contract, request.method, url.pathname, status, data));
    say(status, data);
  }

  stream(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
    response.write(`event: cluster\ndata: ${JSON.stringify(this.cluster.cluster(Date.now()))}\n\n`);
  }

  /** Frames as the watch sends them, again from the first one after a while. */
  flow(load, response) {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const names = [...this.cluster.nodes.keys()].sort();
    const lines = frames(names, Math.max(4, Math.ceil(names.length / 6)), 3 * names.length, 200, load === null ? undefined : names.indexOf(load));
    let at = 0;
    const next = () => { response.write(`event: frame\ndata: ${JSON.stringify(lines[at % lines.length])}\n\n`); at += 1; };
    next();
    const each = setInterval(next, 200);
    this.flows.add(response);
    response.on('close', () => { clearInterval(each); this.flows.delete(response); });
  }

  file(path, response) {
    const name = normalize(path === '/' ? '/index.html' : path);
    try {
      const data = readFileSync(join(this.dir, name));
      response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream', 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' });
      response.end(data);
    } catch {
      response.writeHead(404).end();
    }
  }

  said(method, path, params, body) {
    const { cluster } = this;
    const now = Date.now();
    const [what, of, part, which] = path;
    const page = items => {
      const from = Number(params.get('cursor') ?? 0);
      const to = from + Number(params.get('limit') ?? 100);
      return [200, { items: items.slice(from, to), next: to < items.length ? String(to) : null, total: items.length }];
    };
    const listed = name => params.get(name)?.split(',') ?? [];
    if (method === 'POST' && what === 'alarms') return this.act(Number(of), part, body, now);
    if (method === 'POST' && what === 'nodes') {
      if (!/^[^@]+@[^@]+$/.test(body.node)) return [400, { error: `${body.node} is no name of a node.` }];
      cluster.names.push(body.node);
      cluster.nodes.set(body.node, { ...cluster.node(body.node, 'up', now), by_hand: true });
      this.tell('nodes', [cluster.nodes.get(body.node)]);
      return [201, cluster.nodes.get(body.node)];
    }
    if (method === 'DELETE') {
      cluster.nodes.delete(of);
      cluster.removed.add(of);
      this.tell('gone', { node: of });
      return [204];
    }
    if (what === 'cluster') return [200, cluster.cluster(now)];
    if (what === 'topology') return [200, cluster.topology(now)];
    if (what === 'managers') return [200, cluster.managers(now)];
    if (what === 'metrics') return page(cluster.metrics());
    if (what === 'series') return [200, cluster.series({ window: params.get('window'), metrics: listed('metric'), nodes: listed('node'), points: Number(params.get('points') ?? 300) }, now)];
    if (what === 'alarms' && of !== undefined) return cluster.alarms.has(Number(of)) ? [200, cluster.alarms.get(Number(of))] : undefined;
    if (what === 'alarms') {
      const wanted = alarm => (params.get('state') === 'cleared') === (alarm.state === 'cleared') && ['severity', 'node'].every(key => [null, alarm[key]].includes(params.get(key)));
      return page([...cluster.alarms.values()].filter(wanted).reverse());
    }
    if (what === 'rules') return page(cluster.rules());
    if (what === 'notifications') {
      const search = (params.get('search') ?? '').toLowerCase();
      return page(cluster.notifications.filter(({ node, text, kind }) => `${node} ${text}`.toLowerCase().includes(search) && [null, kind].includes(params.get('kind'))).reverse());
    }
    if (what !== 'nodes') return undefined;
    if (of === undefined) return page([...cluster.nodes.values()]);
    if (!cluster.nodes.has(of)) return undefined;
    if (part === undefined) return [200, cluster.nodes.get(of)];
    if (part === 'metrics') return [200, cluster.readings(of, now)];
    if (cluster.nodes.get(of).state !== 'up') return [409, { error: `${of} is not up.` }];
    if (part === 'processes') return [200, which === undefined ? cluster.processes(of, params.get('sort'), Number(params.get('limit'))) : cluster.processInfo(which)];
    if (part === 'tables') return [200, cluster.tables(of)];
    if (part === 'supervision') return [200, cluster.supervision(of)];
    return undefined;
  }

  act(id, part, { who, text }, now) {
    const alarm = this.cluster.alarms.get(id);
    if (part === 'comments') alarm.comments.unshift({ time_ms: now, who, text });
    else if (alarm.state === 'cleared') return [409, { error: `Alarm ${id} is cleared already.` }];
    else Object.assign(alarm, { state: 'acknowledged', acknowledged: { time_ms: now, who } });
    this.tellAlarm(alarm);
    return [part === 'comments' ? 201 : 200, alarm];
  }
}

const text = async request => {
  let all = '';
  for await (const part of request) all += part;
  return all;
};
