// SPDX-License-Identifier: Apache-2.0
// A made-up cluster: the same each time, some of it hostile. Its answers have the form of
// the contract.

const HOUR = 3_600_000;
export const SCRIPT = '<script>alert(1)</script>';
export const LONG = 'long_'.repeat(60) + '@host';
export const RTL = 'חנות\u202egpj.exe@מארח';
export const HOSTILE = [`'${SCRIPT}@host'`, LONG, RTL, '"><img src=x onerror=alert(2)>@host'];

const SEVERITIES = ['critical', 'major', 'minor', 'warning'];
const STATES = ['up', 'up', 'up', 'up', 'up', 'silent', 'up', 'down', 'up', 'refused', 'up', 'up', 'unknown'];

// A number of [0, 1) that hangs on its arguments alone.
const chance = (...of) => {
  let hash = 2166136261;
  for (const letter of of.join(' ')) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
  return ((hash ^ hash >>> 15) >>> 0) / 2 ** 32;
};

// Name, unit, kind, label, help, values of the label.
const METRICS = [
  ['uptime', 'milliseconds', 'gauge', null, 'time since the node was started'],
  ['cpu_time', 'milliseconds', 'counter', null, 'time that the processors worked for the node'],
  ['memory_total', 'bytes', 'gauge', null, 'memory that the node has allocated'],
  ['memory_processes', 'bytes', 'gauge', null, 'memory of processes'],
  ['memory_ets', 'bytes', 'gauge', null, 'memory of ETS tables'],
  ['processes', null, 'gauge', null, 'processes'],
  ['ports', null, 'gauge', null, 'ports'],
  ['atoms', null, 'gauge', null, 'atoms'],
  ['utilisation', 'ratio', 'gauge', null, 'the mean of that of the normal schedulers'],
  ['scheduler_utilisation', 'ratio', 'gauge', 'scheduler', 'share of its time that a scheduler was at work', ['normal_1', 'normal_2', 'dirty_cpu_1']],
  ['run_queue_total', null, 'gauge', null, 'processes and ports that wait to run'],
  ['reductions', null, 'counter', null, 'reductions'],
  ['garbage_collected', 'bytes', 'counter', null, 'memory that they have freed'],
  ['io_in', 'bytes', 'counter', null, 'bytes that ports have received'],
  ['mailbox', null, 'gauge', 'process', 'messages in each of the five longest mailboxes', ['logger', SCRIPT]],
  ['log_events', null, 'counter', 'level', 'events that were logged since the agent is there', ['error', 'notice']],
  ['dist_in', 'bytes', 'counter', 'peer', 'bytes that came over the connection with a node'],
  ['dist_out', 'bytes', 'counter', 'peer', 'bytes that went over it'],
  ['dist_queue', 'bytes', 'gauge', 'peer', 'bytes in the driver of its port that are not sent yet'],
  ['atoll_round_trip', 'microseconds', 'gauge', 'peer', 'round trip to a node over the carrier'],
  [`user_${SCRIPT}`, null, 'gauge', null, `a metric of a user's: ${SCRIPT}`]
];

const SCALE = { bytes: 4e7, ratio: 1, milliseconds: 9e7, microseconds: 800, null: 900 };
const WINDOWS = { '15min': 15 * 60_000, hour: HOUR, day: 24 * HOUR, week: 168 * HOUR, month: 720 * HOUR };

export class Cluster {
  /** So many nodes, the last four with hostile names. */
  constructor(count, now) {
    this.started = now - 5 * HOUR;
    this.names = Array.from({ length: count - HOSTILE.length }, (_, i) => `shop${i + 1}@10.0.${i >> 6}.${i % 64 + 1}`).concat(HOSTILE);
    this.removed = new Set();
    this.groups = Math.max(2, Math.round(Math.sqrt(count) / 2));
    this.nodes = new Map(this.names.map((name, i) => [name, this.node(name, STATES[i % STATES.length], now - Math.floor(chance(name) * 20 * HOUR))]));
    this.alarms = new Map();
    this.notifications = [];
    // One that is about several nodes.
    Object.assign(this.raise(this.names[0], 'partition', this.names[0], 'critical', now - 3 * 60_000),
      { nodes: this.names.slice(0, 9), information: `8 pairs of 9 nodes are not connected, ${SCRIPT} among them` });
    for (const { node, state } of this.nodes.values()) {
      if (state === 'down') this.raise(node, 'node_down', null, 'critical', now - 7 * 60_000);
      if (chance(node, 'alarm') < 0.12) this.raise(node, 'mailbox', SCRIPT, SEVERITIES[Math.floor(chance(node, 's') * 4)], now - 2 * HOUR);
    }
    for (let i = 0; i < 240; i += 1) {
      const { id } = this.raise(this.names[i % 7], 'run_queue', null, 'minor', now - (i + 30) * 60_000);
      this.clear(id, now - (i + 20) * 60_000);
    }
    this.notify('log', 'major', HOSTILE[0], `A report with ${SCRIPT} in it, and ${'a long tail '.repeat(30)}`, now - 1000);
  }

