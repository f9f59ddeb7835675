// SPDX-License-Identifier: Apache-2.0
// Which notifications are wanted: as the server has it, for those that the stream brings.
import type { Level, Notification } from './api.js';

export const LEVELS: readonly Level[] = ['critical', 'major', 'minor', 'warning', 'info'];
/** Those that there always are; others are known when they come. */
export const KINDS: readonly string[] = ['state', 'restarted', 'forgotten', 'added', 'removed', 'alarm', 'watch', 'log'];

export interface Wanted { search: string; severity: string; kind: string; node: string }

export const wants = ({ search, severity, kind, node }: Wanted) => (is: Notification): boolean => {
  const low = search.toLowerCase();
  return (kind === '' || is.kind === kind) && (node === '' || is.node === node)
    // This severity or a worse one.
    && (severity === '' || LEVELS.indexOf(is.severity) <= LEVELS.findIndex(level => level === severity))
    && (is.text.toLowerCase().includes(low) || (is.node ?? '').toLowerCase().includes(low));
};