  node(name, state, since) {
    const up = state === 'up';
    const figure = (what, scale) => up ? Math.round(chance(name, what) * scale) : null;
    return {
      node: name, family: name.replace(/@.*$/, '').replace(/[-_.]?[0-9]+$/, ''), state, since_ms: since, why: state === 'refused' ? `another version of the watcher has its agent there: ${SCRIPT}` : null, by_hand: false, alarms: 0, worst: null,
      figures: {
        utilisation: up ? chance(name, 'load') ** 3 : null, run_queue: figure('queue', 4), memory: figure('memory', 9e8), processes: figure('processes', 90_000), processes_limit: up ? 262_144 : null,
        reductions_per_s: figure('reductions', 9e6), mailbox_longest: figure('mailbox', 40), dist_in_per_s: figure('in', 2e6), dist_out_per_s: figure('out', 2e6), uptime_ms: figure('uptime', 9e8)
      }
    };
  }

  /** What a node says of its alarms. */
  counted(name) {
    const mine = [...this.alarms.values()].filter(({ node, state }) => node === name && state !== 'cleared');
    const node = this.nodes.get(name);
    Object.assign(node, { alarms: mine.length, worst: SEVERITIES.find(each => mine.some(({ severity }) => severity === each)) ?? null });
    return node;
  }

  raise(node, rule, instance, severity, at) {
    const alarm = {
      id: this.alarms.size + 1, rule, node, instance, state: 'new', severity, cause: 'its VM has ended, its machine is off, or the network to it is cut',
      repair: 'look at its machine and at its log; start it again', value: rule === 'node_down' ? null : 12_345, raised_ms: at, cleared_ms: null, acknowledged: null, comments: []
    };
    this.alarms.set(alarm.id, alarm);
    this.counted(node);
    this.notify('alarm', severity, node, `${rule} was raised`, at);
    return alarm;
  }

  clear(id, at) {
    const alarm = Object.assign(this.alarms.get(id), { state: 'cleared', cleared_ms: at });
    this.counted(alarm.node);
    return alarm;
  }

  notify(kind, severity, node, text, at) {
    const notification = { id: this.notifications.length + 1, time_ms: at, kind, severity, node, text };
    this.notifications.push(notification);
    return notification;
  }

  cluster(now) {
    const nodes = { unknown: 0, up: 0, silent: 0, down: 0, refused: 0 };
    for (const { state } of this.nodes.values()) nodes[state] += 1;
    const alarms = { critical: 0, major: 0, minor: 0, warning: 0 };
    const standing = [...this.alarms.values()].filter(({ state }) => state !== 'cleared');
    for (const { severity } of standing) alarms[severity] += 1;
    return {
      name: 'shop', version: '1.0.0', period_ms: 5000, now_ms: now, started_ms: this.started, nodes, alarms,
      unacknowledged: standing.filter(({ state }) => state === 'new').length, counts: { missed: 3, beyond: 0 }, streams: 1
    };
  }

  rules() {
    return ['node_down', 'mailbox', SCRIPT].map((rule, i) => ({
      rule, about: i === 0 ? 'state down' : 'mailbox', severity: SEVERITIES[i], raise: i === 0 ? null : 10_000, clear: i === 0 ? null : 1000, looks: i + 1, cause: 'its VM has ended', repair: 'start it again'
    }));
  }

  metrics() {
    return METRICS.map(([name, unit, kind, label, help]) => ({ name, unit, kind, label, help, prometheus: `erlang_${name}`, stored: label !== 'peer' }));
  }

  peers(name) {
    const at = this.names.indexOf(name);
    return [1, 2, 3, 5, 8].map(by => this.names[(at + by) % this.names.length]).filter(peer => peer !== name);
  }

  readings(name, now) {
    const node = this.nodes.get(name);
    const readings = METRICS.flatMap(([metric, unit, kind, label, , values]) => (label === 'peer' ? this.peers(name) : values ?? [null]).map(of => {
      const value = chance(name, metric, of) * SCALE[unit];
      return { metric, label: of, value: unit === 'ratio' ? value : Math.round(value), rate: kind === 'counter' ? value / 50 : null };
    }));
    const said = node.state === 'up' ? readings : [];
    return { node: name, state: node.state, at_ms: now, readings: said, next: null, total: said.length };
  }

  series({ window, metrics, nodes, points = 300 }, now) {
    const width = WINDOWS[window];
    const step = Math.max(5000, Math.floor(width / points));
    const from = now - width;
    const all = METRICS.filter(([name]) => metrics.includes(name)).flatMap(([metric, unit, , , , values]) => nodes.flatMap(node => (values ?? [null]).map(label => {
      const base = chance(node, metric, label) * SCALE[unit] * 0.6;
      const made = [];
      for (let at = Math.ceil(from / step) * step; at < now; at += step) {
        // Nothing was measured for a tenth of the window.
        if ((at - from) / width > 0.55 && (at - from) / width < 0.65) continue;
        const value = base * (1 + 0.3 * Math.sin(at / width * 40 + chance(node) * 9) + 0.1 * chance(node, metric, at));
        made.push([at, value, value * 0.9, value * 1.2]);
      }
      return { node, metric, label, points: made };
    })));
    return { window, from_ms: from, to_ms: now, step_ms: step, series: all.slice(0, 200), omitted: Math.max(0, all.length - 200) };
  }

  managers(now) {
    const names = [...this.nodes.keys()];
    return { items: [0, 1].map(i => ({
      id: i + 1, state: i === 0 ? 'up' : 'starting', since_ms: now - (i + 1) * 60_000, lost: i, os_pid: 100 + i, memory: i === 0 ? 5e7 : null, nodes: names.filter((_, at) => at % 2 === i)
    })) };
  }

  topology(now) {
    const group = i => `group ${i + 1}`;
    const of = name => {
      const at = this.names.indexOf(name);
      if (at % 11 === 10) return [];
      const mine = at % this.groups;
      return at % 9 === 0 ? [group(mine), group((mine + 1) % this.groups)] : [group(mine)];
    };
    const nodes = this.names.filter(name => !this.removed.has(name)).map(node => ({ node, state: this.nodes.get(node).state, groups: of(node), gateway: of(node).length > 1 }));
    const link = (from, to, extra = {}) => ({
      from, to, kind: 'direct', rtt_us: Math.round(chance(from, to) * 2000), bytes_there: Math.round(now % 1e9 * chance(from, to)), bytes_back: Math.round(now % 1e9 * chance(to, from)),
      connected_by: 'overlay', age_ms: HOUR, path: null, sealed: true, ...extra
    });
    const names = nodes.map(({ node }) => node);
    return {
      at_ms: now, atoll: true, nodes,
      groups: Array.from({ length: this.groups }, (_, i) => ({
        name: group(i), nodes: nodes.filter(({ groups }) => groups.includes(group(i))).map(({ node }) => node),
        gateways: nodes.filter(({ groups, gateway }) => gateway && groups.includes(group(i))).map(({ node }) => node)
      })).concat([{ name: `${SCRIPT} ${'a group with a long name '.repeat(8)}`, nodes: names.slice(-1), gateways: [] }]),
      free: nodes.filter(({ groups }) => groups.length === 0).map(({ node }) => node),
      links: names.flatMap(from => this.peers(from).filter(to => from < to).map(to => link(from, to))),
      circuits: names.slice(0, 6).map((from, i) => link(from, names[i + 7], { kind: 'relay', path: [from, names[i + 1], names[i + 7]] })),
      silent: names.filter(name => this.nodes.get(name).state === 'silent').slice(0, 3), omitted: 0
    };
  }

  process(i) {
    return {
      pid: `<0.${100 + i}.0>`, name: i === 0 ? SCRIPT : i % 3 === 0 ? `server_${i}` : null, initial_call: 'proc_lib:init_p/5', current: 'gen_server:loop/7',
      memory: 9_000_000 - i * 150_000, reductions: 5_000_000 - i * 9000, message_queue: i % 4, status: 'waiting'
    };
  }

  processes(node, sort, limit) {
    return { node, sort, total: 1234, looked_at: 1234, items: Array.from({ length: limit }, (_, i) => this.process(i)) };
  }

  processInfo(pid) {
    return {
      ...this.process(0), pid, heap: 987, stack: 33, total_heap: 1597, priority: 'normal', trap_exit: true, group_leader: '<0.50.0>',
      links: ['<0.51.0>', '<0.52.0>'], monitors: [], monitored_by: ['<0.60.0>'], omitted: 2,
      stacktrace: [{ function: 'gen_server:loop/7', file: 'gen_server.erl', line: 1083 }, { function: `${SCRIPT}:f/1`, file: null, line: null }]
    };
  }

  tables(node) {
    const items = Array.from({ length: 30 }, (_, i) => ({
      name: i === 0 ? SCRIPT : `table_${i}`, id: `ref${i}`, type: 'set', size: 5000 - i * 100, memory: 3_000_000 - i * 90_000, owner: '<0.70.0>', owner_name: i % 2 ? null : 'kernel_sup',
      protection: 'protected', compressed: i === 3
    }));
    return { node, total: 30, looked_at: 30, items };
  }

  supervision(node) {
    const entry = (id, type, children = [], omitted = 0) => ({
      id, pid: `<0.${id.length * 7}.0>`, name: type === 'application' ? null : id, type, module: type === 'worker' ? 'gen_server' : 'supervisor', count: type === 'supervisor' ? children.length + omitted : null, omitted, children
    });
    return {
      node, omitted: 40, items: ['kernel', 'shop', SCRIPT].map(app => entry(app, 'application', [entry(`${app}_sup`, 'supervisor', [
        ...Array.from({ length: 6 }, (_, i) => entry(`${app}_worker_${i}`, 'worker')), entry(`${app}_pool`, 'supervisor', [entry(`${app}_pool_1`, 'worker')], 40)])]))
    };
  }
}
